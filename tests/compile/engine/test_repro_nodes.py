"""A node of any kind, at any stage, reproduces alone, and only its own violation counts."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from idbg.schema.graphs import Stage
from tests.harness.repro_bench import Bench, run

PROGRAMS = {
    "complex": ("z = x * 2\n    return z.real + z.imag, z.conj() * y", "complex(), complex().conj()"),
    "numpy": (
        "import numpy as np\n    a = np.sin(x) + np.linalg.norm(x, axis=1).reshape(4, 1).sum(axis=0)\n"
        "    return a.T, np.add(a, 1), a.reshape(2, 12), np.where(a > 0, a, 0), x.max()",
        "torch.randn(4, 6).double().numpy(), None",
    ),
    "mixed": (
        "import numpy as np\n    return torch.from_numpy(np.sin(x.numpy()) * 2) + y",
        "torch.randn(4, 6), torch.ones(6)",
    ),
    "branches": (
        "from torch._higher_order_ops.while_loop import while_loop\n"
        "    inner = lambda u: torch.cond(u.sum() > 1, torch.sin, torch.cos, (u,))\n"
        "    a = torch.cond(x.sum() > 0, inner, lambda u: u * 2, (x,))\n"
        "    return a, while_loop(lambda i, u: i < 3, lambda i, u: (i + 1, u * 2), (torch.tensor(0), x))[1]",
        "torch.ones(4, 6), None",
    ),
    "flex": (
        "from torch.nn.attention.flex_attention import flex_attention\n"
        "    return flex_attention(x, x, x, score_mod=lambda s, b, h, i, j: s * 2 + i)",
        "torch.randn(1, 2, 128, 16), None",
    ),
    "tuples": (
        "v, i = x.max(1)\n    return v, i, x.split(2)[1], x.split(4)[0], x.unbind(0)[2], torch.var_mean(x, 1)[0]",
        "torch.randn(4, 6), None",
    ),
}


def program(body: str, args: str, loss: str = "") -> str:
    head = "def complex():\n    return torch.randn(4, 6, dtype=torch.complex128)\n"
    return f"{head}def f(x, y):\n    {body}\ndef program():\n    return f, ({args}){loss}\n"


@pytest.fixture(scope="module")
def bench_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Bench]:
    """The bench of a program, which the tests of all its graphs share."""
    benches: dict[str, Bench] = {}

    def found(text: str, **target: object) -> Bench:
        key = f"{target}{text}"
        if key not in benches:
            benches[key] = Bench(tmp_path_factory.mktemp("bench"), text, **target)  # type: ignore[arg-type]
        return benches[key]

    return found


def broken(bench: Bench, stage: Stage, rule: str = "dtype") -> list[str]:
    """The nodes of a graph, one of each op, whose repro does not show the violation of the rule."""
    graph = bench.graph(stage)
    seen: set[str] = set()
    wrong: list[str] = []
    for node in graph.nodes:
        kind = node.target if node.op.startswith("call") else node.op
        if kind in seen or not node.tensors:
            continue
        seen.add(kind)
        status, out = run(bench.script(graph, node, rule))
        if status != 1 or "REPRODUCED" not in out:
            wrong.append(f"{node.name} ({node.target}): {status} {out[-500:]}")
    assert seen
    return wrong


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("stage", ["dynamo", "inference"])
def test_each_op_of_a_program_reproduces_alone(bench_of: Callable[..., Bench], name: str, stage: Stage) -> None:
    if (name, stage) == ("flex", "inference"):
        pytest.skip("the same path as in Dynamo's graph, and slow")
    bench = bench_of(program(*PROGRAMS[name]))
    assert bench.ended.failure is None, bench.ended.failure
    assert broken(bench, stage) == []


@pytest.mark.parametrize("stage", ["dynamo", "forward", "backward", "joint"])
def test_each_op_of_a_training_step_reproduces_alone(bench_of: Callable[..., Bench], stage: Stage) -> None:
    args = "torch.randn(4, 6, requires_grad=True), torch.randn(6, 4, requires_grad=True)"
    text = program("return (x @ y).softmax(1).relu() + x.sum()", args, ", lambda out: out.pow(2).sum()")
    assert broken(bench_of(text), stage) == []


@pytest.mark.parametrize(
    "scope",
    [
        'stages = ["backward"]',
        'roles = ["inputs"]',
        'roles = ["intermediates"]',
        'roles = ["intermediates"]\ntensors = "operands"',
        'roles = ["outputs"]',
    ],
)
def test_a_rule_of_narrow_scope_reproduces(tmp_path: Path, scope: str) -> None:
    rules = f'[[rules]]\nkind = "dtype"\nallowed = ["float64"]\n{scope}\n'
    args = "torch.randn(4, 6, requires_grad=True), torch.randn(6, 4, requires_grad=True)"
    bench = Bench(tmp_path, program("return (x.sin() @ y).relu()", args, ", lambda out: out.sum()"), rules)
    found = {violation.node.graph.stage: violation for violation in bench.jobs.last.violations}
    assert found
    for violation in found.values():
        graph = bench.graph(violation.node.graph.stage)
        status, out = run(bench.script(graph, graph.by_name[violation.node.name]))
        assert status == 1, (violation, out)


APPLIES = """\
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def f(x):
    return Twice.apply(x.sin()).cos().sum()
