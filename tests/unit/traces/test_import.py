"""Recorded traces of torch become sessions that every reader of sessions can read."""

from pathlib import Path

import pytest

from idbg.config.arguments import check_program, parse_program
from idbg.schema.decisions.dynamo import FrameGuards, FrameResult
from idbg.schema.decisions.inductor import Span
from idbg.schema.errors import BadInput, ProgramError
from idbg.schema.graphs import GraphId
from idbg.session.importing import Import, imported_before
from idbg.session.index import sessions
from idbg.session.session import Session
from idbg.traces import imported as imported_run
from tests.harness.traces import imported, recordings, trace_in, unpacked


@pytest.mark.parametrize("name", recordings("train"))
def test_a_training_has_its_graphs_code_kernels_links_guards_and_times(name: str, tmp_path: Path) -> None:
    run = imported(unpacked(name, tmp_path / "trace"), tmp_path / "out")
    stages = {(graph.frame, graph.stage, graph.part) for graph in run.graphs}
    wanted = {("0/0", stage, "") for stage in ("dynamo", "joint", "forward", "backward")}
    assert wanted | {("0/0", "post_grad", "forward"), ("0/0", "post_grad", "backward")} <= stages
    assert run.verdict == "compiled" and run.failure is None
    forward = run.graphs[GraphId("0/0", "forward")]
    assert {node.role for node in forward.nodes} >= {"weight", "input"}
    assert any(node.file.endswith("train.py") for node in forward.nodes)
    assert {part for _, part in run.codes} >= {"forward", "backward"}
    assert [kernel.name for kernel in run.kernels if kernel.source]
    assert {(links.above.stage, links.below.stage) for links in run.links} >= {
        ("dynamo", "joint"), ("joint", "forward"), ("dynamo", "forward"), ("forward", "post_grad")
    }  # fmt: skip
    assert run.decided.last(FrameGuards)["0/0"].guards and run.decided.last(FrameResult)["0/0"].end == "compiled"
    assert run.decided.last(Span) and run.seconds > 0
    assert {name for (_, _, _, name) in run.stages} >= {"fx_graph_runnable"}


@pytest.mark.parametrize("name", recordings("breaking"))
def test_breaks_recompiles_and_frames_that_were_given_up_are_those_of_the_program(name: str, tmp_path: Path) -> None:
    run = imported(unpacked(name, tmp_path / "trace"), tmp_path / "out")
    lines = {graph_break.line for graph_break in run.breaks if graph_break.file.endswith("breaking.py")}
    assert lines == ({9, 20, 27} if name.endswith("2.6") else {9, 20})  # 27 is an error: see test_failures
    assert run.recompiles[0].frame == "2/1"
    failed = run.recompiles[0].failed
    assert failed and failed[0].against == "2/0" and failed[0].expected == "2"
    assert run.decided.last(FrameResult)["5/0"].end in ("eager", "failed")


def test_rules_are_checked_on_imported_graphs_and_can_be_edited(tmp_path: Path) -> None:
    trace = unpacked(recordings("train")[-1], tmp_path / "trace")
    run = imported(trace, tmp_path / "out", "tpu")
    assert run.target.accelerator == "tpu" and run.checked
    folder = imported_before(trace, tmp_path / "out", "tpu")
    assert folder is not None
    with Session.open(folder) as session:
        edited = session.edit_rules('name = "mine"\n\n[[rules]]\nkind = "dtype"\nallowed = ["int8"]\n')
        assert edited is not None and session.target.rules.startswith('name = "mine"')


def test_an_import_says_why_nothing_can_be_run_in_it(tmp_path: Path) -> None:
    importing = Import(unpacked(recordings("train")[-1], tmp_path / "trace"), tmp_path / "out")
    importing.read()
    with Session.open(importing.folder) as session, pytest.raises(BadInput, match="imported from a trace"):
        session.run()


def test_no_command_runs_what_a_trace_is_of(tmp_path: Path) -> None:
    trace = unpacked(recordings("train")[-1], tmp_path / "trace")
    importing = Import(trace, tmp_path / "out")
    importing.read()
    with pytest.raises(BadInput, match="imported from a trace: the program is not here"):
        Session.resume(importing.folder)
    with Session.open(importing.folder) as saved, pytest.raises(BadInput, match="imported from a trace"):
        Session(saved.program, saved.target, output=tmp_path / "other")
    with pytest.raises(ProgramError, match="is a trace of another job: the program is not in it"):
        check_program(parse_program(str(trace), cwd=str(tmp_path)))


def test_a_list_of_sessions_says_what_it_is(tmp_path: Path) -> None:
    run = imported(unpacked(recordings("breaking")[0], tmp_path / "trace"), tmp_path / "out")
    (listed,) = sessions(tmp_path / "out")
    assert (listed.verdict, listed.graphs, listed.kernels) == ("failed", len(run.graphs), len(run.kernels))
    assert listed.breaks == run.times_broken and listed.ended


def test_graphs_of_old_frames_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imported_run, "NODES_HELD", 1)
    monkeypatch.setattr(imported_run, "NODES_PARSED", 1)
    few = imported(unpacked(recordings("breaking")[0], tmp_path / "trace"), tmp_path / "out")
    monkeypatch.undo()
    all_held = imported(tmp_path / "trace", tmp_path / "other")
    assert few.graphs == all_held.graphs and few.links == all_held.links


def test_a_trace_is_imported_once_for_the_same_rules(tmp_path: Path) -> None:
    trace = unpacked(recordings("train")[-1], tmp_path / "trace")
    output = tmp_path / "out"
    importing = Import(trace, output)
    importing.read()
    assert imported_before(trace, output, "") == importing.folder
    assert imported_before(trace, output, "tpu") is None
    next(trace.glob("*.log")).write_bytes(b"")
    assert imported_before(trace, output, "") is None


def test_a_folder_without_a_trace_is_refused_and_nothing_is_created(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no trace")
    with pytest.raises(BadInput, match="no trace in"):
        Import(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_trace_of_nothing_is_an_empty_session(tmp_path: Path) -> None:
    run = imported(trace_in(tmp_path / "trace", b""), tmp_path / "out")
    assert run.verdict == "empty" and not run.graphs


def test_kernels_of_a_trace_without_provenance_have_their_calls_and_what_torch_writes_above_them(
    tmp_path: Path,
) -> None:
    run = imported(unpacked("attention-2.11", tmp_path / "trace"), tmp_path / "out")
    assert "[Provenance" not in "".join(code.text for code in run.codes.values())
    kernels = {kernel.name: kernel for kernel in run.kernels if kernel.part == "forward"}
    norm = kernels["triton_per_fused_native_layer_norm_0"]  # as the same program's live capture has it
    assert set(norm.nodes) == {"var_mean", "rsqrt", "add", "add_1", "mul_1", "mul", "sub"}
    assert (
        "triton_per_fused_native_layer_norm_0.run("
        in run.codes["0/0", "forward"].text.split("\n")[norm.calls[0].line - 1]
    )
    assert [call.nodes for call in kernels["extern_kernels.addmm"].calls] == [("addmm",), ("addmm_1",), ("addmm_2",)]
    (own,) = [kernel for kernel in run.kernels if kernel.name == "gate_kernel_0"]
    assert len(own.calls) == 1 and own.frame == "1/0"
