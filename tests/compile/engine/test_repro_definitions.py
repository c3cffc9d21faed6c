"""What a program registers with torch itself travels with its repro: as source, or by the name of its module."""

import importlib.util
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from idbg.engine.capture.run import RunCapture, SavedGraph
from idbg.engine.compat import registrations
from idbg.engine.repro.definitions import Definitions, Needed, definitions_for, files_of
from idbg.engine.repro.draft import Differs, Draft, Heading, Input
from idbg.engine.repro.script import render
from idbg.engine.repro.slices import Slice
from idbg.engine.repro.violation import SubgraphExtractor
from idbg.schema.graphs import Graph, GraphId, Node, Stage
from tests.harness.repro_bench import Bench, run

HELPERS = """\
import math

SCALE = math.floor(3.5)
UNUSED = open

def scaled(x):
    return x * SCALE
"""
TOP = """\
import helpers as h
from helpers import scaled

ONE = 1

@torch.library.custom_op("{space}::add_one", mutates_args=())
def add_one(x: torch.Tensor) -> torch.Tensor:
    return scaled(x) + ONE

@add_one.register_fake
def _(x):
    return torch.empty_like(x)

def setup(ctx, inputs, output):
    ctx.factor = SECRET

SECRET = 3.0

def backward(ctx, grad):
    return grad * ctx.factor

add_one.register_autograd(backward, setup_context=setup)

def f(x):
    return add_one(x).sin()
"""
LIBRARY = """\
lib = torch.library.Library("{space}", "DEF")
lib.define("add_one(Tensor x) -> Tensor")

@torch.library.impl(lib, "add_one", "CompositeExplicitAutograd")
def add_one(x):
    return x + 1

@torch.library.register_fake("{space}::add_one")
def fake(x):
    return torch.empty_like(x)

def f(x):
    return torch.ops.{space}.add_one(x).sin()
"""
NESTED = """\
def made(amount):
    @torch.library.custom_op("{space}::add_one", mutates_args=())
    def add_one(x: torch.Tensor) -> torch.Tensor:
        return x + amount

    @add_one.register_fake
    def _(x):
        return torch.empty_like(x)

    return add_one

add_one = made(2)

def f(x):
    return add_one(x).sin()
"""
AUTOGRAD = """\
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        y = x * x
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return y * x * factor, y.sum()

    @staticmethod
    def backward(ctx, grad, total):
        x, y = ctx.saved_tensors
        return grad * 3 * y * ctx.factor + 2 * total * x, None

def f(x):
    cube, total = Cube.apply(x, 2)
    return cube.sin() + total + Cube.apply(x, 3)[0]
"""
CALL = "\ndef program():\n    return f, (torch.ones(4, 6, requires_grad=True),), lambda out: out.sum()\n"
KINDS = {"top": TOP, "library": LIBRARY, "nested": NESTED}


@pytest.fixture
def helpers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "helpers.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def alone(script: Path, space: str) -> tuple[object, str]:
    """The script, in this process, whose own ops of these names it must not find."""
    text = script.read_text()
    script.write_text(text.replace(space, f"{space}_again"))
    return run(script)


@pytest.mark.usefixtures("helpers")
@pytest.mark.parametrize("kind", KINDS)
def test_it_travels_as_source(tmp_path: Path, kind: str) -> None:
    space = f"travels_{kind}"
    bench = Bench(
        tmp_path,
        KINDS[kind].replace("{space}", space)
        + CALL.replace("requires_grad=True", "").replace(", lambda out: out.sum()", ""),
    )
    assert bench.ended.failure is None, bench.ended.failure
    graph = bench.graph("dynamo")
    node = next(each for each in graph.nodes if "add_one" in each.target)
    script = bench.script(graph, node)
    status, out = alone(script, space)
    assert (status, "REPRODUCED" in out) == (1, True), script.read_text() + out
    text = script.read_text()
    assert "subject" not in text.partition("import sys")[2].replace("/subject.py:", ""), "it does without the program"
    if kind == "top":
        assert "SCALE = math.floor(3.5)" in text
        assert "SECRET = 3.0" in text
        assert "UNUSED" not in text


