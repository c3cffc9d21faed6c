"""Which graphs does a program go through on its way into Inductor, and which pass made each of the next?

Torch's private names for KernelDiff's blame by stage. Run on torch 2.14 (CPU) and 2.11.
"""

import copy
import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch.fx import GraphModule

from idbg.engine.compat import fx
from idbg.engine.compat.passes import Pass, observers_heard
from idbg.engine.compat.patterns import AppliedPattern, patterns_heard


class Told(Protocol):
    """Who hears of the graphs, each a copy that no later pass changes."""

    def given(self, gm: GraphModule, inputs: Sequence[object]) -> None:
        """Dynamo's graph, before any pass, with the (fake) tensors that it is traced with."""

    def pre_grad(self, gm: GraphModule) -> None:
        """The same after the passes on it."""

    def joint(self, gm: GraphModule) -> None:
        """ATen, decomposed: forward and backward as one graph, or the inference graph."""

    def joint_passes(self, gm: GraphModule) -> None:
        """The same after the passes on it."""

    def part(self, gm: GraphModule) -> None:
        """A forward, backward or inference graph before Inductor's passes on it, and before it is lowered."""

    def passed(
        self,
        name: str,
        made_by: object,
        before: GraphModule,
        after: GraphModule,
        patterns: Sequence[AppliedPattern],
    ) -> None:
        """A pass that changed something, in whichever of the phases is on; `made_by` is what was called, `patterns`
        what it applied of the pattern matcher's.
        """


@contextmanager
def stages_told(listener: Told) -> Iterator[None]:
    """While it lasts, whatever Inductor compiles is told of stage by stage."""
    from torch._inductor import compile_fx

    with ExitStack() as stack:
        stack.enter_context(_around(compile_fx, "_recursive_pre_grad_passes", listener.given, listener.pre_grad))
        stack.enter_context(_joint_around(compile_fx, listener))
        stack.enter_context(_around(compile_fx, "_recursive_post_grad_passes", _second_dropped(listener.part), None))
        stack.enter_context(_passes_told(listener))
        yield


def _second_dropped(tell: Callable[[GraphModule], None]) -> Callable[..., None]:
    return lambda gm, *_: tell(gm)


@contextmanager
def _around(module: Any, name: str, before: Callable[..., None], after: Callable[[GraphModule], None] | None) -> Any:
    """A function of the compiler's that calls itself for graphs inside of graphs: told of the outermost alone."""
    original = getattr(module, name)
    depth = 0

    @functools.wraps(original)
    def told(gm: GraphModule, *args: Any, **kwargs: Any) -> object:
        nonlocal depth
        if depth == 0:
            before(copy_of(gm), *args)
        depth += 1
        try:
            result = original(gm, *args, **kwargs)
        finally:
            depth -= 1
        if depth == 0 and after is not None:
            after(copy_of(result))
        return result

    setattr(module, name, told)
    try:
        yield
    finally:
        setattr(module, name, original)


def _joint_around(module: Any, listener: Told) -> Any:
    return _around(module, "_recursive_joint_graph_passes", _second_dropped(listener.joint), listener.joint_passes)


@contextmanager
def _passes_told(listener: Told) -> Iterator[None]:
    """Most change nothing: for all of those one copy is made."""
    kept: dict[str, Any] = {"text": None, "copy": None}  # the last graph that was seen
    before: list[tuple[object, GraphModule]] = []
    patterns: list[AppliedPattern] = []  # of the pass that goes on

    def seen(gm: GraphModule) -> tuple[object, GraphModule]:
        if (text := structure(gm)) != kept["text"]:
            kept.update(text=text, copy=copy_of(gm))
        return text, kept["copy"]

    def began(applied: Pass) -> None:
        if applied.made_by is not None:
            patterns.clear()
            before.append(seen(applied.gm))

    def ended(applied: Pass) -> None:
        if applied.made_by is None:
            return
        text, old = before.pop()
        other, new = seen(applied.gm)
        if other != text:
            listener.passed(applied.name, applied.made_by, old, new, tuple(patterns))

    with observers_heard(began, ended), patterns_heard(patterns.append):
        yield


