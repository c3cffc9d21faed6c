"""Does a process that measures tell each of its steps, as it begins?"""

from pathlib import Path

import msgspec
import pytest
import torch

from idbg.bench import runner
from idbg.bench.runner import RunControl
from idbg.config import places
from idbg.engine.bench import peaks
from idbg.schema.bench import PLANS, BenchBackend, BenchCase, BenchStep, Failed, Task, Timed
from idbg.schema.programs import Program

TINY = "import torch\ndef program():\n    return torch.nn.Linear(8, 5).eval(), (torch.randn(4, 8),)\n"


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchCase:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tiny.py").write_text(TINY)
    return BenchCase(program=Program("tiny.py", cwd=str(tmp_path)), backend=BenchBackend("inductor"), runs=5)


def test_the_steps_of_timing_kernels(case: BenchCase) -> None:
    cpu = torch.device("cpu")
    known = msgspec.structs.replace(peaks.unmeasured(cpu), copy_bytes_per_s=1e10)
    place = peaks.place(known, places.cache())
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(msgspec.json.encode(known))
    told: list[BenchStep] = []
    found = runner.kernel_times(case, RunControl(on_step=told.append))
    assert isinstance(found, Timed), found
    assert [(step.number, step.of) for step in told] == [(number, 6) for number in range(1, 7)]
    words = [step.words for step in told]
    assert words[:4] == ["importing torch", "loading the program", "compiling", "warming up"]
    count = len(found.times.kernels)
    assert words[4] == f"timing {count} kernel{'s' * (count != 1)} in {found.times.runs} runs"
    assert words[5] == "the machine's peaks, as measured before"


def test_peaks_that_are_not_known_are_said_to_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "_measured", lambda asked, _: msgspec.structs.replace(asked, copy_bytes_per_s=1e10))
    told: list[str] = []
    for _ in range(2):
        peaks.peaks(torch.device("cpu"), tmp_path, told.append)
    assert told == ["measuring the machine's peaks", "the machine's peaks, as measured before"]


@pytest.mark.slow
def test_the_steps_of_each_task_of_a_row(case: BenchCase) -> None:
    told: dict[Task, list[BenchStep]] = {}
    (row,) = runner.rows(
        [case],
        RunControl(lambda _, task: told.update({task: []}), lambda step: told[list(told)[-1]].append(step)),
    )
    assert row.status == "ok", row.reason
    assert list(told) == ["cold", "warm", "check"]
    for task, steps in told.items():
        assert [step.number for step in steps] == list(range(1, len(PLANS[task]) + 1))
        assert {step.of for step in steps} == {len(PLANS[task])}
    assert told["warm"][4].words == "timing up to 5 calls"


def test_a_program_that_fails_ends_at_its_step(case: BenchCase, tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text("raise RuntimeError('no weights')")
    told: list[BenchStep] = []
    assert isinstance(
        runner.measured(case, "cold", tmp_path / "c", RunControl(on_step=told.append, seconds=60)), Failed
    )
    assert [step.words for step in told] == ["importing torch", "loading the program"]