def test_a_custom_autograd_function_is_a_class_of_the_script(tmp_path: Path) -> None:
    bench = Bench(tmp_path, AUTOGRAD + CALL)
    graph = bench.graph("dynamo")
    cut = SubgraphExtractor(graph, bench.jobs.last.saved_graphs[graph.id].gm, {}).whole()
    given = (Input("l_x_", recipe="torch.arange(1.0, 5.0)", requires_grad=True),)
    draft = Draft(
        Differs(), given, tuple(cut.statements), cut.result, 'backend="eager"', definitions=tuple(cut.definitions)
    )
    script = tmp_path / "repro.py"
    script.write_text(render(draft, Heading("It is right", "torch")))
    status, out = run(script)
    assert (status, out.count("Cube")) == (0, 0), out
    assert script.read_text().count("class Cube") == 2, "one for each factor that it was applied with"
    made, subject = (runpy.run_path(str(path)) for path in (script, tmp_path / "subject.py"))
    grads = []
    for function in (made["program"], subject["f"]):
        x = torch.arange(1.0, 5.0, requires_grad=True)
        out = function(x)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_a_module_that_cannot_be_cut_is_imported_and_the_script_says_so(helpers: Path) -> None:
    (helpers / "ops.py").write_text(
        "import torch\nimport helpers\n\n@torch.library.custom_op('travels_named::twice', mutates_args=())\n"
        "def twice(x: torch.Tensor) -> torch.Tensor:\n    return helpers.scaled(x)\n"
    )
    import ops  # type: ignore[import-not-found]

    assert ops.twice(torch.ones(2)).tolist() == [3, 3]
    made = definitions_for(Needed(frozenset({"travels_named::twice"})), [str(helpers / "ops.py")])
    assert made.sources[0] == f"sys.path.insert(0, {str(helpers)!r})\nimport helpers  # noqa: E402"
    assert made.notes == (f"helpers is imported from {helpers}: its source could not be cut out.",)


def test_a_function_travels_with_the_names_that_it_closes_over() -> None:
    def checker(banned: set[str]) -> Callable[[str], bool]:
        def check(name: str) -> bool:
            return name in banned

        return check

    made = definitions_for(Needed(objects=(checker({"aten.sub.Tensor"}),)))
    assert made.sources[0] == "banned = {'aten.sub.Tensor'}" and made.sources[1].startswith("def check(name")


def test_what_cannot_be_carried_is_named_with_the_reason(tmp_path: Path) -> None:
    held = torch.ones(3)

    @torch.library.custom_op("travels_closed::over", mutates_args=())
    def over(x: torch.Tensor) -> torch.Tensor:
        return x + held

    assert over(torch.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="over cannot be carried: its held is a Tensor of the function around it"):
        definitions_for(Needed(frozenset({"travels_closed::over"})))
    setting = "torch._inductor.config.post_grad_custom_pre_pass"
    with pytest.raises(ValueError, match=f"{setting} cannot be carried: a lambda"):
        definitions_for(Needed(settings=((setting, lambda graph: None),)))


