"""Run one stage's graph node by node, in float64 or in the program's own dtypes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from idbg.engine.compat import comparing, fx, stages
from idbg.engine.kerneldiff.float64.memory import Memory, WithinMemory, current_memory
from idbg.engine.kerneldiff.float64.mode import Float64, NotInFloat64
from idbg.engine.kerneldiff.kernels.values import arguments_written
from idbg.engine.kerneldiff.stages.own_draws import NumberedDraws
from idbg.engine.kerneldiff.tensors.float64_device import usual_dtype
from idbg.engine.program.environment import state_restored

NodeHook = Callable[[Node, object], None]
_REDRAWN = "graphsafe_run_with_rng_state"
_SEED = 0  # of the random numbers of every stage: they draw the same, as long as they draw in the same order


@dataclass(frozen=True)
class GraphResult:
    """The results of a graph, in order, and the inputs that it writes to, by the placeholder's name. `draws`:
    the random numbers it drew; `narrowed`: the dtypes of ops that have no float64.
    """

    outputs: list[object]
    after: dict[str, Tensor] = field(default_factory=dict)
    draws: tuple[str, ...] = ()
    narrowed: Mapping[str, torch.dtype] = field(default_factory=dict)


def computed(
    gm: GraphModule,
    inputs: Iterable[object],
    *,
    exact: bool = True,
    on_value: NodeHook | None = None,
    instead: Mapping[str, object] | None = None,
    seed: bool = True,
    own_draws: bool = False,
) -> GraphResult:
    """Run the graph on these inputs, which it does not change; what an iterator gives is dropped after its last use.
    `on_value` is called with every node and value; `instead` replaces the values of nodes; `own_draws`: draws have the
    numbers of `NumberedDraws`.

    Raises what an op raises, and NotInFloat64.
    """
    memory, written = current_memory(), _written(gm)
    arguments: list[object] = []
    programs: dict[Node, Tensor] = {}
    for node, value in _arguments(gm, inputs):
        own = value.clone() if isinstance(value, Tensor) and node in written else value
        arguments.append(_placed(memory, node, own))
        if isinstance(own, Tensor) and arguments[-1] is own:
            programs[node] = own
    unwritten = [value for node, value in programs.items() if node not in written]
    mode = Float64(usual_dtype(programs.values()), programs.values(), unwritten, narrows=True, memory=memory)
    draws = NumberedDraws() if own_draws else None
    runner = _Runner(gm, mode if exact else None, on_value, instead or {}, draws, memory)
    with ExitStack() as stack:
        stack.enter_context(state_restored())
        stack.enter_context(torch.no_grad())
        if seed:
            torch.manual_seed(_SEED)
        if exact:
            stack.enter_context(mode)
        else:
            stack.enter_context(WithinMemory(memory))
            for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
                stack.enter_context(torch.autocast(device, enabled=False))
        outputs, after = runner.results(one_by_one(arguments))
    return GraphResult(stages.without_tokens(gm, outputs), after, tuple(mode.draws), mode.narrowed)


def _arguments(gm: GraphModule, inputs: Iterable[object]) -> Iterator[tuple[Node, object]]:
    """Every argument, tokens too, with its value. Raises ValueError where the graph takes more or fewer than these."""
    wanted, values = set(stages.arguments_of(gm)), list(inputs)
    if len(wanted) != len(values):
        raise ValueError(f"it takes {len(wanted)} arguments, and was called with {len(values)}")
    each = one_by_one(values)
    for node in gm.graph.find_nodes(op="placeholder"):
        yield node, next(each) if node in wanted else torch.empty(0)


def one_by_one(values: list[object]) -> Iterator[object]:
    """The values, each of which leaves the list: it lives no longer than its last use."""
    values.reverse()
    while values:
        yield values.pop()


def _placed(memory: Memory, node: Node, value: object) -> object:
    """What a graph before this one returned and host memory holds, as a tensor of its device."""
    like = node.meta.get("val")
    if not isinstance(value, Tensor) or not isinstance(like, Tensor) or not value.is_cpu or not like.is_cuda:
        return value
    return memory.inside(value, like.device)


def _written(gm: GraphModule) -> set[Node]:
    """The arguments that the graph writes to in place, also through a view; not those that it copies to as a whole."""
    nodes = (node for node in gm.graph.nodes if _copied_to(node) is None)
    return {argument for node in nodes for argument in arguments_written(node)}


@dataclass(eq=False)
class _Runner(Interpreter):
    """Interprets the graph; a copy to an argument replaces the argument's value from there on."""

    gm: GraphModule
    mode: Float64 | None
    on_value: NodeHook | None
    instead: Mapping[str, object]
    draws: NumberedDraws | None
    memory: Memory
    after: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.gm)

    def run_node(self, n: Node) -> Any:
        """The node's value."""
        if self.mode is not None and fx.op_name(n.target) == _REDRAWN:
            raise NotInFloat64("a checkpointed region draws its random numbers again by a GPU generator's state")
        if n.name in self.instead:
            value = _shaped(self.instead[n.name], super().run_node(n))
        elif (target := _copied_to(n)) is not None:
            value = self._copied(n, target)
        else:
            value = _laid_out(n, super().run_node(n))
            self._note_dtype(n, value)
            self._note_written(n)
        if self.on_value is not None and n.op not in ("placeholder", "output"):
            with comparing.no_modes():
                self.memory.fill(value)
                self.on_value(n, value)
        return value

    def results(self, arguments: Iterator[object]) -> tuple[list[object], dict[str, Tensor]]:
        """Run the graph; what it returns, and the arguments that it writes to. What has moved is in host memory."""
        self.arguments = arguments
        try:
            result = self.run(enable_io_processing=False)
            self.env.clear()
            outputs = list(result) if isinstance(result, (list, tuple)) else [result]
            returned: tuple[list[object], dict[str, Tensor]] = self.memory.outside((outputs, self.after))
        except BaseException:
            self.memory.close(fill=False)
            raise
        self.memory.close()
        return returned

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The next argument, which is the graph's alone."""
        return next(self.arguments)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The op's value; the mode has a higher-order op run in float64."""
        if self.draws is not None and (drawn := self.draws.of(target, args, kwargs)) is not None:
            return drawn
        dense = comparing.dense_kernel(target) if self.mode is None else None
        return (dense or target)(*args, **kwargs)

    def _copied(self, node: Node, target: Node) -> object:
        args, _ = self.fetch_args_kwargs_from_env(node)
        held, source = cast("tuple[Tensor, Tensor]", args[:2])
        value = source.expand(held.shape)
        self.after[target.name] = self.env[target] = value
        return value

    def _note_dtype(self, node: Node, value: object) -> None:
        """Record the graph's dtype of a value, with autocast: it decides what dropout draws."""
        like = node.meta.get("example_value", node.meta.get("val"))
        if self.mode is None or not isinstance(value, Tensor) or not isinstance(like, Tensor):
            return
        with comparing.tensors_as_they_are():
            is_held = value.dtype == torch.float64
        if is_held and like.dtype.is_floating_point:
            self.mode.note_dtype(value, like.dtype)

    def _note_written(self, node: Node) -> None:
        """An op that writes in place to one of the graph's arguments."""
        for argument in arguments_written(node):
            if isinstance(self.env[argument], Tensor):
                self.after[argument.name] = self._twin(self.env[argument])

    def _twin(self, value: Tensor) -> Tensor:
        return cast("Tensor", self.mode.converted(value)) if self.mode is not None else value


