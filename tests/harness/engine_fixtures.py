"""Fixtures of the tests of the engine: settings of torch are put back, a program is run in this process."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from idbg.accelerators import registry
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold


@pytest.fixture(autouse=True)
def _fresh_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test compiles anew with torch's own settings, writes into its own folder, and sees no MOCK_* of ours."""
    import torch
    import torch._inductor.config

    settings = [(config, config.get_config_copy()) for config in (torch._dynamo.config, torch._inductor.config)]
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("MOCK_", "IDBG_"))]:
        monkeypatch.delenv(name)
    torch._dynamo.reset()
    yield
    for config, before in settings:  # a script or a repro that was run here sets what it needs, and leaves it so
        after = config.get_config_copy()
        for name in before:
            if after[name] != before[name]:
                setattr(config, name, before[name])
    torch._dynamo.reset()


@pytest.fixture
def ran(tmp_path: Path) -> Callable[..., Run]:
    """Run a program's text once in this process, through the worker's own job."""
    from idbg.worker.jobs import Jobs
    from idbg.worker.protocol import Compile

    def run(text: str, **target: Any) -> Run:
        told: list[events.SessionEvent] = []
        path = tmp_path / "subject.py"
        path.write_text(text)
        rules = str(target.pop("rules", "")) or registry.find("mock")[0]
        program, chosen = Program(str(path), cwd=str(tmp_path)), Target(**{"backend": "mock", "rules": rules, **target})
        told.append(events.RunStarted(run=1, program=program, target=chosen))
        told.append(Jobs(told.append).compile(Compile(1, program, chosen, str(tmp_path / "repros"))))
        found = fold(told).runs[1]
        found.notes = [event.text for event in told if isinstance(event, events.Noted)]  # type: ignore[attr-defined]
        return found

    return run


@pytest.fixture(params=["torch", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test is done by torch and by the compiled kernel."""
    from idbg.engine.kerneldiff.tensors import native

    monkeypatch.setattr(native, "enabled", request.param == "compiled")
    if request.param == "compiled" and not native.wait():
        pytest.skip(native.problem())
    return str(request.param)


@pytest.fixture
def seeded() -> None:
    import torch

    torch.manual_seed(0)
