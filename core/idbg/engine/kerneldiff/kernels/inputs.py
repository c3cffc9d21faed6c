"""Find the inputs that a graph writes to, and keep all inputs as they were.

Only inputs that are written to are copied. A model's weights are only read, and are never stored twice; a checksum of
their bits detects a kernel that writes to them anyway.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import comparing, fx
from idbg.engine.instrument.wrapper_lines import Wrapper
from idbg.engine.kerneldiff.kernels.values import arguments_written


def written_inputs(graph: comparing.InductorGraph, wrapper: Wrapper) -> frozenset[str]:
    """The inputs that the wrapper, its kernels or an op of the graph writes to, also under another name."""
    names = {root(name, wrapper) for name in (*wrapper.writes, *graph_writes(graph))}
    return frozenset(names.intersection(graph.inputs))


def graph_writes(graph: comparing.InductorGraph) -> frozenset[str]:
    """The inputs that the graph itself writes to."""
    names = {name for buffer in graph.buffers for name in buffer.writes}
    nodes = graph.gm.graph.nodes
    named = dict(zip((node for node in nodes if node.op == "placeholder"), graph.inputs, strict=False))
    written = (argument for node in nodes for argument in arguments_written(node))
    return frozenset(names.union(named[argument] for argument in written if argument in named))


def root(name: str, wrapper: Wrapper) -> str:
    """The input or buffer whose memory the name stands for."""
    while name in wrapper.bases:
        name = wrapper.bases[name]
    return name


def copied(inputs: Iterable[object]) -> list[object]:
    """Copies of the inputs with their strides. Inputs that share memory share it in the copies."""
    inputs = list(inputs)
    return snapshot(inputs, [True] * len(inputs))


def snapshot(inputs: Sequence[object], written: Sequence[bool]) -> list[object]:
    """The inputs, with copies in place of those that are written to or share memory with one. Strides and shared memory
    are as before.
    """
    storages: dict[int, torch.UntypedStorage] = {}
    writable = {_memory(value) for value, each in zip(inputs, written, strict=True) if each}

    def copy(value: object) -> object:
        if not isinstance(value, Tensor) or _memory(value) not in writable:
            return value
        if value.layout != torch.strided:
            return value.clone()
        storage = value.untyped_storage()
        if storage.data_ptr() not in storages:
            storages[storage.data_ptr()] = fx.storage_copy(storage)
        empty = torch.empty(0, dtype=value.dtype, device=value.device)
        return empty.set_(storages[storage.data_ptr()], value.storage_offset(), value.shape, value.stride())

    with torch.no_grad():
        return [copy(value) for value in inputs]


def _memory(value: object) -> int:
    """One number for all inputs that share memory; a number of its own for each that has none."""
    if isinstance(value, Tensor) and value.layout == torch.strided:
        return value.untyped_storage().data_ptr() or -id(value)
    return -id(value)


class InputChecksums:
    """Checksums of inputs that nothing should write to."""

    def __init__(self, inputs: Mapping[Node, object]) -> None:
        self._sums = {node: _bits(value) for node, value in inputs.items() if _has_bits(value)}

    def overwritten(self, inputs: Mapping[Node, object]) -> list[Node]:
        """The inputs whose bits have changed since the last call."""
        found = []
        for node, value in inputs.items():
            if node in self._sums and not torch.equal(now := _bits(value), self._sums[node]):
                self._sums[node] = now
                found.append(node)
        return found


def _has_bits(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.strided and type(value) in (Tensor, torch.nn.Parameter)


def _bits(value: object) -> Tensor:
    """The sum of the memory's words, on its device; it wraps around."""
    assert isinstance(value, Tensor)
    memory = fx.storage_values(value.untyped_storage())
    words = len(memory) // 8 * 8
    return memory[:words].view(torch.int64).sum() + memory[words:].sum()
