"""Does a third party's accelerator compile, refuse, fall back and fail as it says? From a class here, and installed."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import idbg
from idbg import AcceleratorAdapter, Capabilities, CompilationResult, CompilationStatus, ConstraintViolation, plugins
from idbg.accelerators.adapter import AdapterError
from idbg.engine.capture.run import RunCapture, capturing
from idbg.schema.decisions.backends import GraphSplit
from idbg.schema.events import Noted, SessionEvent
from tests.harness.decided import of_kind

PACKAGE = Path(__file__).resolve().parents[3] / "examples" / "adapter_package"
SUCCESS, PARTIAL = CompilationStatus.SUCCESS, CompilationStatus.PARTIAL


class Npu(AcceleratorAdapter):
    """Runs every graph as it is, and remembers which."""

    name = "npu"
    capabilities = Capabilities(alignment=16)

    def __init__(self) -> None:
        self.graphs: list[list[str]] = []

    def compile(self, graph_module: torch.fx.GraphModule, inputs: Sequence[object]) -> CompilationResult:
        ops = [str(node.target) for node in graph_module.graph.nodes if node.op == "call_function"]
        self.graphs.append(ops)
        return CompilationResult(status=SUCCESS, compiled=graph_module.forward)


class Giving(Npu):
    """Gives, or raises, what it was made with."""

    capabilities = Capabilities()

    def __init__(self, result: object, fallback: Callable[..., object] | None = None) -> None:
        self.result, self.runs_instead = result, fallback

    def compile(self, graph_module: torch.fx.GraphModule, inputs: Sequence[object]) -> CompilationResult:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result  # type: ignore[return-value]

    def fallback(self, graph_module: torch.fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object] | None:
        return self.runs_instead


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged for the user; torch's own trace is in there too."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("idbg.")]


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def run(adapter: AcceleratorAdapter, **options: Any) -> torch.Tensor:
    return torch.compile(add_one, backend=idbg.backend(adapter, **options))(torch.zeros(10))


def links(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(inner)
    return chain


def test_29_strict_refuses_what_its_capabilities_do_not_have_with_a_repro():
    npu = Npu()
    with pytest.raises(Exception, match="dim 0 is 10") as caught:
        run(npu, strict=True)
    refusal = next(link for link in links(caught.value) if isinstance(link, ConstraintViolation))
    assert {violation.rule for violation in refusal.violations} == {"alignment"}
    assert "rules of npu" in str(refusal) and Path(refusal.repro).is_file()
    assert npu.graphs == [], "what is refused is not compiled"


def test_29_warning_compiles_and_runs_it():
    npu = Npu()
    backend = idbg.backend(npu, strict=False)
    assert torch.compile(add_one, backend=backend)(torch.zeros(10)).tolist() == [1.0] * 10
    assert npu.graphs == [["aten.add.Tensor"]]
    assert {violation.rule for violation in backend.violations} == {"alignment"}


def test_an_accelerator_that_is_named_is_checked_in_place_of_the_capabilities():
    assert run(Npu(), strict=True, accelerator="mock").shape == (10,)
    assert run(Npu(), strict=True, constraints=[]).shape == (10,)


def test_an_adapter_that_is_found_by_name_and_has_no_accelerator_is_checked_by_its_capabilities(monkeypatch):
    monkeypatch.setattr(plugins, "names", lambda group: ("npu-1",) if group == "idbg.backends" else ())
    monkeypatch.setattr(plugins, "load", lambda group: SimpleNamespace(values={"npu-1": Npu}, broken={}))
    backend = idbg.backend("npu-1", strict=False)
    assert (backend.accelerator.name, backend.accelerator.rules[0].kind) == ("npu-1", "alignment")
    torch.compile(add_one, backend=backend)(torch.zeros(10))
    assert {violation.rule for violation in backend.violations} == {"alignment"}


def test_an_adapter_that_cannot_be_made_says_why(monkeypatch):
    class NoDriver(Npu):
        def __init__(self) -> None:
            raise OSError("libnpu.so is not there")

    monkeypatch.setattr(plugins, "names", lambda group: ("npu-1",))
    monkeypatch.setattr(plugins, "load", lambda group: SimpleNamespace(values={"npu-1": NoDriver}, broken={}))
    with pytest.raises(idbg.IdbgError, match="npu-1 cannot be used: OSError: libnpu"):
        idbg.backend("npu-1")


def test_what_an_adapter_leaves_to_the_host_is_recorded_with_its_reason():
    def split_of(result: Callable[..., CompilationResult]) -> GraphSplit | None:
        class Splitting(Npu):
            capabilities = Capabilities()

            def compile(self, graph_module: torch.fx.GraphModule, inputs: Sequence[object]) -> CompilationResult:
                return result(graph_module.forward)

        recorded: list[SessionEvent] = []
        torch.compiler.reset()
        with capturing(RunCapture(1, recorded.append, None)):
            torch.compile(lambda x: (x + 1).sin(), backend=idbg.backend(Splitting()))(torch.zeros(10))
        return next(iter(of_kind(recorded, GraphSplit)), None)

    whole = split_of(lambda graph: CompilationResult(status=SUCCESS, compiled=graph))
    assert whole is not None and whole.native == () and whole.compiled == (("add", "sin"),)
    hosts = {"sin": "no sine unit", "nosuch": "?"}
    part = split_of(lambda graph: CompilationResult(status=PARTIAL, compiled=graph, host_nodes=hosts))
    assert part is not None and part.compiled == (("add",),)
    (call,) = part.native
    assert (call.name, call.why, call.detail) == ("sin", "host", "no sine unit") and call.file == __file__
    none = split_of(lambda graph: CompilationResult(fallback=graph, message="no memory"))
    assert none is not None and none.compiled == ()
    assert {(call.why, call.detail) for call in none.native} == {("fallback", "no memory")}
    assert split_of(lambda graph: CompilationResult(status=PARTIAL, compiled=graph)) is None, "which part is not known"


def test_forward_and_backward_of_a_training_step_are_compiled():
    npu = Npu()
    model = torch.nn.Linear(16, 16)
    x = torch.randn(16, 16)
    torch.compile(model, backend=idbg.backend(npu, strict=False))(x).sum().backward()
    got = model.weight.grad
    model.weight.grad = None
    model(x).sum().backward()
    torch.testing.assert_close(got, model.weight.grad)
    assert len(npu.graphs) == 2 and "aten.addmm.default" in npu.graphs[0]


def test_part_of_a_graph_runs_and_is_told(caplog):
    partly = CompilationResult(status=PARTIAL, compiled=lambda x: (x + 1,), message="the add is on the host")
    assert run(Giving(partly)).tolist() == [1.0] * 10
    assert told(caplog) == [
        "npu compiled the inference graph of frame 0/0, with status partial: the add is on the host"
    ]


@pytest.mark.parametrize(
    "adapter",
    [
        Giving(ValueError("no registers left"), lambda x: (x + 1,)),
        Giving(CompilationResult(message="no registers left", fallback=lambda x: (x + 1,))),
        Giving(CompilationResult(message="no registers left"), lambda x: (x + 1,)),
    ],
)
def test_what_cannot_be_compiled_falls_back_and_is_told(adapter, caplog):
    assert run(adapter).tolist() == [1.0] * 10
    (said,) = told(caplog)
    assert "npu could not compile" in said and "its fallback runs" in said and "no registers left" in said


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (ValueError("no registers left"), "ValueError: no registers left"),
        (CompilationResult(message="no registers left"), "no registers left"),
        (CompilationResult(status=SUCCESS), "it does not say why"),
        (None, "it gave a NoneType, not a CompilationResult"),
    ],
)
def test_without_a_fallback_the_failure_names_the_adapter_and_why(result, why):
    with pytest.raises(Exception, match="npu cannot compile the inference graph") as caught:
        run(Giving(result))
    failure = next(link for link in links(caught.value) if isinstance(link, AdapterError))
    assert failure.message.endswith(f"has no fallback: {why}")
    assert failure.hint
    assert isinstance(failure.__cause__, ValueError) is isinstance(result, ValueError)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"compiled": 5}, "TypeError: compiled is of type int, which cannot be called"),
        (
            {"compiled": add_one, "status": "done"},
            "ValueError: status is 'done'; it must be one of success, partial, failed",
        ),
    ],
)
def test_a_result_that_cannot_run_is_the_adapters_failure(given, why):
    class Wrong(Giving):
        def compile(self, graph_module: torch.fx.GraphModule, inputs: Sequence[object]) -> CompilationResult:
            return CompilationResult(**given)

    with pytest.raises(Exception, match="npu cannot compile") as caught:
        run(Wrong(None))
    failure = next(link for link in links(caught.value) if isinstance(link, AdapterError))
    assert (
        failure.message
        == f"the backend npu cannot compile the inference graph of frame 0/0, and has no fallback: {why}"
    )
    assert run(Wrong(None, lambda x: (x + 1,))).tolist() == [1.0] * 10


class FailingFallback(Giving):
    def fallback(self, graph_module: torch.fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object] | None:
        raise IndexError("no such kernel")


@pytest.mark.parametrize(
    ("adapter", "why"),
    [
        (FailingFallback(ValueError("full")), "its fallback fails: IndexError: no such kernel"),
        (Giving(ValueError("full"), 5), "its fallback gave a int, which cannot be called"),  # type: ignore[arg-type]
    ],
)
def test_a_fallback_that_fails_is_told_with_what_it_was_for(adapter, why):
    with pytest.raises(Exception, match="npu cannot compile") as caught:
        run(adapter)
    failure = next(link for link in links(caught.value) if isinstance(link, AdapterError))
    start = "the backend npu cannot compile the inference graph of frame 0/0 (ValueError: full), and "
    assert failure.message == start + why
    assert failure.hint


@pytest.mark.parametrize("key", ["name", "capabilities"])
def test_an_adapter_without_a_name_or_capabilities_is_named(key, monkeypatch):
    monkeypatch.setattr(Npu, key, None)
    who = "Npu" if key == "name" else "npu"
    with pytest.raises(idbg.IdbgError, match=f"the adapter {who} gives a NoneType as its {key}"):
        idbg.backend(Npu())


def test_denied_ops_may_be_a_list():
    class Listed(Npu):
        capabilities = Capabilities(denied_ops=["add"])  # type: ignore[arg-type]

    with pytest.raises(Exception, match="add is denied") as caught:
        run(Listed(), strict=True)
    assert any(isinstance(link, ConstraintViolation) for link in links(caught.value))


def test_a_success_with_nothing_to_say_says_nothing(caplog):
    caplog.set_level(logging.INFO)
    assert run(Giving(CompilationResult(status=SUCCESS, compiled=lambda x: (x + 1,)))).tolist() == [1.0] * 10
    assert told(caplog) == []


def test_a_session_says_that_it_cannot_check_capabilities_that_no_accelerator_holds():
    told: list[SessionEvent] = []
    with capturing(RunCapture(1, told.append, None)):
        run(Npu(), strict=True)
        torch._dynamo.reset()
        run(Giving(CompilationResult(status=SUCCESS, compiled=lambda x: (x + 1,))))
    (note,) = [event.text for event in told if isinstance(event, Noted)]
    assert "its package has no accelerator npu" in note


# Installed


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package as pip installs it, and beside it one that is broken."""
    pytest.importorskip("hatchling", reason="builds the package, without a network; it comes with .[dev]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*command, "--target", folder, PACKAGE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "broken-1.0.dist-info").mkdir()
    (folder / "broken-1.0.dist-info" / "METADATA").write_text("Name: broken\nVersion: 1.0\n")
    (folder / "broken-1.0.dist-info" / "entry_points.txt").write_text("[idbg.backends]\nwreck = no_such_driver\n")
    return folder


def python(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )


PROGRAM = """
import torch

def program():
    return torch.nn.Sequential(torch.nn.Linear({width}, 8), torch.nn.ReLU()), torch.ones(4, {width})
"""


def idbg_run(site: Path, tmp_path: Path, width: int, *options: str) -> tuple[int, dict[str, Any], str]:
    (tmp_path / "model.py").write_text(PROGRAM.format(width=width))
    done = python(site, "-m", "idbg", "run", str(tmp_path / "model.py"), "--json", *options)
    return done.returncode, json.loads(done.stdout), done.stderr


def test_an_installed_package_is_a_backend_of_torch_compile_by_name(site):
    code = (
        "import torch, idbg\n"
        "model, x = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU()), torch.randn(4, 64)\n"
        "for backend in ('tinyflow', idbg.backend('tinyflow', strict=True)):\n"
        "    torch._dynamo.reset()\n"
        "    torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))\n"
        "try: torch.compile(model, backend='tinyflow')(x.double())\n"
        "except Exception as error: print(error)\n"
    )
    done = python(site, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "violations of the rules of tinyflow" in done.stdout and "float64" in done.stdout


def test_an_installed_package_is_compiled_for_under_its_own_rules_and_told_to_the_screen(site, tmp_path):
    status, report, said = idbg_run(site, tmp_path, 64, "--backend", "tinyflow", "--warn")
    assert (status, report["target"]["accelerator"]) == (0, "tinyflow")
    assert {violation["rule"] for violation in report["violations"]} == {"full-rows"}
    assert "tinyflow" not in said, "all of it ran on the accelerator"
    (log,) = Path("debug_artifacts").glob("*/events.jsonl")
    started = next(event for line in log.open() if (event := json.loads(line))["type"] == "worker_started")
    known = {backend["name"]: backend for backend in started["backends"]}
    assert (
        known["tinyflow"]["about"].startswith("Tinyflow, an example accelerator") and "error" not in known["tinyflow"]
    )
    assert "no_such_driver" in known["wreck"]["error"]
    assert "inductor" not in known, "the screen knows ours"


def test_strict_refuses_what_an_installed_package_cannot_do(site, tmp_path):
    status, report, _ = idbg_run(site, tmp_path, 10, "--backend", "tinyflow", "--strict")
    assert status == 1
    assert {violation["rule"] for violation in report["violations"]} == {"full-rows", "alignment"}
    assert "rules of tinyflow" in report["error"]["message"]


def test_idbg_run_says_what_runs_on_the_host(site, tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\ndef wave(x): return torch.relu(x).sin()\ndef program(): return wave, torch.ones(16)\n"
    )
    done = python(site, "-m", "idbg", "run", str(tmp_path / "model.py"), "--backend", "tinyflow", "--warn")
    assert done.returncode == 0, done.stderr
    assert "idbg: tinyflow compiled the inference graph of frame 0/0, with status partial: on the host: " in done.stderr
    assert "aten.sin.default" in done.stderr
    assert "sin is not supported" in done.stdout


def test_idbg_info_lists_an_installed_package_and_what_is_broken_beside_it(site):
    written = python(site, "-m", "idbg", "info").stdout
    assert any(line.startswith("backends") and "tinyflow" in line for line in written.splitlines())
    assert "idbg.backends: wreck: ModuleNotFoundError: No module named 'no_such_driver'" in written


def test_a_broken_backend_that_is_asked_for_says_what_is_wrong(site, tmp_path):
    status, report, _ = idbg_run(site, tmp_path, 64, "--backend", "wreck")
    assert status == 2
    assert "the backend wreck cannot be used" in report["error"]["message"]
    assert "no_such_driver" in report["error"]["message"]
