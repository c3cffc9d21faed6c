"""Stages of other compilers are captured from a compile, and what is wrong with one costs nothing else of the run."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch._logging._internal import trace_structured
from torch.fx import GraphModule

import idbg
from idbg import AcceleratorAdapter, CompilationResult, CompilationStatus, StageReader, StageText, plugins
from idbg import stages as public
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import NO_RULES
from idbg.engine.backends import TargetBackend
from idbg.engine.backends.adapter import AdapterBackend
from idbg.engine.backends.program_backend import ProgramBackend
from idbg.engine.capture.run import RunCapture, capturing
from idbg.engine.compat.lowering import Compiled
from idbg.engine.decisions import record_all
from idbg.engine.stages import readers
from idbg.schema import events
from idbg.schema.code import CompilerStage
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import GraphId
from idbg.traces import stages as collected

Does = Callable[[GraphModule], None]
DYNAMO = GraphId("0/0", "dynamo")


def two_ops(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.relu()


def backend(does: Does, package: str = "acme") -> Callable[..., Compiled]:
    """A backend of another package, which `does` something while it compiles, and runs the graph as it is."""
    module = ModuleType(f"{package}.torch_backend")
    vars(module).update(does=does)
    exec("def compile_graph(gm, inputs):\n    does(gm)\n    return gm.forward", vars(module))
    return vars(module)["compile_graph"]  # type: ignore[no-any-return]


def captured(does: Does | AcceleratorAdapter, folder: Path | None = None) -> list[SessionEvent]:
    """The events of a run with such a backend, or with an adapter."""
    found: list[SessionEvent] = []
    torch._dynamo.reset()
    capture = RunCapture(1, found.append, parse(NO_RULES))
    capture.stages.folder = folder
    inner = (
        AdapterBackend(does) if isinstance(does, AcceleratorAdapter) else ProgramBackend(backend(does), checks=False)
    )
    with capturing(capture), record_all(capture):
        x = torch.randn(4)
        result = torch.compile(two_ops, backend=TargetBackend(inner, parse(NO_RULES), strict=False))(x)
        assert torch.equal(result, two_ops(x))
    return found


def stages(found: list[SessionEvent]) -> list[CompilerStage]:
    return [event.stage for event in found if isinstance(event, events.StageCaptured)]


def notes(found: list[SessionEvent]) -> list[str]:
    return [event.text for event in found if isinstance(event, events.Noted)]


def artifact(name: str, text: str) -> Does:
    """Log an artifact as vLLM and Gaudi do, from a module of another package."""
    module = ModuleType("acme.logging")
    vars(module).update(trace_structured=trace_structured, name=name, text=text)
    metadata = 'lambda: {"name": name, "encoding": "string"}'
    exec(f'def log(gm):\n    trace_structured("artifact", {metadata}, payload_fn=lambda: text)', vars(module))
    return vars(module)["log"]  # type: ignore[no-any-return]


# artifacts of the structured trace


def test_an_artifact_that_a_backend_logs_is_a_stage_of_its_package() -> None:
    (stage,) = stages(captured(artifact("acme_graph", '%0 = acme.sin loc("y")\n%1 = acme.relu loc("relu")')))
    assert (stage.compiler, stage.name, stage.language, stage.origin) == ("acme", "acme_graph", "mlir", "artifact")
    assert stage.graph == DYNAMO and stage.links[0] == (1, ("y",)) and stage.frame == "0/0"


def test_what_torch_logs_itself_is_no_stage() -> None:
    found: list[SessionEvent] = []
    torch._dynamo.reset()
    with capturing(RunCapture(1, found.append, None)) as capture, record_all(capture):
        torch.compile(two_ops, backend="inductor")(torch.randn(4))
    assert stages(found) == []


# idbg.stage


def test_a_call_outside_of_a_session_does_nothing() -> None:
    assert public._sinks == []
    idbg.stage("ir", object())  # type: ignore[arg-type]


def test_a_call_in_a_compile_is_linked_by_line_and_by_handle() -> None:
    def does(gm: GraphModule) -> None:
        idbg.stage("ir", "sin\n[op 7] relu", links={1: "y", "[op 7]": ["relu"]}, compiler="acme")

    (stage,) = stages(captured(does))
    assert stage.links == ((1, ("y",)), (2, ("relu",))) and stage.origin == "call"


def test_the_calling_package_is_the_compiler() -> None:
    module = ModuleType("acme.passes")
    vars(module)["idbg"] = idbg
    exec("def does(gm):\n    idbg.stage('ir', 'text')\n    idbg.stage('ir', 'another')", vars(module))
    found = stages(captured(vars(module)["does"]))
    assert [(stage.compiler, stage.name) for stage in found] == [("acme", "ir"), ("acme", "ir (2)")]


def test_links_to_nodes_that_do_not_exist_are_left_out_with_one_sentence() -> None:
    def does(gm: GraphModule) -> None:
        idbg.stage("ir", "a\nb", links={1: ["y", "nobody"], 2: "nothing"}, compiler="acme")

    found = captured(does)
    assert stages(found)[0].links == ((1, ("y",)),)
    (note,) = notes(found)
    assert note == ("acme links its stage ir to nodes that do not exist (nobody, nothing): these links are left out")


def test_what_is_no_stage_is_one_sentence_and_the_compile_goes_on() -> None:
    def does(gm: GraphModule) -> None:
        idbg.stage("ir", 7, compiler="acme")  # type: ignore[arg-type]
        idbg.stage("good", "text", links={1: 7}, compiler="acme")  # type: ignore[dict-item]

    found = captured(does)
    assert [stage.name for stage in stages(found)] == ["good"]
    assert notes(found) == [
        "a stage of acme is left out: the text of ir is of type int, not str or bytes",
        "links of acme's stage good are left out: a link is a line or a string, and names of nodes",
    ]


def test_a_binary_is_named_with_its_size() -> None:
    def does(gm: GraphModule) -> None:
        idbg.stage("elf", b"\x7fELF\0\0" * 1000, compiler="acme")
        idbg.stage("latin", b"\xe9" * 10, compiler="acme")

    found = stages(captured(does))
    assert [(stage.name, stage.binary, stage.size, stage.text) for stage in found] == [
        ("elf", True, 6000, ""),
        ("latin", True, 10, ""),
    ]


def test_a_long_text_is_a_file_of_the_session_and_a_short_one_is_in_the_event(tmp_path: Path) -> None:
    long = "%0 = acme.sin\n" * 7_200_000  # 100 MB

    def does(gm: GraphModule) -> None:
        idbg.stage("long", long, language="mlir", links={1: "y"}, compiler="acme")
        idbg.stage("short", "text", compiler="acme")

    began = time.monotonic()
    found = stages(captured(does, tmp_path))
    assert time.monotonic() - began < 30
    assert (found[0].text, found[0].size, found[0].file) == ("", len(long), "run-1/stages/001-acme-long.mlir")
    assert (tmp_path / found[0].file).stat().st_size == len(long) and found[0].links == ((1, ("y",)),)
    assert (found[1].text, found[1].file) == ("text", "run-1/stages/002-acme-short.txt")


def test_without_a_folder_a_long_text_is_cut_with_a_sentence() -> None:
    found = captured(lambda gm: idbg.stage("long", "a" * 300_000, compiler="acme"))
    (stage,) = stages(found)
    assert len(stage.text) == collected.TEXT_LIMIT and stage.size == 300_000
    assert len(notes(found)) == 1 and "is cut after" in notes(found)[0]


def test_the_limits_of_a_run_are_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(collected, "MOST", 3)
    monkeypatch.setattr(collected, "RUN_LIMIT", 10)

    def does(gm: GraphModule) -> None:
        for number in range(9):
            idbg.stage(f"ir{number}", "12345678", compiler="acme")

    found = captured(does, tmp_path)
    assert [(stage.name, stage.text) for stage in stages(found)] == [("ir0", "12345678"), ("ir1", ""), ("ir2", "")]
    assert sum("more stages than the 3" in note for note in notes(found)) == 1


def test_a_frame_that_is_traced_again_has_its_last_stages() -> None:
    calls: list[str] = []

    def does(gm: GraphModule) -> None:
        calls.append("compiled")
        idbg.stage("ir", f"number {len(calls)}", compiler="acme")

    found = captured(does)
    assert [stage.text for stage in stages(found)] == ["number 1"]


# adapters


class Staged(AcceleratorAdapter):
    """Returns these as its stages."""

    name = "npu"

    def __init__(self, *texts: object) -> None:
        self.texts = texts

    def compile(self, graph_module: GraphModule, inputs: Sequence[object]) -> CompilationResult:
        return CompilationResult(
            status=CompilationStatus.SUCCESS,
            compiled=graph_module.forward,
            stages=self.texts,  # type: ignore[arg-type]
        )


def test_an_adapter_returns_its_stages() -> None:
    (stage,) = stages(captured(Staged(StageText("schedule", "sin\nrelu", links={1: "sin", 2: "relu"}))))
    assert (stage.compiler, stage.part, stage.origin) == ("npu", "inference", "adapter")
    assert stage.graph == GraphId("0/0", "inference") and stage.links == ((1, ("sin",)), (2, ("relu",)))


def test_an_adapter_that_returns_something_else_compiles_all_the_same() -> None:
    found = captured(Staged("text"))
    assert stages(found) == []
    assert notes(found) == ["a stage of npu is left out: it is of type str, not StageText"]


# readers of dumps


@contextmanager
def dumping_into(folder: Path) -> Iterator[None]:
    os.environ["IDBG_ACME_DUMP"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("IDBG_ACME_DUMP", None)


class Reader(StageReader):
    """Reads what `acme` dumps into the folder that IDBG_ACME_DUMP names."""

    compiler, package = "acme", "acme_compiler"

    def dumping(self, folder: Path, ready: Callable[[], None]) -> AbstractContextManager[None]:
        return dumping_into(folder)

    def read(self, folder: Path) -> Iterable[StageText]:
        for file in sorted(folder.iterdir()):
            yield StageText(file.stem, file.read_bytes())


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Installs a reader under the entry points; the program has imported its compiler."""

    def install(reader: object) -> None:
        monkeypatch.setitem(sys.modules, "acme_compiler", ModuleType("acme_compiler"))
        loaded = SimpleNamespace(values={"acme": reader}, broken={"wreck": "ImportError: no driver"})
        monkeypatch.setattr(plugins, "load", lambda group: loaded)

    return install


