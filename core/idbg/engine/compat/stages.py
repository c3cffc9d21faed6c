"""Capture the graphs that a program goes through on its way into Inductor, and the passes that change them."""

import copy
import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch.fx import GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from idbg.engine.compat import fx
from idbg.engine.compat.hooks import Wrapper, hooked
from idbg.engine.compat.names import find, instead_of, internals
from idbg.engine.compat.passes import AppliedPattern, Pass, observe_passes, observe_patterns


class StageObserver(Protocol):
    """Receives the graphs, each a copy that no later pass changes."""

    def dynamo(self, gm: GraphModule, inputs: Sequence[object]) -> None:
        """Dynamo's graph, before any pass, with the (fake) tensors that it is traced with."""

    def pre_grad(self, gm: GraphModule) -> None:
        """The same after the passes on it."""

    def joint(self, gm: GraphModule) -> None:
        """ATen, decomposed: forward and backward as one graph, or the inference graph."""

    def joint_passes(self, gm: GraphModule) -> None:
        """The same after the passes on it."""

    def freezing(self) -> None:
        """Parameters of the graph become constants (Inductor's option freezing)."""

    def frozen(self, parameters: Sequence[object], preserved: Sequence[int]) -> None:
        """They became constants. `parameters` are the graph's first arguments; `preserved` are the places of those
        arguments that the graph still takes.
        """

    def part(self, gm: GraphModule) -> None:
        """A forward, backward or inference graph before Inductor's passes on it, and before it is lowered."""

    def passed(
        self,
        name: str,
        function: object,
        before: GraphModule,
        after: GraphModule,
        patterns: Sequence[AppliedPattern],
    ) -> None:
        """A pass that changed something, in the current phase; `function` is what torch called, `patterns` what the
        pattern matcher applied.
        """


@contextmanager
def observe_stages(observer: StageObserver) -> Iterator[None]:
    """While it lasts, `observer` gets the graphs of all that Inductor compiles."""
    with _observe_phases(observer), _observe_changes(observer):
        yield


def _observe_phases(observer: StageObserver) -> AbstractContextManager[None]:
    """The phases call themselves for graphs inside of a graph: only the outermost is reported."""

    def observed(before: Callable[..., None], after: Callable[[GraphModule], None] | None) -> Wrapper:
        depth = 0

        def run(call: Callable[..., object], gm: GraphModule, *args: Any, **kwargs: Any) -> object:
            nonlocal depth
            if depth == 0:
                before(copy_of(gm), *args)
            depth += 1
            try:
                result = call(gm, *args, **kwargs)
            finally:
                depth -= 1
            if depth == 0 and after is not None:
                after(copy_of(cast("GraphModule", result)))
            return result

        return run

    def freeze(call: Callable[..., tuple[GraphModule, list[int]]], *args: object) -> tuple[GraphModule, list[int]]:
        context = internals._guards.TracingContext.try_get()
        parameters = list(context.params_flat_unwrap_subclasses or ()) if context is not None else []
        observer.freezing()
        gm, preserved = call(*args)
        observer.frozen(parameters, preserved)
        return gm, preserved

    wrappers: dict[str, Wrapper] = {
        "freeze": freeze,
        "_recursive_pre_grad_passes": observed(observer.dynamo, observer.pre_grad),
        "_recursive_joint_graph_passes": observed(lambda gm, *_: observer.joint(gm), observer.joint_passes),
        "_recursive_post_grad_passes": observed(lambda gm, *_: observer.part(gm), None),
    }
    return hooked("pass graphs", wrappers)