def _laid_out(node: Node, value: object) -> object:
    """A new tensor with the program's strides, which views rely on: in another dtype an op may return other strides."""
    like = node.meta.get("val")
    if not isinstance(value, Tensor) or not isinstance(like, Tensor) or not fx.is_computed(node.target):
        return value
    wanted = tuple(map(fx.concrete, like.stride()))
    lies_so = tuple(value.stride()) == wanted or value.layout != torch.strided or None in wanted or 0 in wanted
    if lies_so or value.shape != tuple(map(fx.concrete, like.shape)):
        return value
    with comparing.no_modes():
        made = torch.empty_strided(value.shape, cast("Any", wanted), dtype=value.dtype, device=value.device)
        vars(made).update(vars(value))  # what the mode notes of it
        return made.copy_(value)


def _shaped(value: object, like: object) -> object:
    """A value in the shape of the one it replaces: a stage above may have it in another shape."""
    if isinstance(value, Tensor) and isinstance(like, Tensor) and value.numel() == like.numel():
        return value.reshape(like.shape)
    return value


def _copied_to(node: Node) -> Node | None:
    """The argument of the graph that this node copies to."""
    if node.op != "call_function" or fx.op_name(node.target) != "copy_":
        return None
    target = node.args[0]
    return target if isinstance(target, Node) and target.op == "placeholder" else None
