"""None, zero and not recorded are different: of what a trace does not record no output says that it has none."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from idbg import views
from idbg.reports import decisions, text
from idbg.reports.documents import SessionData, html
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, Run
from idbg_tui.panes.why import views as panes
from tests.harness.traces import RECORDED, imported, line, trace_in, unpacked

WHERE: dict[str, object] = {"frame_id": 0, "frame_compile_id": 0}
GRAPH = 'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[4][1]cpu"):\n        return (x,)\n'
OLD = ("breaks", "recompiles", "guards", "cache", "time", "passes", "fusion", "autotune", "cuda_graphs", "splits")
"""The views that a trace of a torch before 2.6, of a compile without guards and times, cannot answer."""
NONE = (
    "no graph break",
    "no recompile",
    "no guard",
    "no cache",
    "nothing was compiled",
    "no pass",
    "no fusion",
    "no auto",
)


def old_trace(folder: Path) -> Path:
    content = line({"dynamo_start": {"stack": [{"line": 3, "name": "f", "filename": "m.py"}]}, **WHERE})
    content += line({"dynamo_output_graph": {}, **WHERE}, GRAPH)
    content += line({"compilation_metrics": {"co_name": "f", "guard_count": 9, "graph_op_count": 1}, **WHERE})
    return trace_in(folder, content)


def dumps(folder: Path) -> Path:
    shutil.unpack_archive(RECORDED / "debug-2.15" / "torch_compile_debug.tar.gz", folder)
    return next(folder.glob("*/run_*"))


def tritonparse(folder: Path) -> Path:
    (packed,) = (RECORDED.parent / "tritonparse").iterdir()
    folder.mkdir()
    (folder / "x.ndjson").write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


@pytest.mark.parametrize("source", [old_trace, dumps, tritonparse])
def test_what_is_not_recorded_is_said_in_each_output(source: object, tmp_path: Path) -> None:
    run = imported(source(tmp_path / "trace"), tmp_path / "out")  # type: ignore[operator]
    for name in OLD:
        section = decisions.section(name, run)
        assert section.summary.startswith("not recorded: the trace does not have "), name
        assert (section.count, section.verdict) == (None, "unknown")
        assert "\n".join(decisions.text(name, run)).startswith("not recorded: ")
        assert (decisions.as_json(name, run) is None) == (not section.body) and views.count(name, run) is None
        if name in panes.VIEWS:
            assert panes.empty(name, run).startswith("not recorded: ")  # type: ignore[arg-type]
    said = "\n".join(decisions.text("summary", run))
    for words in ("graph breaks not recorded", "guards not recorded", "answers of caches not recorded"):
        assert words in said or (words.startswith("graph") and not run.graphs), said
    assert text.summary_json(run)["breaks"] is None and text.summary_json(run)["skips"] is None
    page = html.render(SessionData("trace", History({1: run}))).decode()
    assert "not recorded: " in page and not [words for words in NONE if words in page]


def test_what_a_new_trace_has_none_of_is_none(tmp_path: Path) -> None:
    run = imported(unpacked("train-2.15", tmp_path / "trace"), tmp_path / "out")
    assert decisions.section("breaks", run).summary == "no graph breaks"
    assert decisions.section("breaks", run).count == 0 and decisions.as_json("breaks", run) == []
    assert not run.unrecorded & {"breaks", "recompiles", "guards", "cache", "time", "graphs"}
    for name in ("autotune", "cuda_graphs", "passes"):  # torch's trace never has them
        assert decisions.section(name, run).summary.startswith("not recorded: ")
    fusion = decisions.section("fusion", run)
    assert fusion.body and "cache" not in fusion.summary and fusion.summary.startswith("not recorded: ")


def test_a_captured_run_has_records_of_all() -> None:
    run = Run(1, Program("m.py"), Target(), 0.0)
    assert decisions.section("breaks", run).summary == "no graph breaks" and views.count("breaks", run) == 0


def test_each_view_names_records_that_have_words() -> None:
    assert set(views.records.WORDS) - {"skips"} <= set(decisions.VIEWS)


def test_kernels_of_triton_alone_are_not_built_by_cpp_and_their_traffic_is_not_zero(tmp_path: Path) -> None:
    code = "k = async_compile.triton('k', '''\nx\n''')\ndef call(args):\n    k.run(buf0)\n"
    at = {"name": "async_compile.wait", "cat": "x"}
    content = line({"inductor_output_code": {}, **WHERE}, code)
    for stamp, phase in ((1e15, "B"), (1e15 + 5e6, "E")):
        content += line({"chromium_event": {}, **WHERE}, json.dumps({**at, "ph": phase, "ts": stamp}))
    run = imported(trace_in(tmp_path / "trace", content), tmp_path / "out")
    shown = "\n".join(decisions.text("time", run))
    assert "Triton" in shown and "C++" not in shown and "cpp_cache" not in shown
    assert "0 B" not in "\n".join(decisions.text("fusion", run))