@contextmanager
def _observe_changes(observer: StageObserver) -> Iterator[None]:
    """Most passes change nothing: one copy of the graph serves all of those."""
    last: tuple[object, GraphModule] | None = None
    before: list[tuple[object, GraphModule]] = []
    patterns: list[AppliedPattern] = []  # of the current pass

    def seen(gm: GraphModule) -> tuple[object, GraphModule]:
        nonlocal last
        text = structure(gm)
        if last is None or last[0] != text:
            last = text, copy_of(gm)
        return last

    def began(applied: Pass) -> None:
        if applied.function is not None:
            patterns.clear()
            before.append(seen(applied.gm))

    def ended(applied: Pass) -> None:
        if applied.function is None:
            return
        text, old = before.pop()
        new_text, new = seen(applied.gm)
        if new_text != text:
            observer.passed(applied.name, applied.function, old, new, tuple(patterns))

    with observe_passes("traced passes", began, ended), observe_patterns(patterns.append):
        yield


def copy_of(gm: GraphModule) -> GraphModule:
    """A graph module with copies of the nodes and of the graphs that it holds, and the same parameters and buffers."""
    made: GraphModule = find("torch.fx._lazy_graph_module._LazyGraphModule", GraphModule)(gm, copy.deepcopy(gm.graph))
    for node in made.graph.nodes:
        if (inner := fx.inner_graph(made, node)) is not None:
            setattr(made, str(node.target), copy_of(inner))
    made.meta.update(gm.meta)
    return made


def structure(gm: GraphModule) -> list[tuple[object, ...]]:
    """A description of a graph that is equal for graphs with the same nodes."""
    lines: list[tuple[object, ...]] = []
    for node in gm.graph.nodes:
        lines.append((node.name, node.op, str(node.target), str(node.args), str(node.kwargs)))
        if (inner := fx.inner_graph(gm, node)) is not None:
            lines += structure(inner)
    return lines


@dataclass(frozen=True)
class Traced:
    """The ATen graph that Dynamo's was traced to. `outputs`: how many of its results are the forward's."""

    gm: GraphModule
    outputs: int


class _Stopped(Exception):
    """Stops AOTAutograd once the graph is traced: it is not compiled."""


def traced(gm: GraphModule, inputs: Sequence[object], decompositions: Mapping[object, Callable[..., object]]) -> Traced:
    """Dynamo's graph as AOTAutograd traces it: forward and backward as one, where gradients are recorded.

    Raises what the trace raises, NotImplementedError for nested tensors, whose ragged sizes have no expression there.
    """
    if any(isinstance(value, torch.Tensor) and value.is_nested for value in inputs):
        raise NotImplementedError("graphs of nested tensors are not run again stage by stage")
    results: list[Traced] = []

    def joint(joint_gm: GraphModule, _: object, *, num_fwd_outputs: int, **__: object) -> object:
        tokens = sum(map(is_token, _returned(joint_gm)[:num_fwd_outputs]))
        results.append(Traced(copy_of(joint_gm), num_fwd_outputs - tokens))
        raise _Stopped

    def whole(inference: GraphModule, _: object) -> object:
        results.append(Traced(copy_of(inference), len(output_values(inference))))
        raise _Stopped

    compiler = cast("Callable[..., Callable[..., object]]", internals._dynamo.backends.common.aot_autograd)(
        fw_compiler=whole,
        bw_compiler=whole,
        inference_compiler=whole,
        partition_fn=joint,
        decompositions=dict(decompositions),
        keep_inference_input_mutations=True,
        ignore_shape_env=True,  # the inputs' own sizes: it is for what the graph makes, as `nonzero` and loops do
    )
    made = internals._guards.TracingContext(internals._subclasses.FakeTensorMode(shape_env=ShapeEnv()))
    copied = copy_of(gm)
    for node in copied.graph.nodes:
        node.meta.pop("unbacked_bindings", None)  # symbols of the program's own compile
    try:
        with internals._functorch.config.patch(enable_autograd_cache=False), internals._guards.tracing(made):
            compiler(copied, list(inputs))
    except _Stopped:
        pass
    if not results:
        raise ValueError("AOTAutograd made no graph of it")
    return results[0]