def dump(gm: GraphModule) -> None:
    """What acme's compiler does."""
    folder = Path(os.environ.get("IDBG_ACME_DUMP", "/nonexistent"))
    if folder.is_dir():
        (folder / "1.high.mlir").write_text('acme.sin loc("y")')
        (folder / "2.low.mlir").write_text('acme.sin.tile loc("y")')


WRECK = "the stage reader wreck cannot be imported: ImportError: no driver"


def test_dumps_are_read_after_each_graph_and_the_folder_is_empty_again(acme: Callable[[object], None]) -> None:
    acme(Reader)
    folders: list[Path] = []

    def does(gm: GraphModule) -> None:
        folders.append(Path(os.environ["IDBG_ACME_DUMP"]))
        dump(gm)

    found = captured(does)
    assert [(stage.name, stage.links) for stage in stages(found)] == [
        ("1.high", ((1, ("y",)),)),
        ("2.low", ((1, ("y",)),)),
    ]
    assert notes(found) == [WRECK]
    assert not folders[0].exists() and "IDBG_ACME_DUMP" not in os.environ


def test_a_reader_waits_for_the_import_of_its_compiler() -> None:
    class Unused(Reader):
        package = "no_such_module_of_acme"

        def dumping(self, folder: Path, ready: Callable[[], None]) -> AbstractContextManager[None]:
            raise AssertionError("it was never imported")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "load", lambda group: SimpleNamespace(values={"acme": Unused}, broken={}))
        assert notes(captured(dump)) == []


