"""What a real compile leaves behind: every stage, every node's place, and the way from a node to its kernel and
back.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from idbg.accelerators import registry
from idbg.analysis.graph_text import read_graph
from idbg.analysis.provenance import Provenance
from idbg.schema import events
from idbg.schema.graphs import GraphId, NodeId, Sym
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile

TRAIN = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.heads = nn.ModuleList([nn.Linear(144, 8)])

    def forward(self, x):
        y = self.norm(self.conv(x)).relu()
        return self.heads[0](y.flatten(1))

def program():
    return Net(), (torch.randn(2, 1, 8, 8),), lambda out: out.square().mean()
"""

Runner = Callable[..., Run]


@pytest.fixture
def compiled(tmp_path: Path) -> Runner:
    """Compile a program's text in this process, through the worker's own job."""
    told: list[events.SessionEvent] = []
    jobs = Jobs(told.append)
    rules, _ = registry.find("mock")

    def run(text: str, *, number: int = 1, **target: Any) -> Run:
        path = tmp_path / "subject.py"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        program = Program(str(path), cwd=str(tmp_path))
        chosen = Target(rules=rules, **target)
        told.append(events.RunStarted(run=number, program=program, target=chosen))
        told.append(jobs.compile(Compile(number, program, chosen, str(tmp_path))))
        found = fold(told).runs[number]
        found.jobs, found.told = jobs, told  # type: ignore[attr-defined]
        return found

    return run


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))


@pytest.mark.slow
def test_forward_and_backward_are_the_same_on_a_cold_and_a_warm_cache(compiled: Runner, fresh_cache: None):
    cold, warm = compiled(TRAIN, number=1), compiled(TRAIN, number=2)
    assert cold.verdict == warm.verdict == "violations"
    assert cold.graphs.keys() == warm.graphs.keys()
    assert {graph.stage for graph in cold.graphs} == {"dynamo", "joint", "forward", "backward", "post_grad"}
    for graph_id, graph in cold.graphs.items():
        assert _comparable(graph) == _comparable(warm.graphs[graph_id]), graph_id
    assert set(map(_pairs, cold.links)) == set(map(_pairs, warm.links))
    for part, code in cold.codes.items():
        assert [(kernel.name, kernel.nodes) for kernel in code.kernels] == [
            (kernel.name, kernel.nodes) for kernel in warm.codes[part].kernels
        ]


def _comparable(graph):
    return [msgspec.structs.replace(node, args="") for node in graph.nodes]


def _pairs(links):
    return links.above, links.below, frozenset(links.pairs)


@pytest.mark.slow
def test_every_computing_node_knows_its_module_line_and_kernel(compiled: Runner):
    run = compiled(TRAIN)
    forward = run.graph("0/0", "forward")
    conv = next(node for node in forward.nodes if "convolution" in node.target)
    assert (conv.module, conv.module_class) == ("conv", "Conv2d")
    assert Path(conv.file).name == "subject.py"
    assert conv.code == "y = self.norm(self.conv(x)).relu()"
    assert conv.line == TRAIN[: TRAIN.index(conv.code)].count("\n") + 1
    assert (conv.tensor.dtype, conv.tensor.shape, conv.tensor.device) == ("float32", (2, 4, 6, 6), "cpu")
    assert "convolution" in forward.code.splitlines()[conv.code_line - 1]
    assert {node.role for node in forward.nodes if node.op == "placeholder"} == {"input", "weight", "buffer"}
    transposed = next(node for node in forward.nodes if node.target == "aten.permute.default")
    assert transposed.role == "weight", "a Linear's transposed weight is known before the program runs"

    provenance = Provenance(run)
    kernels = provenance.kernels_of(forward.node_id(conv.name))
    assert [kernel.language for kernel, _ in kernels] == ["extern"]
    dynamo = run.graph("0/0", "dynamo")
    above = provenance.counterparts(forward.node_id(conv.name), dynamo.id)
    assert [dynamo.by_name[node.name].target for node in above] == ["torch.conv2d"]

    backward = run.graph("0/0", "backward")
    gradient = next(node for node in backward.nodes if "convolution_backward" in node.target)
    assert len(gradient.tensors) >= 2, "a node that returns a tuple has all its tensors"
    assert above[0] in provenance.counterparts(backward.node_id(gradient.name), dynamo.id)
    assert {kernel.part for kernel, _ in provenance.kernels_of(backward.node_id(gradient.name))} == {"backward"}


def test_a_module_that_is_held_as_a_global_goes_by_its_name(compiled: Runner):
    text = (
        "import torch\nencoder = torch.nn.Sequential(torch.nn.Linear(4, 4))\nhead = torch.nn.ReLU()\n"
        "def program():\n    return (lambda x: head(encoder(x))), torch.ones(2, 4)\n"
    )
    run = compiled(text, backend="eager")
    nodes = [node for node in run.graph("0/0", "dynamo").nodes if node.op.startswith("call")]
    assert [(node.module, node.module_class) for node in nodes] == [("encoder.0", "Linear"), ("head", "ReLU")]


