"""Private names of torch.distributed: replicas, the ranks of a collective, and the store that ranks share."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol
from weakref import WeakSet

import torch.distributed as dist
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.nn.modules.module import Module, register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel

from idbg.engine.compat import comparing, fx
from idbg.engine.compat.names import internals
from idbg.engine.compat.torch_types import tree_map_only

_NAMESPACES, _MODULES = ("aten", "prims", "prim"), ("", "torch", "_operator", "operator", "builtins", "math")
"""Of ops and functions that communicate with nobody, if their module is not torch.distributed."""
_SAME_EVERYWHERE = ("all_reduce", "all_gather", "broadcast")  # collectives whose result all ranks of the group get


class Store(Protocol):
    """The part of torch's key-value store that is used here."""

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first. Returns it."""
        ...

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Store `desired` where the value is `expected` or there is none. Returns what is stored then."""
        ...


def shared_store(name: str) -> Store | None:
    """The store of this job's ranks, with keys of this name's own; None where there is no job."""
    if not dist.is_available() or not dist.is_initialized():
        return None
    store: Store = dist.distributed_c10d.PrefixStore(f"idbg/{name}", dist.distributed_c10d._get_default_store())
    return store


class Replicas:
    """The parameters and buffers that DistributedDataParallel has in each rank, while they are `watched`."""

    def __init__(self) -> None:
        self._modules: WeakSet[DistributedDataParallel] = WeakSet()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Notice each DistributedDataParallel that is made in here."""

        def registered(parent: Module, _: str, __: Module | None) -> None:
            if isinstance(parent, DistributedDataParallel):
                self._modules.add(parent)

        hook = register_module_module_registration_hook(registered)
        try:
            yield
        finally:
            hook.remove()

    def ranks(self) -> dict[int, tuple[int, ...]]:
        """The ranks that must have the same value, by the tensor's id."""
        found: dict[int, tuple[int, ...]] = {}
        for module in self._modules:
            group = getattr(module, "process_group", None)
            if group is None:  # it is being made
                continue
            ranks = tuple(dist.get_process_group_ranks(group))
            ignored = getattr(module, "parameters_to_ignore", ())
            buffers = module.module.named_buffers() if getattr(module, "broadcast_buffers", False) else ()
            for name, tensor in (*module.module.named_parameters(), *buffers):
                if name not in ignored:
                    found[id(tensor)] = ranks
        return found


def replicated(value: Any, replicas: Mapping[int, tuple[int, ...]]) -> tuple[object, tuple[int, ...]]:
    """The value, or a DTensor parameter's local tensor, and the ranks that must have the same."""
    tensors = sys.modules.get("torch.distributed.tensor")
    is_parameter = isinstance(value, nn.Parameter)
    if tensors is None or not is_parameter or not isinstance(value, tensors.DTensor):
        return value, replicas.get(id(value), ())
    mesh = value.device_mesh
    at = zip(value.placements, mesh.get_coordinate() or (), strict=False)
    alike = tuple(slice(None) if placement.is_replicate() else here for placement, here in at)
    return value.detach().to_local(), tuple(mesh.mesh[alike].flatten().tolist())


def finished(value: object) -> object:
    """The value, with a copy of each result of a collective that goes on: an op waits for it."""
    functional = sys.modules.get("torch.distributed._functional_collectives")
    if functional is None:
        return value
    there: object = tree_map_only(functional.AsyncCollectiveTensor, lambda each: each.clone(), value)
    return there


def is_unfinished(node: Node) -> bool:
    """Whether the value of this node is a collective's that goes on: it is there after `wait_tensor`."""
    name = fx.target_name(node.target)
    return "c10d_functional" in name and "wait_tensor" not in name


def ranks_of_result(node: Node) -> tuple[int, ...]:
    """The ranks in which the result of the collective that this node waits for is the same; empty of another node."""
    source = node.args[0] if node.args else None
    if "wait_tensor" not in fx.target_name(node.target) or not isinstance(source, Node):
        return ()
    if not any(each in fx.target_name(source.target) for each in _SAME_EVERYWHERE):
        return ()
    world = dist.distributed_c10d._world
    known = {str(world.pg_names.get(group)): group for group in world.pg_map}
    names = [each for each in (*source.args, *source.kwargs.values()) if isinstance(each, str)]
    group = next((known[each] for each in reversed(names) if each in known), None)
    return () if group is None else tuple(dist.get_process_group_ranks(group))


def may_communicate(gm: GraphModule, values: tuple[object, ...]) -> bool:
    """Whether a run of the graph may wait for other ranks: it has collectives, ops of others, or DTensors."""
    if not dist.is_available() or not dist.is_initialized():
        return False
    if any(isinstance(value, Tensor) and comparing.wraps_others(value) for value in values):
        return True
    graphs = [each.graph for each in gm.modules() if isinstance(each, GraphModule)]
    return any(_may_communicate(node) for graph in graphs for node in graph.nodes)


def _may_communicate(node: Node) -> bool:
    target: Any = node.target
    if isinstance(target, (internals._ops.OpOverload, internals._ops.OpOverloadPacket)):
        return str(target).partition(".")[0] not in _NAMESPACES
    if node.op != "call_function" or isinstance(target, internals._ops.HigherOrderOperator):
        return False
    module = str(getattr(target, "__module__", "") or "")
    return module.partition(".")[0] not in _MODULES or _is_distributed(module)


def _is_distributed(name: str) -> bool:
    return "c10d" in name or "distributed" in name
