"""Count the work of a launch: bytes and FLOPs, from the tensors that it is called with."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from idbg.analysis.flops import flops
from idbg.analysis.sizes import stored_bytes
from idbg.engine.bench.launches import LaunchSite
from idbg.engine.compat import fx
from idbg.engine.compat.torch_types import OpOverload, tree_leaves

_PACKED = {
    "mkl._mkl_linear.default": "aten.linear",
    "mkldnn._linear_pointwise.default": "aten.linear",
    "mkldnn._convolution_pointwise.default": "aten.conv2d",
}
_PARAMETERS = re.compile(r"(?:\bkernel|def \w+)\s*\(([^)]*)\)")
_NAME = re.compile(r"[\s*&]+")  # the last word of "const float* in_ptr0"
_IN_PLACE = re.compile(r"in_out_ptr\d*$")


@dataclass
class Work:
    """The observed work of one launch site in one run. `bytes` and `flops` are of all its launches; None: unknown."""

    launches: int = 0
    bytes: int | None = 0
    flops: int | None = 0
    device: torch.device | None = None
    dtype: str = ""


@dataclass
class WorkProbe:
    """Observes each launch, after all were compiled: to be passed to `Launches.through`."""

    all: Sequence[LaunchSite]
    seen: dict[int, Work] = field(default_factory=dict)  # in the order of the first launches

    def __call__(self, number: int, call: Callable[..., object], /, *args: object, **kwargs: object) -> object:
        launched, work = self.all[number], self.seen.setdefault(number, Work())
        if launched.kind == "extern":
            with FlopCounterMode(display=False) as counter:
                result = call(*args, **kwargs)
            size = _extern_bytes(call, args, kwargs, result)
            count = int(counter.get_total_flops()) or _flops_of_op(call, (args, kwargs), result)
        else:
            result = call(*args, **kwargs)
            size, count = _kernel_bytes(launched, args), self._flops_of_nodes(launched)
        work.launches += 1
        work.bytes, work.flops = _sum(work.bytes, size), _sum(work.flops, count)
        tensors = list(_tensors((args, kwargs, result)))
        work.device = work.device or next((tensor.device for tensor in tensors if tensor.is_cuda), None)
        work.dtype = work.dtype or next((_name(tensor) for tensor in tensors if tensor.is_floating_point()), "")
        return result

    def _flops_of_nodes(self, launched: LaunchSite) -> int | None:
        """FLOPs of the products that only this launch computes; None if there are none. An extern call's epilogue names
        the call's node too.
        """
        graph = launched.graph
        listed = Counter(
            name for other in self.all if other.graph is graph for name in dict.fromkeys(other.launch.nodes)
        )
        nodes = {node.name: node for node in graph.gm.graph.nodes}
        own = [nodes[name] for name in launched.launch.nodes if listed[name] == 1 and name in nodes]
        return sum(_flops(node) for node in own) or None


def _flops_of_op(call: Callable[..., object], inputs: object, result: object) -> int | None:
    """FLOPs of an op that torch does not count: attention on a CPU (2.11), and what freezing makes of weights."""
    if not isinstance(call, OpOverload):
        return None
    operands, results = ([fx.tensor_meta(tensor) for tensor in _tensors(tree)] for tree in (inputs, result))
    return flops(_PACKED.get(str(call), str(call)), operands, results) or None


def _flops(node: Node) -> int:
    """FLOPs of one call of the op by torch's counter; 0 if it does not count the op."""
    target = node.target
    if not isinstance(target, OpOverload) or target._overloadpacket not in flop_registry:
        return 0
    args, kwargs = map_arg((node.args, node.kwargs), lambda source: source.meta.get("val"))
    count = flop_registry[target._overloadpacket](*args, **kwargs, out_val=node.meta.get("val"))
    return cast("int | None", fx.concrete(count)) or 0


def _kernel_bytes(launched: LaunchSite, args: Iterable[object]) -> int | None:
    """Bytes that one launch of a generated kernel reads and writes; what it changes in place counts twice."""
    *_, last = ["", *_PARAMETERS.findall(launched.kernel.source if launched.kernel else "")]  # helpers come before it
    names = [_NAME.split(part.partition(":")[0].strip())[-1] for part in last.split(",")]
    total: int | None = 0
    for at, argument in enumerate(args):
        if isinstance(argument, Tensor):
            times = 2 if at < len(names) and _IN_PLACE.match(names[at]) else 1
            total = _sum(total, _bytes(argument), times)
    return total


def _extern_bytes(
    call: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object], result: object
) -> int | None:
    """Bytes that an extern op reads and writes: its inputs count once; its results, and what it writes to (by its
    schema, or `out`), once more.
    """
    inputs = dict(kwargs)
    written = [inputs.pop("out", None), *(args[at] for at in fx.written(call) if at < len(args))]
    read = {_place(tensor): tensor for tensor in _tensors((args, inputs))}
    made = {_place(tensor): tensor for tensor in _tensors(written)}
    known = {_address(tensor) for tensor in (*read.values(), *made.values())}
    made |= {_place(tensor): tensor for tensor in _tensors(result) if _address(tensor) not in known}
    total: int | None = 0
    for tensor in (*read.values(), *made.values()):
        total = _sum(total, _bytes(tensor))
    return total


def _tensors(tree: object) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def _place(tensor: Tensor) -> tuple[object, ...]:
    return _address(tensor), tensor.shape, tensor.dtype


def _address(tensor: Tensor) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError:  # what mkldnn packs has none
        return id(tensor)


def _bytes(tensor: Tensor) -> int | None:
    return stored_bytes(fx.tensor_meta(tensor))


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _sum(total: int | None, more: int | None, times: int = 1) -> int | None:
    return None if total is None or more is None else total + times * more
