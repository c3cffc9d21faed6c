"""Wrong passes: put in by torch's own hooks before the joint graph, on it and after it, and torch's own made wrong."""

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch
import torch._inductor.config
import torch.nn.functional as F
from torch import Tensor, nn
from torch._inductor.pattern_matcher import (
    CallFunction,
    KeywordArg,
    Match,
    PatternMatcherPass,
    register_graph_pattern,
)
from torch.fx import Graph, GraphModule, Node

from tests.harness.plants.plant import Plant, Planting

aten = torch.ops.aten
Edit = Callable[[Graph], None]


def hooked(hook: str, edit: Edit) -> Planting:
    """The pass is set by Inductor's option of this name."""

    @contextmanager
    def planting() -> Iterator[None]:
        with torch._inductor.config.patch({hook: edit}):
            yield

    return planting


def made_wrong(module: str, name: str, edit: Edit) -> Planting:
    """Torch's own pass does this as well."""

    @contextmanager
    def planting() -> Iterator[None]:
        original = getattr(import_module(module), name)

        def wrong(graph: Graph | GraphModule, *args: Any) -> Any:
            found = original(graph, *args)
            edit(graph.graph if isinstance(graph, GraphModule) else graph)
            return found

        wrong.__name__ = name
        with patch(f"{module}.{name}", wrong):
            yield

    return planting


def method_made_wrong(module: str, name: str, edit: Edit) -> Planting:
    """The patterns that torch keeps under this name do this as well, wherever they are applied."""

    @contextmanager
    def planting() -> Iterator[None]:
        patterns = getattr(import_module(module), name)
        original = patterns.apply

        def apply(graph: Graph) -> int:
            found = int(original(graph))
            edit(graph)
            return found

        with patch.object(patterns, "apply", apply):
            yield

    return planting


@contextmanager
def own_pattern() -> Iterator[None]:
    """A pass of the program's that applies one pattern, which takes sin for cos."""
    patterns = PatternMatcherPass()

    @register_graph_pattern(CallFunction(aten.sin.default, KeywordArg("x")), pass_dict=patterns)
    def sine_as_cosine(match: Match, x: Node) -> None:
        sine = match.output_node()
        with match.graph.inserting_before(sine):
            cosine = match.graph.call_function(aten.cos.default, (x,))
        cosine.meta.update(sine.meta)
        sine.replace_all_uses_with(cosine)
        match.erase_nodes()

    with torch._inductor.config.patch(post_grad_custom_post_pass=patterns.apply):
        yield


def padded_with(value: float) -> Edit:
    def edit(graph: Graph) -> None:
        for node in calls(graph, aten.constant_pad_nd.default):
            node.args = (*node.args[:2], value)

    return edit


def calls(graph: Graph, *targets: object) -> list[Node]:
    return [node for node in graph.nodes if node.op != "placeholder" and node.target in targets]


def constant(factor: float, *targets: object) -> Edit:
    """The constants that these ops are given grow by the factor."""

    def edit(graph: Graph) -> None:
        for node in calls(graph, *targets):
            node.args = tuple(arg * factor if isinstance(arg, float) else arg for arg in node.args)

    return edit


def swapped_arguments(*targets: object) -> Edit:
    def edit(graph: Graph) -> None:
        for node in calls(graph, *targets):
            node.args = (node.args[1], node.args[0], *node.args[2:])

    return edit


def another(was: Sequence[object], new: Callable[..., Any]) -> Edit:
    """Another op in their place, of the same arguments."""

    def edit(graph: Graph) -> None:
        for node in calls(graph, *was):
            node.op, node.target = "call_function", new

    return edit


def scaled_after(*targets: object) -> Edit:
    """What these ops give is scaled by a new node with their metadata."""

    def edit(graph: Graph) -> None:
        for node in calls(graph, *targets):
            with graph.inserting_after(node):
                scaled = graph.call_function(aten.mul.Tensor, (node, 0.9))
            for user in [user for user in node.users if user is not scaled]:
                user.replace_input_with(node, scaled)
            scaled.meta.update(node.meta)

    return edit


def rounded_to(dtype: torch.dtype, *targets: object) -> Edit:
    """What these ops give is cast to this dtype and back."""

    def edit(graph: Graph) -> None:
        for node in calls(graph, *targets):
            users, last = list(node.users), node
            for each in (dtype, node.meta["val"].dtype):
                with graph.inserting_after(last):
                    last = graph.call_function(torch.ops.prims.convert_element_type.default, (last, each))
                last.meta.update(node.meta | {"val": node.meta["val"].to(each)})
            for user in users:
                user.replace_input_with(node, last)

    return edit