"""
WRITES = """\
@torch.library.custom_op("written_into::fill", mutates_args=("out",))
def fill(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x)


def f(x):
    out = torch.empty_like(x)
    fill(x.sin(), out)
    return (out * x).cos().sum()
"""
WRITES_VIEWS = """\
@torch.library.custom_op("written_into::several", mutates_args=("rows", "out", "none"))
def several(
    x: torch.Tensor, rows: list[torch.Tensor], out: torch.Tensor, none: torch.Tensor | None = None
) -> torch.Tensor:
    [row.copy_(x[0]) for row in rows]
    out.copy_(x)
    return x + 1


@several.register_fake
def fake(x, rows, out, none=None):
    return torch.empty_like(x)


def f(x):
    whole, rows = torch.zeros(8, 6), torch.zeros(3, 6)
    y = several(x.detach().sin(), [rows[0], rows[2]], whole[2:6])
    z = several(x.detach().cos(), [], whole.view(2, 4, 6)[1])
    return ((whole[:4] + y + z) * x + rows.sum()).sum()
"""
EFFECTS = "def f(x):\n    torch.ops.aten._print('hello')\n    return x.sin().sum()\n"


@pytest.mark.parametrize(
    ("text", "stage", "names"),
    [
        (APPLIES, "dynamo", ["autograd_function_apply", "getitem"]),
        (WRITES, "joint", ["auto_functionalized_v2", "getitem_1"]),
        (WRITES, "forward", ["auto_functionalized_v2", "getitem_1"]),
        (WRITES_VIEWS, "joint", ["auto_functionalized_v2", "getitem", "auto_functionalized_v2_1", "getitem_4"]),
        (EFFECTS, "forward", ["with_effects", "getitem"]),
    ],
)
def test_what_is_put_around_an_op_or_a_class_reproduces(
    tmp_path: Path, text: str, stage: Stage, names: list[str]
) -> None:
    call = "def program():\n    return f, (torch.randn(4, 6, requires_grad=True),), lambda out: out\n"
    space = f"written_into_{stage}"
    bench = Bench(tmp_path, text.replace("written_into", space) + call)
    graph = bench.graph(stage)
    for number, name in enumerate(names):
        script = bench.script(graph, graph.by_name[name])
        script.write_text(script.read_text().replace(space, f"{space}_{number}"))  # this process has the op already
        status, out = run(script)
        assert status == 1, script.read_text() + out


def test_a_node_that_gives_nothing_reproduces(tmp_path: Path) -> None:
    rules = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["setitem"]\n'
    bench = Bench(
        tmp_path, program("z = x.clone()\n    z[0] = y[1]\n    return z", "torch.ones(4, 6), torch.ones(4, 6)"), rules
    )
    graph = bench.graph("dynamo")
    script = bench.script(graph, graph.by_name["setitem"], "unsupported_ops")
    assert run(script)[0] == 1, script.read_text()


def test_a_symbolic_size_stays_one(tmp_path: Path) -> None:
    rules = '[[rules]]\nkind = "static_shapes"\n'
    text = program("return x.view(x.shape[0] * 2, -1) * x.shape[0], x @ y", "torch.randn(4, 6), torch.randn(6, 4)")
    bench = Bench(tmp_path, text, rules, dynamic=True)
    graph = bench.graph("dynamo")
    script = bench.script(graph, graph.by_name["view"], "static_shapes")
    status, out = run(script)
    assert status == 1, out
    assert "l_x_.shape[0]" in script.read_text(), "the size is still that of the tensor"


@pytest.mark.parametrize("stage", ["dynamo", "inference"])
def test_branches_of_symbolic_sizes_reproduce_alone(bench_of: Callable[..., Bench], stage: Stage) -> None:
    bench = bench_of(program(*PROGRAMS["branches"]), dynamic=True)
    assert broken(bench, stage) == []


@pytest.mark.parametrize("stage", ["forward", "joint"])
def test_a_training_step_of_symbolic_sizes_reproduces_alone(bench_of: Callable[..., Bench], stage: Stage) -> None:
    args = "torch.randn(4, 6, requires_grad=True), torch.randn(6, 4, requires_grad=True)"
    text = program("return (x @ y).softmax(1) * x.shape[0]", args, ", lambda out: out.pow(2).sum()")
    assert broken(bench_of(text, dynamic=True), stage) == []


@pytest.mark.slow
def test_a_post_grad_node_reproduces_though_no_backend_asks_of_it(tmp_path: Path) -> None:
    body = "n = x.shape[0]\n    return x.view(n * 2, -1) + n, (x @ y).softmax(1)"
    text = program(body, "torch.randn(4, 6), torch.randn(6, 4)")
    bench = Bench(tmp_path, text, backend="inductor", dynamic=True)
    assert broken(bench, "post_grad") == []


def test_another_nodes_violation_is_not_the_nodes(tmp_path: Path) -> None:
    rules = '[[rules]]\nkind = "dtype"\nallowed = ["float32"]\n'
    bench = Bench(tmp_path, program("return x.double() * 2", "torch.ones(4, 6), None"), rules)
    graph = bench.graph("dynamo")
    script = bench.script(graph, next(node for node in graph.nodes if node.target == "operator.mul"))
    text = script.read_text()
    assert run(script)[0] == 1
    script.write_text(text.replace("double * 2", "double.float()"))  # mended; its argument is as it was
    status, out = run(script)
    assert (status, "REPRODUCED" in out) == (0, False), out
    assert "dtype is float64" in out, "the argument breaks the rule as before"


def test_an_edited_rule_is_the_one_that_a_repro_is_of(tmp_path: Path) -> None:
    bench = Bench(tmp_path, program("return x.sin()", "torch.ones(4, 6), None"), 'name = "lenient"\n')
    graph = bench.graph("dynamo")
    from idbg.worker.protocol import WriteRepro
    from tests.harness.repro_bench import ANY_DTYPE

    asked = WriteRepro(1, str(tmp_path / "repros"), graph.node_id("sin"), "dtype", ANY_DTYPE)
    assert run(bench.jobs._write(asked))[0] == 1
    refused = bench.jobs.do(WriteRepro(1, str(tmp_path / "repros"), graph.node_id("sin"), "dtype"))
    assert refused.failure is not None
    assert "no rule dtype in force" in refused.failure.message


def test_what_no_script_can_hold_is_refused_in_words(tmp_path: Path) -> None:
    text = "import torch.utils.checkpoint\n" + program(
        "return torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False) + x.to_sparse().to_dense()",
        "torch.ones(4, 6), None",
    )
    bench = Bench(tmp_path, text)
    graph = bench.graph("dynamo")
    node = next(node for node in graph.nodes if "checkpoint" in node.target)
    with pytest.raises(ValueError, match="higher-order op tag_activation_checkpoint, which cannot stand alone"):
        bench.script(graph, node)


def test_every_dtype_and_conjugate_comes_back(tmp_path: Path) -> None:
    from idbg.engine.repro.values import _flat

    for dtype in (torch.complex128, torch.complex64, torch.complex32, torch.float8_e8m0fnu, torch.uint16, torch.bool):
        value = torch.arange(6).reshape(2, 3).t().to(dtype)
        flat, kept = _flat("x", value)
        back = flat.view(dtype) if kept != dtype else flat
        assert back.as_strided((3, 2), (1, 3)).to(torch.complex64).tolist() == value.to(torch.complex64).tolist()
    conjugate = torch.tensor([1 + 2j], dtype=torch.complex128).conj()
    assert _flat("x", conjugate)[0].tolist() == [1.0, -2.0]


def test_a_strict_refusal_is_caught_as_the_readme_says(tmp_path: Path) -> None:
    import idbg

    backend = idbg.backend("mock", strict=True, repros=tmp_path)
    compiled = torch.compile(lambda x: x.double(), backend=backend)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        compiled(torch.ones(3, 5))
    assert isinstance(caught.value.inner_exception, idbg.ConstraintViolation)
    assert Path(caught.value.inner_exception.repro).is_file()
    assert caught.value.inner_exception.violations