PASSES = """\
class Pass(torch._inductor.custom_graph_pass.CustomGraphPass):
    def __init__(self, told):
        self.told = told

    def __call__(self, graph):
        for node in graph.nodes:
            if self.told in str(node.target):
                node.args = ()

    def uuid(self):
        return None

kept = Pass("relu")
torch._inductor.config.post_grad_custom_pre_pass = kept
torch.compile(lambda x: x.relu() + 1, backend="inductor")(torch.randn(4, 6))
"""
LOWERING = """\
from torch._inductor.lowering import lowerings, register_lowering

GIVEN = "no buffer"

@torch.library.custom_op("travels_lowered::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

@register_lowering(torch.ops.travels_lowered.twice.default)
def lowered(x):
    return GIVEN

torch.compile(lambda x: twice(x).sin(), backend="inductor")(torch.randn(4, 6))
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [PASSES, LOWERING], ids=["pass", "lowering"])
def test_what_fails_by_a_pass_or_a_lowering_of_the_programs_fails_again(tmp_path: Path, text: str) -> None:
    try:
        script = Bench(tmp_path, "import torch._inductor.custom_graph_pass\n" + text, backend="inductor").script()
    finally:
        torch._inductor.config.post_grad_custom_pre_pass = None
    try:
        status, out = alone(script, "travels_lowered")
    finally:
        torch._inductor.config.post_grad_custom_pre_pass = None
        from torch._inductor.lowering import lowerings

        for op in [op for op in lowerings if "travels" in str(op)]:
            del lowerings[op]
    assert status == 1, script.read_text() + out
    assert "REPRODUCED" in out


def test_definitions_of_nothing_are_empty() -> None:
    assert definitions_for(Needed()) == Definitions()
    assert Slice().sources() == []


def test_a_name_of_a_module_whose_names_are_all_imported_travels_too(helpers: Path) -> None:
    (helpers / "starred.py").write_text(
        "from math import *\nfrom helpers import *\n\ndef f(x):\n    return scaled(floor(x)) + len([x])\n"
    )
    cut = Slice()
    assert cut.name(str(helpers / "starred.py"), "f")
    assert cut.imports == {"from math import floor", "import math"}
    assert [source.partition("\n")[0] for source in cut.sources()] == [
        "SCALE = math.floor(3.5)",
        "def scaled(x):",
        "def f(x):",
    ]


def test_a_wrapper_that_inductor_generated_replaces_nothing_of_torchs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that compiled before has such modules, under a name of torch's."""
    name = "torch._inductor.runtime.compile_tasks.c0ffee"
    spec = importlib.util.spec_from_file_location(name, tmp_path / "c0ffee.py")
    (tmp_path / "c0ffee.py").write_text("def call(args):\n    return args\n")
    assert spec is not None and spec.loader is not None
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    monkeypatch.setitem(sys.modules, name, generated)
    assert f"{name}.call" not in dict(registrations.patched())
    monkeypatch.setattr(torch.fx, "replace_pattern", generated.call)
    assert dict(registrations.patched())["torch.fx.replace_pattern"] is generated.call


def test_a_function_that_torch_itself_calls_deprecated_is_no_patch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its wrapper is typing_extensions', which may lie in a folder of the user's."""
    made: dict[str, Any] = {}
    exec(compile("def wrapper(): ...", str(tmp_path / "typing_extensions.py"), "exec"), made)
    monkeypatch.setattr(torch.fx, "replace_pattern", made["wrapper"])
    assert "torch.fx.replace_pattern" not in dict(registrations.patched())


def test_files_that_a_cache_names_are_not_the_programs(tmp_path: Path) -> None:
    """A post-grad graph that a cache gave back was printed where another copy of the program lay."""
    capture = RunCapture(1, lambda event: None, None)
    frame = capture.frame("0/0")
    stages: tuple[tuple[Stage, str], ...] = (("dynamo", "here.py"), ("post_grad", "elsewhere.py"))
    for stage, file in stages:
        (tmp_path / file).touch()
        node = Node(name="relu", op="call_function", target="aten.relu.default", file=str(tmp_path / file), line=1)
        graph = Graph(GraphId("0/0", stage), (node,))
        frame.graphs[graph.id] = graph
        if stage == "dynamo":
            capture.saved_graphs[graph.id] = SavedGraph(GraphModule({}, torch.fx.Graph()), [], False)
    files = files_of(capture)
    assert str(tmp_path / "here.py") in files and str(tmp_path / "elsewhere.py") not in files
    (tmp_path / "here.py").unlink()
    assert str(tmp_path / "here.py") not in files_of(capture)