def is_token(value: object) -> bool:
    """Whether a graph's argument or result is a token that orders ops with effects (`with_effects`). Only some stages
    have them.
    """
    if not isinstance(value, torch.fx.Node):
        return False
    if value.op == "placeholder":
        return any(
            user.target is internals._higher_order_ops.effects.with_effects and user.args[0] is value
            for user in value.users
        )
    source = value.args[0] if value.target is operator.getitem else None
    return (
        isinstance(source, torch.fx.Node)
        and source.target is internals._higher_order_ops.effects.with_effects
        and bool(value.args[1] == 0)
    )


def arguments_of(gm: GraphModule) -> list[torch.fx.Node]:
    """The graph's arguments, without its tokens."""
    return [node for node in gm.graph.nodes if node.op == "placeholder" and not is_token(node)]


def output_values(gm: GraphModule) -> list[object]:
    """What the graph returns, nodes and constants, flat, without its tokens."""
    return [value for value in _returned(gm) if not is_token(value)]


RNG_STATE = "rng_state_output"
"""The partitioner's name of a backward's argument with the generator's state at a draw of the forward."""


def is_rng_state(value: object) -> bool:
    """Whether a graph's result is the generator's state before a draw of a checkpointed region."""
    if not isinstance(value, torch.fx.Node) or value.target is not operator.getitem or value.args[1] != 0:
        return False
    return isinstance(of := value.args[0], torch.fx.Node) and fx.op_name(of.target) == "run_and_save_rng_state"


def without_tokens(gm: GraphModule, results: Sequence[object]) -> list[object]:
    """The values of `output_values` among the results of a run of the graph."""
    return [value for node, value in zip(_returned(gm), results, strict=True) if not is_token(node)]


def _returned(gm: GraphModule) -> list[object]:
    output = next(node for node in reversed(gm.graph.nodes) if node.op == "output")
    returned = output.args[0]
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


@instead_of({})
def decompositions() -> dict[object, Callable[..., object]]:
    """Inductor's decompositions under its current settings."""
    return dict(internals._inductor.decomposition.select_decomp_table())


@instead_of(("", ("", 0)))
def partitioner() -> tuple[str, tuple[str, int]]:
    """The name of the function that partitions the joint graph, and where it is defined."""
    custom = internals._inductor.config.custom_partitioner_fn
    function = custom or find("torch._inductor.compile_fx.min_cut_rematerialization_partition")
    return str(getattr(function, "__name__", type(function).__name__)), place_of(function)


def place_of(function: object) -> tuple[str, int]:
    """File and line of the definition of a pass, a decomposition or a lowering; "" and 0 without one."""
    while isinstance(function, functools.partial):
        function = function.func
    if not callable(function):
        return "", 0
    plain = inspect.unwrap(function)
    plain = getattr(plain, "__func__", plain)
    code = getattr(plain, "__code__", None) or getattr(vars(type(plain)).get("__call__"), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)


def name_of(function: object) -> str:
    """The name of a pass in its source: its function or its class; "" for none and for a lambda."""
    while isinstance(function, functools.partial):
        function = function.func
    name = str(getattr(function, "__qualname__", "") or (type(function).__name__ if function is not None else ""))
    return "" if "<lambda>" in name else name.replace("<locals>.", "")


_TORCH = str(Path(torch.__file__).parent)


def is_torchs(file: str) -> bool:
    """Whether a file is one of torch's own."""
    return file.startswith(_TORCH)


@instead_of(None)
def lowering_of(target: object) -> Callable[..., object] | None:
    """Inductor's lowering of an op; None where it has none."""
    return cast("dict[object, Callable[..., object]]", internals._inductor.lowering.lowerings).get(target)


def original_op(node: torch.fx.Node) -> str:
    """The ATen op that a node was decomposed from, or is: "gelu", "native_batch_norm_backward"."""
    return fx.op_name(node.meta.get("original_aten") or node.target)