class Raising(Reader):
    """Fails while it reads."""

    def read(self, folder: Path) -> Iterable[StageText]:
        raise ValueError("no such format")


class Exiting(Reader):
    """Ends the process, if it can."""

    def read(self, folder: Path) -> Iterable[StageText]:
        raise SystemExit(3)


class Hanging(Reader):
    """Never comes back."""

    def read(self, folder: Path) -> Iterable[StageText]:
        time.sleep(60)
        return ()


class RaisingAtOnce(Reader):
    """Cannot make its compiler dump."""

    def dumping(self, folder: Path, ready: Callable[[], None]) -> AbstractContextManager[None]:
        raise OSError("no license")


class OfAnotherRun(Reader):
    """Has files of another run beside those of this one."""

    def read(self, folder: Path) -> Iterable[StageText]:
        yield StageText("old", "text", frame="7/3")
        yield from super().read(folder)


@pytest.mark.parametrize(
    ("reader", "why"),
    [
        (Raising, "the dumps of acme are not read: its reader failed: ValueError: no such format"),
        (Exiting, "the dumps of acme are not read: its reader failed: SystemExit: 3"),
        (Hanging, "the dumps of acme are not read: its reader failed: it takes longer than 0.5 s"),
        (RaisingAtOnce, "the dumps of acme are not read: its reader failed: OSError: no license"),
        (7, "the stage reader acme cannot be used: AssertionError: it is of type int, not a class"),
        (dict, "the stage reader acme cannot be used: AssertionError: dict is no idbg.StageReader"),
    ],
)
def test_a_reader_that_fails_is_one_sentence_and_the_rest_of_the_run_is_complete(
    acme: Callable[[object], None], monkeypatch: pytest.MonkeyPatch, reader: object, why: str
) -> None:
    monkeypatch.setattr(readers, "SECONDS", 0.5)
    acme(reader)

    def does(gm: GraphModule) -> None:
        dump(gm)
        idbg.stage("called", "text", compiler="acme")

    found = captured(does)
    assert [stage.name for stage in stages(found)] == ["called"]
    assert sorted(notes(found)) == sorted([WRECK, why])
    assert any(isinstance(event, events.GraphCaptured) for event in found)


def test_dumps_of_another_run_are_left_out_with_a_sentence(acme: Callable[[object], None]) -> None:
    acme(OfAnotherRun)
    found = captured(dump)
    assert [stage.name for stage in stages(found)] == ["1.high", "2.low"]
    assert notes(found) == [WRECK, "dumps of acme for frame 7/3 are of another run: they are left out"]


def test_files_that_are_older_than_the_run_are_left_out_with_a_sentence(acme: Callable[[object], None]) -> None:
    acme(Reader)

    def does(gm: GraphModule) -> None:
        dump(gm)
        os.utime(Path(os.environ["IDBG_ACME_DUMP"], "1.high.mlir"), (1e9, 1e9))

    found = captured(does)
    assert [stage.name for stage in stages(found)] == ["2.low"]
    older = "1 file among the dumps of acme is older than this run: it is of another run and is left out"
    assert notes(found) == [WRECK, older]