def scaled_before(*targets: object) -> Edit:
    """What these are given is scaled by a new node without metadata."""

    def edit(graph: Graph) -> None:
        for node in calls(graph, *targets):
            with graph.inserting_before(node):
                node.args = (graph.call_function(operator.mul, (node.args[0], 1.0625)), *node.args[1:])

    return edit


def dropped(*targets: object) -> Edit:
    """What the op is given goes on in its place."""

    def edit(graph: Graph) -> None:
        for node in calls(graph, *targets):
            node.replace_all_uses_with(node.args[0])  # type: ignore[arg-type]
            graph.erase_node(node)

    return edit


def swapped_outputs(graph: Graph) -> None:
    """The first two results that the graph returns."""
    (end,) = graph.find_nodes(op="output")
    first, second, *others = end.args[0]
    end.args = (type(end.args[0])((second, first, *others)),)


def other_dims(graph: Graph) -> None:
    """A transposed square is not transposed: only its strides tell."""
    for node in calls(graph, aten.permute.default):
        node.args = (node.args[0], [0, 1])


def scaled(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    h = h * 1.375  # guilty
    return (h @ w).cos()


def apart(x: Tensor, y: Tensor) -> Tensor:
    h = x.sin()
    h = h - y  # guilty
    return h @ y


def rectified(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = torch.relu(h)  # guilty
    return h @ w


def padded(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = F.pad(h, (1, 1, 1, 1), value=0.5)  # guilty
    return h.sin()


def waved(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = h.sin()  # guilty
    return h * 2


def powered(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    h = torch.exp(h)  # guilty
    return (h @ w).cos()


def joined(x: Tensor, y: Tensor) -> Tensor:
    h = torch.cat([x, y])
    h = torch.relu(h)  # guilty
    return h @ y


def two(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    h = x @ w
    return h.sin(), h.cos()  # guilty


def transposed(x: Tensor, w: Tensor) -> Tensor:
    h = x.sin()
    return h @ w.t()  # guilty


class Counting(nn.Module):
    """Its buffer is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.total = nn.Buffer(torch.zeros(32))

    def forward(self, x: Tensor) -> Tensor:
        h = x.sin()
        self.total.add_(h.detach().sum(0))  # guilty
        return h * 2


SQUARE = ((32, 32), (32, 32))
BF16, F8 = torch.bfloat16, torch.float8_e4m3fn
MUL = (aten.mul.Tensor, aten.mul.Scalar)
SUB = aten.sub.Tensor
PRE, JOINT, POST = (
    "torch._inductor.fx_passes.pre_grad",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.fx_passes.post_grad",
)

PRE_GRAD = (
    Plant(
        "pre_grad", "constant", scaled, SQUARE, hooked("pre_grad_custom_pass", constant(1.5, operator.mul)),
        stage="pre_grad", maker="pass", made_by="pre_grad_custom_pass", node="h",
    ),
    Plant(
        "pre_grad", "swapped_sub", apart, SQUARE, hooked("pre_grad_custom_pass", swapped_arguments(operator.sub)),
        stage="pre_grad", maker="pass", made_by="pre_grad_custom_pass", node="h", backward=True, dtype=BF16,
    ),
    Plant(
        "pre_grad", "inserted", waved, SQUARE, hooked("pre_grad_custom_pass", scaled_before("sin")),
        stage="pre_grad", maker="pass", made_by="pre_grad_custom_pass", node="mul", backward=True,
    ),
    Plant(
        "pre_grad", "builtin", rectified, SQUARE,
        method_made_wrong(PRE, "efficient_conv_bn_eval_pass", another([torch.relu], torch.tanh)),
        stage="pre_grad", maker="pass", made_by="efficient_conv_bn_eval_pass", node="h",
    ),
    Plant(
        "pre_grad", "unnamed", joined, SQUARE, made_wrong(PRE, "fuse_fx", another([torch.relu], torch.tanh)),
        stage="pre_grad", maker="pass", made_by="between the passes",
    ),
)  # fmt: skip

JOINT_PASSES = (
    Plant(
        "joint", "constant", scaled, SQUARE, hooked("joint_custom_pre_pass", constant(1.5, *MUL)),
        stage="joint_passes", maker="pass", made_by="joint_custom_pre_pass", node="mul",
    ),
    Plant(
        "joint", "swapped_sub", apart, SQUARE, hooked("joint_custom_post_pass", swapped_arguments(SUB)),
        stage="joint_passes", maker="pass", made_by="joint_custom_post_pass", node="sub", backward=True, dtype=BF16,
    ),
    Plant(
        "joint", "builtin", rectified, SQUARE,
        made_wrong(JOINT, "constant_fold_uniform_value", another([aten.le.Scalar], aten.ge.Scalar)),
        stage="joint_passes", maker="pass", made_by="constant_fold_uniform_value", node="", backward=True,
    ),
    Plant(
        "joint", "beside_its_mask", rectified, SQUARE, hooked("joint_custom_post_pass", scaled_after(aten.where.self)),
        stage="joint_passes", maker="pass", made_by="joint_custom_post_pass", node="where", backward=True,
    ),
    Plant(
        "joint", "dropped", scaled, SQUARE, made_wrong(POST, "remove_noop_ops", dropped(*MUL)),
        stage="joint_passes", maker="pass", made_by="remove_noop_ops",
    ),
)  # fmt: skip

POST_GRAD = (
    Plant(
        "post_grad", "constant", scaled, SQUARE, hooked("post_grad_custom_post_pass", constant(1.5, *MUL)),
        stage="post_grad", maker="pass", made_by="post_grad_custom_post_pass", node="mul",
    ),
    Plant(
        "post_grad", "inside_of_torch", padded, SQUARE, hooked("post_grad_custom_post_pass", padded_with(0.25)),
        stage="post_grad", maker="pass", made_by="post_grad_custom_post_pass", node="constant_pad_nd",
    ),
    Plant(
        "pattern", "post_grad", waved, SQUARE, own_pattern,
        stage="post_grad", maker="pass", made_by="sine_as_cosine", node="sin",
    ),
    Plant(
        "post_grad", "another_op", powered, SQUARE,
        hooked("post_grad_custom_pre_pass", another([aten.exp.default], aten.tanh.default)),
        stage="post_grad", maker="pass", made_by="post_grad_custom_pre_pass", node="exp", backward=True, dtype=BF16,
    ),
    Plant(
        "post_grad", "rounded", powered, SQUARE, hooked("post_grad_custom_post_pass", rounded_to(F8, aten.exp.default)),
        stage="post_grad", maker="pass", made_by="post_grad_custom_post_pass", node="exp", backward=True,
        devices=("cpu",),
    ),
    Plant(
        "joint", "rounded", scaled, SQUARE, hooked("joint_custom_post_pass", rounded_to(F8, *MUL)),
        stage="joint_passes", maker="pass", made_by="joint_custom_post_pass", node="mul", devices=("cpu",),
    ),
    Plant(
        "post_grad", "builtin", scaled, SQUARE, made_wrong(POST, "decompose_auto_functionalized", dropped(*MUL)),
        stage="post_grad", maker="pass", made_by="decompose_auto_functionalized",
    ),
)  # fmt: skip

MUTATIONS = (
    Plant(
        "mutation", "post_grad", Counting, ((16, 32),),
        hooked("post_grad_custom_post_pass", dropped(aten.copy_.default)),
        stage="post_grad", maker="pass", made_by="post_grad_custom_post_pass",
    ),
    Plant(
        "mutation", "pre_grad", Counting, ((16, 32),), hooked("pre_grad_custom_pass", dropped("add_")),
        stage="pre_grad", maker="pass", made_by="pre_grad_custom_pass", backward=True, dtype=BF16,
    ),
)  # fmt: skip

SWAPPED = (
    Plant(
        "swapped", "post_grad", two, SQUARE, hooked("post_grad_custom_post_pass", swapped_outputs),
        stage="post_grad", maker="pass", made_by="post_grad_custom_post_pass",
    ),
    Plant(
        "swapped", "pre_grad", two, SQUARE, hooked("pre_grad_custom_pass", swapped_outputs),
        stage="pre_grad", maker="pass", made_by="pre_grad_custom_pass", backward=True, dtype=BF16,
    ),
)  # fmt: skip

STRIDES = (
    Plant(
        "stride", "post_grad", transposed, SQUARE, hooked("post_grad_custom_post_pass", other_dims),
        stage="post_grad", maker="pass", made_by="post_grad_custom_post_pass", node="permute",
    ),
)  # fmt: skip

PLANTS = (*PRE_GRAD, *JOINT_PASSES, *POST_GRAD, *MUTATIONS, *SWAPPED, *STRIDES)
