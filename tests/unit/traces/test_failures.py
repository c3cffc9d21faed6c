"""What failed in a traced job is shown as a failure, and what the trace does not say is left open."""

from pathlib import Path

from idbg.analysis.decisions.breaks import WAYS, places
from idbg.format.failures import frame_words
from idbg.reports.commands import ask, command
from idbg.schema.decisions.dynamo import FrameGuards, FrameResult
from idbg.schema.graphs import GraphId
from idbg.traces.run import first_words
from idbg.views.guards import cost
from tests.harness.traces import RECORDED, imported, line, trace_in, unpacked

FAILING = (RECORDED / "programs" / "failing.py").read_text().splitlines()


def test_each_failure_has_its_owner_and_its_reason(tmp_path: Path) -> None:
    run = imported(unpacked("failing-2.15", tmp_path / "trace"), tmp_path / "out")
    assert run.verdict == "failed"
    failed = {each.frame: each for each in run.frame_failures}
    by_backend, by_lowering, whole = (failed[frame].failure for frame in ("0/0", "1/0", "4/0"))
    assert (by_backend.kind, by_backend.type) == ("backend", "RuntimeError")
    assert by_backend.message == "softmax is not supported"
    assert run.decided.last(FrameResult)["0/0"].why == "RuntimeError: softmax is not supported"
    assert by_lowering.kind == "torch" and "no lowering of twice for this layout" in by_lowering.message
    at = next(i for i, text in enumerate(FAILING, 1) if 'RuntimeError("softmax' in text)
    assert by_backend.file.endswith("failing.py") and by_backend.line == at
    assert by_lowering.file.endswith("failing.py") and by_lowering.line == 35
    assert all("File " in failure.traceback for failure in (by_backend, by_lowering, whole))
    assert whole.type == "Unsupported" and whole.file.endswith("failing.py") and whole.line == 48
    assert {frame: run.decided.last(FrameResult)[frame].end for frame in failed} == dict.fromkeys(failed, "failed")
    assert run.backend.startswith("picky")


def test_a_break_with_fullgraph_is_a_failure_and_others_are_breaks(tmp_path: Path) -> None:
    run = imported(unpacked("failing-2.15", tmp_path / "trace"), tmp_path / "out")
    assert {each.frame for each in run.breaks} == {"2/0"}
    assert [each.frame for each in run.frame_failures][-1] == "4/0"


def test_whether_a_program_went_on_is_known_where_something_follows(tmp_path: Path) -> None:
    run = imported(unpacked("failing-2.15", tmp_path / "trace"), tmp_path / "out")
    words = {each.frame: frame_words(each.frame, each.failure, went_on=each.went_on) for each in run.frame_failures}
    assert words["0/0"] == "frame 0/0 did not compile, and the program went on"
    assert words["4/0"] == "frame 4/0 did not compile; nothing follows in the trace"
    assert "ended the program" in run.frame_failures[-1].failure.hint


def test_a_trace_of_an_old_torch_does_not_say_whether_a_break_was_an_error(tmp_path: Path) -> None:
    old = imported(unpacked("breaking-2.6", tmp_path / "trace"), tmp_path / "out")
    (at_27,) = (each for each in old.breaks if each.line == 27)
    assert at_27.way == "frame or error" and "does not say" in WAYS[at_27.way]
    new = imported(unpacked("breaking-2.15", tmp_path / "new"), tmp_path / "out")
    assert not [each for each in new.breaks if each.line == 27]
    assert [each.failure.line for each in new.frame_failures] == [27]