@pytest.mark.slow
def test_every_kernel_call_computes_nodes_that_exist(compiled: Runner):
    run = compiled(TRAIN)
    assert {kernel.part for kernel in run.kernels} == {"forward", "backward"}
    for kernel in run.kernels:
        graph = run.graph("0/0", "post_grad", kernel.part)
        code = run.codes["0/0", kernel.part].text.splitlines()
        assert kernel.nodes, kernel.name
        assert set(kernel.nodes) <= graph.by_name.keys()
        for call in kernel.calls:
            assert kernel.name.rpartition(".")[2] in code[call.line - 1]
        if kernel.language != "extern":
            assert kernel.source.strip() in run.codes["0/0", kernel.part].text
            assert kernel.name in code[kernel.line - 1]


@pytest.mark.slow
def test_a_cpp_wrappers_kernels_are_found_with_their_sources_and_nodes(compiled: Runner):
    text = (
        "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())\n"
        "def program():\n    return model, torch.ones(2, 3)\n"
    )
    run = compiled(text, backend="inductor", options={"cpp_wrapper": True})
    assert run.failure is None
    code = run.codes["0/0", "inference"].text.splitlines()
    relu = next(node for node in run.graph("0/0", "inference").nodes if "relu" in node.target)
    ((kernel, call),) = Provenance(run).kernels_of(run.graph("0/0", "inference").node_id(relu.name))
    assert kernel.language == "cpp"
    assert kernel.source.startswith('extern "C"')
    assert kernel.name in code[kernel.line - 1]
    assert f"{kernel.name}(" in code[call.line - 1]
    assert call.line != kernel.line
    (extern,) = [found for found in run.kernels if found.language == "extern"]
    assert "addmm" in extern.name
    assert extern.nodes == ("addmm",)


def test_the_text_reader_agrees_with_the_graph_module(compiled: Runner):
    run = compiled(TRAIN, backend="mock")
    for stage in ("dynamo", "forward", "backward"):
        graph = run.graph("0/0", stage)
        printed = read_graph(graph.code, graph.id)
        assert [node.name for node in printed.nodes] == [node.name for node in graph.nodes]
        for ours, text in zip(graph.nodes, printed.nodes, strict=True):
            if ours.op == "output":
                continue
            if ours.op != "placeholder":  # a graph module knows where an argument is first used, the text does not
                assert (text.op, text.file, text.line) == (ours.op, ours.file, ours.line), ours.name
            assert text.target.rpartition(".")[2] == ours.target.rpartition(".")[2], ours.name
            assert text.inputs == ours.inputs or set(text.inputs) == set(ours.inputs)
            if len(ours.tensors) == 1:
                assert text.tensors == ours.tensors, ours.name


def test_symbolic_sizes_keep_their_hint_and_range(compiled: Runner):
    text = "import torch\ndef program():\n    return (lambda x: torch.cat([x, x]) * x.shape[0]), torch.randn(10, 6)\n"
    run = compiled(text, backend="mock", dynamic=True)
    node = next(node for node in run.graph("0/0", "inference").nodes if node.target == "aten.cat.default")
    size = node.tensor.shape[0]
    assert isinstance(size, Sym)
    assert size.hint == 20
    assert size.low is not None
    assert size.low >= 2


def test_a_script_runs_as_main_with_its_own_arguments(compiled: Runner, tmp_path: Path):
    text = (
        "import sys, os, torch\n"
        "assert __name__ == '__main__' and sys.argv[0].endswith('subject.py')\n"
        "@torch.compile(mode='max-autotune-no-cudagraphs')\n"
        "def f(x):\n    return x.sin() + 1\n"
        "f(torch.ones(4)); f(torch.ones(4))\n"
        "torch.set_default_dtype(torch.float64); torch.manual_seed(5)\n"
    )
    import torch

    state, python = torch.get_rng_state(), random.getstate()
    config = torch._inductor.config.save_config_portable()
    run = compiled(text, backend="mock")
    assert run.verdict == "compiled", run.failure
    assert [frame.function for frame in run.frames.values()] == ["f"]
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(state, torch.get_rng_state())
    assert python == random.getstate()
    assert config == torch._inductor.config.save_config_portable()
    assert torch.compile.__module__ == "torch"


def test_breaks_and_recompiles_are_told_with_reason_and_line(compiled: Runner):
    text = (
        "import torch\n"
        "@torch.compile\n"
        "def f(x):\n"
        "    y = x.sin()\n"
        "    print('inside')\n"
        "    return y.cos()\n"
        "f(torch.randn(4)); f(torch.randn(5))\n"
    )
    run = compiled(text, backend="eager")
    assert [(Path(found.file).name, found.line) for found in run.breaks] == [("subject.py", 5)]
    assert "print" in run.breaks[0].reason
    assert any("size mismatch" in recompile.reason for recompile in run.recompiles)


