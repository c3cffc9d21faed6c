"""A torch_compile_debug folder and tritonparse's ndjson become sessions."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from idbg.schema.runs import Run, fold
from idbg.session.importing import Import
from idbg.session.reading import load
from tests.harness.traces import RECORDED, recordings


def imported(source: Path, output: Path) -> Run:
    importing = Import(source, output)
    importing.read()
    run = fold(load(importing.folder)).last
    assert run is not None
    return run


@pytest.fixture(params=recordings("debug"))
def dumped(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shutil.unpack_archive(RECORDED / request.param / "torch_compile_debug.tar.gz", tmp_path)
    return tmp_path / "torch_compile_debug"


def test_dumps_alone_have_graphs_code_and_the_scheduler(dumped: Path, tmp_path: Path) -> None:
    shutil.rmtree(dumped / "tlparse")
    run = imported(dumped, tmp_path / "out")
    found = {(graph.stage, graph.part) for graph in run.graphs}
    assert {("forward", ""), ("backward", ""), ("post_grad", "forward"), ("post_grad", "backward")} <= found
    assert run.verdict == "compiled" and all(kernel.calls for kernel in run.kernels)
    assert {name for (_, _, _, name) in run.stages} >= {"ir_pre_fusion.txt", "ir_post_fusion.txt"}


def test_dumps_beside_a_trace_add_the_scheduler_to_its_frames(dumped: Path, tmp_path: Path) -> None:
    run = imported(dumped, tmp_path / "out")
    assert ("0/0", "dynamo") in {(graph.frame, graph.stage) for graph in run.graphs}
    stages = {(frame, part, name) for (frame, part, _, name) in run.stages}
    assert {("0/0", "forward", "ir_post_fusion.txt"), ("0/1", "backward", "ir_pre_fusion.txt")} <= stages


def test_a_recorded_tritonparse_log_of_a_gpu(tmp_path: Path) -> None:
    (packed,) = (RECORDED.parent / "tritonparse").iterdir()
    file = tmp_path / packed.name.removesuffix(".gz")
    file.write_bytes(gzip.decompress(packed.read_bytes()))
    importing = Import(file, tmp_path / "out")
    importing.read()
    history = fold(load(importing.folder))
    run = history.last
    assert run is not None and not history.missing
    assert run.verdict == "compiled", "no graph, and four kernels"
    own, *of_compile = run.kernels
    assert own.name == "scaled_add" and own.source.startswith("@triton.jit")
    assert {kernel.name.partition(" (")[0] for kernel in of_compile} == {
        "triton_per_fused__softmax_add_exp_prepare_softmax_online_relu_sub_0"
    }
    lowered = run.lowered[own.frame, "", own.name]
    assert [text.name for text in lowered.texts] == ["TTIR", "TTGIR", "LLVM IR", "PTX"]
    assert lowered.resources is not None and lowered.resources.warps == 4
    frame = run.frames[own.frame]
    assert (frame.file, frame.line) == ("/tmp/prog.py", 4)
    run.let_go()
    assert run.verdict == "compiled"


def test_files_that_tritonparse_parsed_have_the_process_of_their_records(tmp_path: Path) -> None:
    """It parses a log into one file a frame, which is named after that."""
    (packed,) = (RECORDED.parent / "tritonparse").iterdir()
    folder = tmp_path / "parsed"
    folder.mkdir()
    for name in ("f0_fc0_a0_cai-.ndjson.gz", packed.name):
        (folder / name).write_bytes(packed.read_bytes())
    done: list[int] = []
    importing = Import(folder, tmp_path / "out")
    importing.read(done.append)
    assert done == sorted(done) and done[-1] <= 2 * packed.stat().st_size, (
        "bytes of the files, and not of what is in them"
    )
    history = fold(load(importing.folder))
    assert sorted(history.processes) == ["process-490", "process-490-2"]


def test_two_files_that_tritonparse_parsed_of_one_process_are_one_process(tmp_path: Path) -> None:
    (packed,) = (RECORDED.parent / "tritonparse").iterdir()
    folder = tmp_path / "parsed"
    folder.mkdir()
    for name in ("f0_fc0_a0_cai-.ndjson.gz", "f1_fc0_a0_cai-.ndjson.gz"):
        (folder / name).write_bytes(packed.read_bytes())
    importing = Import(folder, tmp_path / "out")
    importing.read(lambda _: None)
    history = fold(load(importing.folder))
    assert not history.processes and len(history.runs) == 1


def test_tritonparse_has_kernels_with_what_they_were_lowered_to(tmp_path: Path) -> None:
    """By the documented form of its records, with a torn line."""
    compiled = {
        "event_type": "compilation",
        "pid": 7,
        "timestamp": "2026-11-28T10:15:00.%fZ",
        "payload": {
            "metadata": {"name": "add_kernel", "hash": "abc", "num_warps": 4, "shared": 0, "cache_hit": False},
            "file_content": {"add_kernel.ttir": "module {}", "add_kernel.ptx": ".version 8.0"},
            "python_source": {"file_path": "/job/add.py", "start_line": 3, "code": "def add_kernel(x): ..."},
        },
    }
    launch = {"event_type": "launch", "pid": 7, "compilation_metadata": {"hash": "abc"}, "grid": [4]}
    lines = [json.dumps(compiled), json.dumps(launch), json.dumps(launch), "torn {"]
    file = tmp_path / "dedicated_log_triton_trace_rank_3_pid_7_host_node1_.ndjson"
    file.write_text("\n".join(lines))
    importing = Import(file, tmp_path / "out")
    importing.read()
    history = fold(load(importing.folder))
    assert history.last is not None
    (kernel,) = history.last.kernels
    assert kernel.name == "add_kernel" and kernel.source.startswith("def add_kernel")
    lowered = history.last.lowered["triton", "", "add_kernel"]
    assert [text.name for text in lowered.texts] == ["TTIR", "PTX"]
    assert lowered.resources is not None and lowered.resources.warps == 4
    assert any("1 line" in text for text in history.missing)


@pytest.mark.parametrize("label", ["", "night-", "my run_"])
@pytest.mark.parametrize("below", ["", "torchinductor", "graph"])
def test_a_part_of_the_dumps_or_one_with_a_label_is_read(label: str, below: str, dumped: Path, tmp_path: Path) -> None:
    shutil.rmtree(dumped / "tlparse")
    (run,) = dumped.glob("run_*")
    renamed = run.rename(run.with_name(label + run.name))
    graph = next(renamed.glob("torchinductor/*forward*"))
    named = {"": dumped, "torchinductor": renamed / "torchinductor", "graph": graph}[below]
    assert imported(named, tmp_path / "out").verdict == "compiled"


def test_dumps_of_aotinductor_are_a_frame_of_it(dumped: Path, tmp_path: Path) -> None:
    shutil.rmtree(dumped / "tlparse")
    (graph,) = list(dumped.glob("run_*/torchinductor/*forward*"))[:1]
    shutil.copytree(graph, dumped / "run_2026_03_01_10_15_00_123456-pid_47" / "torchinductor" / "model___3.0")
    shutil.rmtree(graph.parent.parent)
    run = imported(dumped, tmp_path / "out")
    assert list(run.frames) == ["aoti#3"] and run.kernels and run.verdict == "compiled"
    assert run.backend == "aoti"


def test_graphs_of_2023_whose_annotations_are_not_quoted_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "run_2023_03_01_10_15_00_123456-pid_47" / "aot_torchinductor" / "model__0_inference_0.0"
    folder.mkdir(parents=True)
    (folder / "fx_graph_readable.py").write_text(
        "class <lambda>(torch.nn.Module):\n    def forward(self, arg0_1: f32[4, 8], arg1_1: i64[]):\n"
        "        # File: m.py:3, code: return x + n\n"
        "        add: f32[4, 8] = torch.ops.aten.add.Tensor(arg0_1, arg1_1);  arg0_1 = arg1_1 = None\n"
        "        return (add,)\n"
    )
    run = imported(tmp_path, tmp_path / "out")
    (graph,) = run.graphs.values()
    assert [tensor.shape for node in graph.nodes for tensor in node.tensors] == [(4, 8), (), (4, 8)]