def test_aotinductor_compiles_are_frames_with_code_and_kernels(tmp_path: Path) -> None:
    run = imported(unpacked("exported-2.15", tmp_path / "trace"), tmp_path / "out")
    assert run.backend == "aoti"
    assert list(run.frames) == ["aoti", "aoti#2"]
    for name, frame in run.frames.items():
        assert frame.file.endswith("exported.py") and frame.line == 17
        assert {GraphId(name, "inference"), GraphId(name, "post_grad", "inference")} <= run.graphs.keys()
        result = run.decided.last(FrameResult)[name]
        assert result.end == "compiled" and result.seconds
        kernels = {kernel.name: kernel for kernel in run.kernels if kernel.frame == name}
        assert kernels["aoti_torch_cpu_addmm_out"].calls[0].nodes == ("addmm",)
        generated = [kernel for kernel in kernels.values() if kernel.language == "cpp"]
        assert generated and all(kernel.source and kernel.calls for kernel in generated)


def test_the_first_words_of_a_backends_error_are_its_own() -> None:
    assert first_words("backend='mine' raised:\nValueError: no\nmore") == "ValueError: no"
    assert first_words("LoweringException: no\nmore") == "LoweringException: no"


def test_what_follows_a_break_is_linked_to_it(tmp_path: Path) -> None:
    run = imported(unpacked("breaking-2.15", tmp_path / "trace"), tmp_path / "out")
    parents = {frame.function: frame.parent for frame in run.frames.values()}
    assert parents["prints"] == "" and parents["torch_dynamo_resume_in_prints_at_9"] == "0/0"
    (at_9,) = (place for place in places(run) if place.line == 9)
    assert [side.kernels_after for side in at_9.sides] == [1] and at_9.seconds


def test_a_suggestion_names_a_size_as_torch_takes_it(tmp_path: Path) -> None:
    run = imported(unpacked("breaking-2.15", tmp_path / "trace"), tmp_path / "out")
    assert run.recompiles[0].failed[0].source == "L['by']"


def test_no_command_of_a_report_runs_a_trace(tmp_path: Path) -> None:
    run = imported(unpacked("breaking-2.15", tmp_path / "trace"), tmp_path / "out")
    assert command(run) == "idbg run FILE.py --accelerator none --warn"
    assert ask("bench", run) == "idbg bench FILE.py"
    assert cost(run, run.decided.last(FrameGuards)["0/0"]).endswith("not measured: it is not in a trace")


EXPORTED = """ExportedProgram:
    class GraphModule(torch.nn.Module):
        def forward(self, x: "f32[3]"):
             # File: m.py:4 in forward, code: return x.relu()
            relu: "f32[3]" = torch.ops.aten.relu.default(x);  x = None
            return (relu,)

Graph signature: ExportGraphSignature(input_specs=[])
Range constraints: {}
"""
PARTIAL = """


def forward(self, arg0_1: "f32[3]"):
    # File: m.py:4 in forward, code: if x.sum() > 0: return x
    sum_1: "f32[]" = torch.ops.aten.sum.default(arg0_1);  arg0_1 = None
    gt: "b8[]" = torch.ops.aten.gt.Scalar(sum_1, 0);  sum_1 = None
    """


def test_an_exported_program_is_a_graph(tmp_path: Path) -> None:
    reason = '{"op": "mine::twice", "reason": "no fake impl"}'
    content = line({"missing_fake_kernel": {}}, reason) + line({"exported_program": {}}, EXPORTED)
    run = imported(trace_in(tmp_path / "trace", content), tmp_path / "out")
    (graph,) = run.graphs.values()
    assert [node.name for node in graph.nodes] == ["x", "relu", "output"] and run.verdict == "compiled"
    assert run.frames["export"].line == 4


def test_an_export_that_failed_has_what_was_traced_and_the_line(tmp_path: Path) -> None:
    where: dict[str, object] = {"artifact": {"name": "make_fx_fail_partial"}, "frame_id": 1, "frame_compile_id": 0}
    run = imported(trace_in(tmp_path / "trace", line(where, PARTIAL)), tmp_path / "out")
    (failed,) = run.frame_failures
    assert run.verdict == "failed" and (failed.failure.file, failed.failure.line) == ("m.py", 4)
    assert failed.failure.message == "torch.export failed at if x.sum() > 0: return x"
    assert [node.name for graph in run.graphs.values() for node in graph.nodes] == ["arg0_1", "sum_1", "gt"]
