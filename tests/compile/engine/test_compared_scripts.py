"""A script that calls torch.compile has, compared, the frames, breaks, kernels and violations that its run has."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from idbg.schema.decisions.dynamo import BreakAgain
from idbg.schema.diff import Comparison
from idbg.schema.programs import Program, Target
from idbg.schema.remarks import Remark
from idbg.schema.runs import Run
from idbg.views import remarks
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile

HEAD = "import torch\nfrom torch import nn\n\ntorch.manual_seed(0)\n"
INFERENCE = """
net = nn.Sequential(nn.Linear(7, 5), nn.GELU(), nn.Linear(5, 3))
compiled = torch.compile(net)
with torch.no_grad():
    for _ in range(2):
        compiled(torch.randn(3, 7))
"""
TRAINING = """
net = nn.Sequential(nn.Linear(7, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
compiled = torch.compile(net)
for _ in range(2):
    optimizer.zero_grad()
    compiled(torch.randn(4, 7)).square().mean().backward()
    optimizer.step()
"""
ADAM = """
net = nn.Linear(7, 5)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
compiled = torch.compile(net)

@torch.compile
def step():
    optimizer.step()

for _ in range(2):
    compiled(torch.randn(4, 7)).square().mean().backward()
    step()
    optimizer.zero_grad()
"""
BREAK = """
counts = []

@torch.compile
def f(x):
    x = x.sin() * 2
    counts.append(float(x.sum()))
    print("broken")
    return x.cos() + 1

f(torch.randn(5, 3))
f(torch.randn(5, 3))
"""
TWO = """
@torch.compile
def f(x):
    x.add_(1)
    return x.sin() + 1

@torch.compile
def g(x):
    return (x * 3).relu()

for _ in range(3):
    g(f(torch.randn(5, 3)))
"""
SHAPES = """
@torch.compile
def f(x):
    return (x.sin() + 1).sum(0)

for size in (5, 5, 9, 11):
    f(torch.randn(size, 3))
"""
# Module.compile: torch 2.11 compiles nothing of a module of its own
METHOD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(7, 5)
    def forward(self, x):
        return nn.functional.gelu(self.linear(x))
net = Net()
net.compile()
net(torch.randn(3, 7)).sum().backward()
net(torch.randn(3, 7))
"""
OPTIONS = """
f = torch.compile(lambda x: (x.sin() + 1).sum(0), options={"max_fusion_size": 1}, dynamic=True)
f(torch.randn(5, 3))
f(torch.randn(6, 3))
"""
LAYERS = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
    def forward(self, x):
        return self.linear(x)
layers = [Layer() for _ in range(3)]
for layer in layers:
    layer.compile()
x = torch.randn(2, 4)
for _ in range(2):
    for layer in layers:
        x = layer(x)
"""
BOTH_MODES = """
net = nn.Sequential(nn.Linear(7, 5), nn.ReLU())
compiled = torch.compile(net)
with torch.no_grad():
    compiled(torch.randn(3, 7))
compiled(torch.randn(3, 7)).sum().backward()
with torch.no_grad():
    compiled(torch.randn(3, 7))
"""
# as Lightning compiles the steps of a module
CONTEXT = """
import copy

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(7, 5)
    def training_step(self, x):
        return self.linear(x).square().mean()
net = Net()
compiled = torch.compile(net)
copy.deepcopy(compiled)
net.training_step = compiled.dynamo_ctx(net.training_step)
for _ in range(2):
    net.training_step(torch.randn(4, 7)).backward()
"""
SCRIPTS = {
    "inference": INFERENCE,
    "training": TRAINING,
    "break": BREAK,
    "two functions": TWO,
    "shapes": SHAPES,
    "method": METHOD,
    "options": OPTIONS,
    "layers": LAYERS,
    "both modes": BOTH_MODES,
    "Adam": ADAM,
    "context": CONTEXT,
}


REFUSED = """
@torch.compile
def f(x):
    return torch.linalg.inv(x.relu()).sin()

f(torch.eye(3))
"""
CAUGHT = """
@torch.compile
def f(x):
    return (x.relu() + 1).sin()

try:
    f(torch.ones(3))
except Exception:
    print("refused")
"""
DENIED = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["relu", "cos"]\nseverity = "%s"\n'


def counted(text: str, backend: str, folder: Path, comparison: Comparison | None, *, reject: bool = False) -> Run:
    """The run of a script, alone or compared."""
    path = folder / "script.py"
    path.write_text(HEAD + text)
    rules = DENIED % ("reject" if reject else "slow")
    target = Target(backend or "aot_eager", rules=rules, strict=reject, own_backend=not backend)
    jobs = Jobs(lambda event: None)
    torchs = torch._dynamo.utils.counters
    torchs.clear()
    jobs.compile(Compile(1, Program(str(path)), target, str(folder), comparison))
    assert jobs.run is not None
    jobs.run.torchs = {"stats": {**torchs["stats"]}, "breaks": {**torchs["graph_break"]}}  # type: ignore[attr-defined]
    return jobs.run


def counts(run: Run) -> dict[str, object]:
    """What a reader counts in a run."""
    return {
        "frames": Counter((frame.function, frame.line) for frame in run.frames.values()),
        "graphs": Counter((graph.id.stage, graph.id.part, len(graph.nodes)) for graph in run.graphs.values()),
        "kernels": Counter((part, len(code.kernels)) for (_, part), code in run.codes.items()),
        "rules": Counter(violation.rule for violation in run.violations),
        "breaks": [each.reason for each in run.breaks],
        "same breaks": len(run.decided.every(BreakAgain)),
        "recompiles": len(run.recompiles),
        "failed frames": [each.failure.type for each in run.frame_failures],
        "failure": run.failure and run.failure.type,
        "torch": run.torchs,  # type: ignore[attr-defined]
    }


QUICK = [
    ("training", "mock"),
    ("break", "mock"),
    ("context", "mock"),
    ("two functions", "aot_eager"),
    ("shapes", "mock"),
]
BOTH = [("training", "mock"), ("break", "mock"), ("break", "inductor")]


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(name, backend, id=f"{name}, {backend}", marks=() if (name, backend) in QUICK else pytest.mark.slow)
        for name in SCRIPTS
        for backend in ("mock", "aot_eager", "inductor", "aot")
        if backend in ("mock", "inductor") or (name, backend) in (("training", "aot"), ("two functions", "aot_eager"))
    ],
)
def test_compared_script_has_what_its_run_has(name: str, backend: str, tmp_path: Path) -> None:
    alone = counted(SCRIPTS[name], backend, tmp_path, None)
    assert alone.failure is None and alone.graphs
    # one by kernel does all that a plain one does, in the same order, and goes on
    comparisons = [Comparison(), Comparison(per_kernel=True)][(name, backend) not in BOTH :]
    for comparison in comparisons:
        compared = counted(SCRIPTS[name], backend, tmp_path, comparison)
        assert counts(compared) == counts(alone)
        assert compared.diff is not None and compared.numbers == "agree"


@pytest.mark.parametrize("text", [REFUSED, CAUGHT], ids=["raised", "caught"])
def test_what_strict_rules_refuse_is_counted_once(text: str, tmp_path: Path) -> None:
    alone = counted(text, "mock", tmp_path, None, reject=True)
    assert alone.violations
    assert counts(counted(text, "mock", tmp_path, Comparison(), reject=True)) == counts(alone)


FOR_INFERENCE = """
def inference(graph, inputs):
    return lambda *values: tuple(value.detach() * 1.001 for value in graph(*values))

net = nn.Sequential(nn.Linear(7, 5), nn.ReLU())
compiled = torch.compile(net, backend=inference)
compiled(torch.randn(3, 7))
compiled(torch.randn(3, 7))
"""


@pytest.mark.parametrize("per_kernel", [False, True])
def test_script_with_a_backend_for_inference_is_counted_once_and_its_numbers_are_the_backends(
    per_kernel: bool, tmp_path: Path
) -> None:
    alone = counted(FOR_INFERENCE, "", tmp_path, None)
    compared = counted(FOR_INFERENCE, "", tmp_path, Comparison(per_kernel=per_kernel))
    assert alone.graphs and counts(compared) == counts(alone)
    assert compared.diff is not None and compared.diff.verdict == "failed" and not compared.diff.gradients


def test_gradients_that_only_the_comparison_wants_are_not_of_the_run(tmp_path: Path) -> None:
    alone = counted(INFERENCE, "mock", tmp_path, None)
    compared = counted(INFERENCE, "mock", tmp_path, Comparison(backward=True))
    assert counts(compared) == counts(alone)


def test_script_is_compared_with_the_options_that_it_compiles_with(tmp_path: Path) -> None:
    compared = counted(OPTIONS, "inductor", tmp_path, Comparison())
    assert compared.torch_settings is not None
    assert any("max_fusion_size" in each for each in compared.torch_settings)


def test_launches_and_stages_of_each_function_are_of_its_own_frame(tmp_path: Path) -> None:
    run = counted(TWO, "inductor", tmp_path, Comparison(per_kernel=True))
    assert run.diff is not None
    of_name = {frame.function: name for name, frame in run.frames.items()}
    for kernel in run.diff.kernels:
        function = "g" if "relu" in kernel.nodes else "f"
        assert kernel.graph is not None and kernel.frame == kernel.graph.frame == of_name[function], kernel
        assert kernel.wrapper_line and set(kernel.nodes) <= set(run.graphs[kernel.graph].by_name)


ONE_CODE = """
def made(share):
    return torch.compile(lambda x: (x * share).relu())

one, other = made(2), made(3)
with torch.no_grad():
    other(one(torch.randn(5, 3)))
"""


def test_functions_of_one_code_with_equal_launches_have_frames_of_their_own_where_they_are_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    for found in (0, 2):  # in Inductor's cache: what comes from there is compiled again to be observed
        run = counted(ONE_CODE, "inductor", tmp_path, Comparison(per_kernel=True))
        assert torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"] == found
        assert run.diff is not None and run.diff.passed
        assert len({kernel.name for kernel in run.diff.kernels}) == 1
        assert [kernel.frame for kernel in run.diff.kernels] == list(run.frames)
        assert len(run.frames) == 2


WRONG_BACKENDS = """
from torch._dynamo.backends.common import aot_autograd
from functorch.compile import make_boxed_func

def graph_with(gm, right, wrong):
    for node in gm.graph.nodes:
        node.target = wrong if node.target == right else node.target
    gm.recompile()
    return gm.forward

def sine(gm, inputs):
    return make_boxed_func(graph_with(gm, torch.ops.aten.tanh.default, torch.ops.aten.sin.default))

@torch.compile(backend=aot_autograd(fw_compiler=sine))
def f(x):
    return x.cos() + 1

@torch.compile(backend=aot_autograd(fw_compiler=sine))
def g(x):
    return (x * 2).tanh() - 1

@torch.compile(backend=lambda gm, inputs: graph_with(gm, "sigmoid", "cos"))
def h(x):
    return (x * 3).sigmoid() - 1

with torch.no_grad():
    for _ in range(2):
        h(g(f(torch.randn(5, 3))))
"""


def test_bisected_nodes_and_stages_of_a_later_function_are_of_its_own_frame(tmp_path: Path) -> None:
    run = counted(WRONG_BACKENDS, "", tmp_path, Comparison(per_kernel=True))
    assert run.diff is not None and run.diff.verdict == "failed"
    of_name = {frame.function: name for name, frame in run.frames.items()}
    wrong = run.diff.first_wrong_stage
    assert [(one.node, one.frame) for one in run.diff.kernels] == [("tanh", of_name["g"]), ("sigmoid", of_name["h"])]
    assert wrong is not None and wrong.graph is not None and wrong.frame == wrong.graph.frame == of_name["g"]
    assert wrong.node in run.graphs[wrong.graph].by_name


UNJUDGED = """
import torch._inductor.config as inductor

def sine(graph):
    for node in graph.nodes:
        node.target = torch.ops.aten.sin.default if node.target is torch.ops.aten.tanh.default else node.target

inductor.post_grad_custom_post_pass = sine
inductor.fx_graph_cache = False

@torch.compile
def f(x):
    return (x.view(torch.int32) >> 31) + x

@torch.compile
def g(x):
    return x.tanh() + 1

with torch.no_grad():
    g(f(torch.randn(4, 8)))
"""


def test_a_function_whose_stages_are_not_judged_is_named_beside_one_that_is_wrong(tmp_path: Path) -> None:
    run = counted(UNJUDGED, "inductor", tmp_path, Comparison(per_kernel=True))
    assert run.diff is not None and run.diff.verdict == "failed" and run.diff.stages_of == "g"
    (note,) = (note for note in run.diff.notes if isinstance(note, Remark) and note.kind == "stages not judged")
    assert note.subject == "f" and "another dtype" in remarks.sentence(note)


STATE = """
from pathlib import Path

class Net(nn.Module):
    seen = []
    def forward(self, x):
        Net.seen.append(x.sum())
        return x * 2

def closure():
    log = []
    class Probe:
        def note(self, value):
            log.append(value)
    def f(x):
        Probe().note(x.shape[0])
        return x + 1
    return f, log

net = torch.compile(Net())
f, log = closure()
g = torch.compile(f)
for _ in range(2):
    net(torch.ones(3)), g(torch.ones(3))
Path(__file__).with_name("state").write_text(f"{len(Net.seen)} {log}")
"""


def test_a_compared_script_ends_with_the_state_of_its_run(tmp_path: Path) -> None:
    """Without a comparison torch itself loses what the closure should hold (pytorch/pytorch#197896)."""
    counted(STATE, "aot_eager", tmp_path, None)
    alone = (tmp_path / "state").read_text()
    compared = counted(STATE, "aot_eager", tmp_path, Comparison())
    assert (tmp_path / "state").read_text() == alone and alone.startswith("2 ")
    assert compared.diff is not None
    lost = [(diff.name, diff.failed_by) for diff in compared.diff.outputs if diff.failed]
    assert lost == ([] if alone == "2 [3, 3]" else [("f: log (after)", ("effect",))])