def copy_of(gm: GraphModule) -> GraphModule:
    """A graph module whose nodes are its own; parameters and buffers are the same, graphs that it holds are copied."""
    from torch.fx._lazy_graph_module import _LazyGraphModule

    made = _LazyGraphModule(gm, copy.deepcopy(gm.graph))
    for node in made.graph.nodes:
        held = getattr(made, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(held, GraphModule):
            setattr(made, str(node.target), copy_of(held))
    made.meta.update(gm.meta)
    return made


def structure(gm: GraphModule) -> list[tuple[object, ...]]:
    """What two graphs that compute the same way have in common."""
    lines: list[tuple[object, ...]] = []
    for node in gm.graph.nodes:
        lines.append((node.name, node.op, str(node.target), str(node.args), str(node.kwargs)))
        held = getattr(gm, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(held, GraphModule):
            lines += structure(held)
    return lines


@dataclass(frozen=True)
class Traced:
    """A graph of ATen's that Dynamo's was traced to. `outputs`: how many of its results are the forward's."""

    gm: GraphModule
    outputs: int


class _Stopped(Exception):
    """The graph is there: nothing of it is to be compiled."""


def traced(gm: GraphModule, inputs: Sequence[object], decompositions: Mapping[object, Callable[..., object]]) -> Traced:
    """Dynamo's graph as AOTAutograd traces it: forward and backward as one, where gradients are recorded.

    Raises what the trace raises.
    """
    from torch._dynamo.backends.common import aot_autograd

    results: list[Traced] = []

    def joint(joint_gm: GraphModule, _: object, *, num_fwd_outputs: int, **__: object) -> object:
        tokens = sum(map(is_token, _returned(joint_gm)[:num_fwd_outputs]))
        results.append(Traced(copy_of(joint_gm), num_fwd_outputs - tokens))
        raise _Stopped

    def whole(inference: GraphModule, _: object) -> object:
        results.append(Traced(copy_of(inference), len(output_values(inference))))
        raise _Stopped

    compiler = cast("Callable[..., Callable[..., object]]", aot_autograd)(
        fw_compiler=whole,
        bw_compiler=whole,
        inference_compiler=whole,
        partition_fn=joint,
        decompositions=dict(decompositions),
        keep_inference_input_mutations=True,
    )
    try:
        with torch._functorch.config.patch(enable_autograd_cache=False):
            compiler(copy_of(gm), list(inputs))
    except _Stopped:
        pass
    if not results:
        raise ValueError("AOTAutograd made no graph of it")
    return results[0]


def outside_of_modes() -> AbstractContextManager[object]:
    """What runs in it runs as it is, and not through the dispatch modes that are in force."""
    from torch.utils._python_dispatch import _disable_current_modes

    return cast("AbstractContextManager[object]", _disable_current_modes())


def is_token(value: object) -> bool:
    """Whether a graph's argument or result only keeps ops with effects in their order (`with_effects`). Some stages
    have these tokens, and others not.
    """
    from torch._higher_order_ops.effects import with_effects

    if not isinstance(value, torch.fx.Node):
        return False
    if value.op == "placeholder":
        return any(user.target is with_effects and user.args[0] is value for user in value.users)
    source = value.args[0] if value.target is operator.getitem else None
    return isinstance(source, torch.fx.Node) and source.target is with_effects and bool(value.args[1] == 0)


def arguments_of(gm: GraphModule) -> list[torch.fx.Node]:
    """The graph's arguments, without its tokens."""
    return [node for node in gm.graph.nodes if node.op == "placeholder" and not is_token(node)]


def output_values(gm: GraphModule) -> list[object]:
    """What the graph returns, nodes and constants, flat, without its tokens."""
    return [value for value in _returned(gm) if not is_token(value)]


RNG_STATE = "rng_state_output"
"""How the partitioner names a backward's argument that is the state of a generator at a draw of the forward."""


def is_rng_state(value: object) -> bool:
    """Whether a graph's result is the state of a generator that a draw of a checkpointed region began at."""
    if not isinstance(value, torch.fx.Node) or value.target is not operator.getitem or value.args[1] != 0:
        return False
    return isinstance(of := value.args[0], torch.fx.Node) and fx.op_name(of.target) == "run_and_save_rng_state"


def without_tokens(gm: GraphModule, results: Sequence[object]) -> list[object]:
    """Of what a run of the graph returned, the values of `output_values`."""
    return [value for node, value in zip(_returned(gm), results, strict=True) if not is_token(node)]


def _returned(gm: GraphModule) -> list[object]:
    output = next(node for node in reversed(gm.graph.nodes) if node.op == "output")
    returned = output.args[0]
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


def decompositions() -> dict[object, Callable[..., object]]:
    """By what Inductor decomposes ops, as its settings are now."""
    from torch._inductor.decomposition import select_decomp_table

    return dict(select_decomp_table())


def partitioner() -> tuple[str, tuple[str, int]]:
    """The name of what cuts the joint graph in two, and where it is defined."""
    from torch._inductor import compile_fx

    custom = torch._inductor.config.custom_partitioner_fn
    made_by = custom or vars(compile_fx)["min_cut_rematerialization_partition"]
    return str(getattr(made_by, "__name__", type(made_by).__name__)), place_of(made_by)


def place_of(function: object) -> tuple[str, int]:
    """File and line at which a pass, a decomposition or a lowering is defined; "" and 0 where it has none."""
    while isinstance(function, functools.partial):
        function = function.func
    if not callable(function):
        return "", 0
    plain = inspect.unwrap(function)
    plain = getattr(plain, "__func__", plain)
    code = getattr(plain, "__code__", None) or getattr(vars(type(plain)).get("__call__"), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)


def name_of(function: object) -> str:
    """What a pass is called where it is defined: its function's name or its class; "" of none and of a lambda."""
    while isinstance(function, functools.partial):
        function = function.func
    name = str(getattr(function, "__qualname__", "") or (type(function).__name__ if function is not None else ""))
    return "" if "<lambda>" in name else name.replace("<locals>.", "")


_TORCH = str(Path(torch.__file__).parent)


def is_torchs(file: str) -> bool:
    """Whether a file is one of torch's own."""
    return file.startswith(_TORCH)


def lowering_of(target: object) -> Callable[..., object] | None:
    """What Inductor lowers an op by; None where it has nothing."""
    from torch._inductor.lowering import lowerings

    return cast("dict[object, Callable[..., object]]", lowerings).get(target)


def original_op(node: torch.fx.Node) -> str:
    """The ATen op that a node was decomposed from, or is: "gelu", "native_batch_norm_backward"."""
    return fx.op_name(node.meta.get("original_aten") or node.target)