def test_any_backend_that_torch_knows_is_captured_from_its_trace(compiled: Runner):
    run = compiled(TRAIN, backend="aot_eager")
    assert {graph.stage for graph in run.graphs} == {"dynamo", "joint", "forward", "backward"}
    assert run.verdict == "compiled"
    conv = next(node for node in run.graph("0/0", "forward").nodes if "convolution" in node.target)
    dynamo = run.graph("0/0", "dynamo")
    found = Provenance(run).counterparts(NodeId(GraphId("0/0", "forward"), conv.name), dynamo.id)
    assert "torch.conv2d" in {dynamo.by_name[node.name].target for node in found}


def test_strict_stops_before_lowering_and_names_forward_and_backward(compiled: Runner):
    run = compiled(TRAIN, strict=True)
    assert run.verdict == "violations"
    assert run.failure.kind == "constraints"
    assert "convolution_backward" in run.failure.message
    assert {violation.node.graph.stage for violation in run.violations} == {"dynamo", "forward", "backward"}
    assert run.kernels == []


def test_a_loaded_program_is_held_until_its_file_changes(compiled: Runner):
    text = "import torch\ndef program():\n    return torch.nn.Linear(4, 4), torch.ones(1, 4)\n"
    first = compiled(text, number=1, backend="eager")
    workload = first.jobs.programs._workload  # type: ignore[attr-defined]
    again = compiled(text, number=2, backend="eager")
    assert again.jobs.programs._workload is workload  # type: ignore[attr-defined]
    changed = compiled(text + "\n", number=3, backend="eager")
    assert changed.jobs.programs._workload is not workload  # type: ignore[attr-defined]


def test_a_function_that_the_file_imports_is_the_program_and_an_edit_of_its_module_loads_it_again(
    compiled: Runner, tmp_path: Path
):
    text = "import torch\ndef build():\n    return torch.nn.Linear(4, 4), torch.ones(1, 4)\n"
    (tmp_path / "zoo_of_one.py").write_text(text)
    first = compiled("from zoo_of_one import build as program\n", number=1, backend="eager")
    assert first.verdict == "compiled" and first.graphs
    assert first.jobs.programs._holds(first.program, "")  # type: ignore[attr-defined]
    (tmp_path / "zoo_of_one.py").write_text(text + "\n")
    assert not first.jobs.programs._holds(first.program, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("def program(:", "user", "invalid syntax"),
        ("import torch\n\0", "user", "null bytes (subject.py, line 2)"),
        ("raise ValueError('mine')", "user", "mine"),
        ("def program():\n    raise KeyError('inside')", "user", "inside"),
        ("def program():\n    return None", "input", "returned None"),
        ("def program():\n    return 3, 4", "input", "cannot be called"),
        ("print('hi')", "input", "never called torch.compile"),
        ("import torch\ntorch.compile(lambda x: x)", "input", "nothing that it gave to torch.compile was ever called"),
        ("import sys\nsys.exit(3)", "input", "sys.exit(3)"),
        (
            "import torch\ndef program():\n    return lambda x: torch.nn.functional.linear(x, x.mT), torch.ones(2, 5)",
            "user",
            "must have same reduction dim",
        ),
    ],
)
def test_a_program_that_cannot_be_compiled_says_so_in_a_sentence(compiled: Runner, text: str, kind: str, says: str):
    run = compiled(text, backend="eager")
    assert run.verdict == "failed"
    assert run.failure.kind == kind
    assert says in run.failure.message
    assert run.failure.hint
    if kind == "user":
        assert "subject.py" in run.failure.traceback
        assert "idbg" not in run.failure.traceback.replace(str(Path(run.program.path)), "")


def test_settings_that_are_not_torchs_defaults_are_recorded_once_and_as_they_change(compiled: Runner) -> None:
    text = """
import torch
torch._dynamo.config.recompile_limit = 5
f = torch.compile(torch.relu)
f(torch.ones(3))
torch.compile(torch.sin)(torch.ones(3))
torch._inductor.config.epilogue_fusion = False
torch.compile(torch.exp)(torch.ones(3))
torch.compile(torch.cos, options={"max_fusion_size": 7})(torch.ones(3))
"""
    found = compiled(text, backend="inductor", cold=False)
    read = [event for event in found.told if isinstance(event, events.SettingsRead)]  # type: ignore[attr-defined]
    limit, fusion = "torch._dynamo.config.recompile_limit = 5", "torch._inductor.config.epilogue_fusion = False"
    own = "torch.compile(options={'max_fusion_size': 7})"
    known = [tuple(line in each.settings for line in (limit, fusion, own)) for each in read]
    assert known == [(True, False, False), (True, True, False), (True, True, True)]
    assert [each for each in found.torch_settings or () if each in (limit, fusion, own)] == [limit, fusion, own]
