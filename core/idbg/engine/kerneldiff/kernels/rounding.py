"""How wrong may a node's value be by rounding alone, where its terms cancel?

The mean of standardised data is zero but for rounding, and the rounding is that of the data: held against its own size
it is all error. So each error here is an absolute RMS that goes from a node's inputs to the node, by what the op does
to it; a sum's is that of the largest of its terms, and not of what is left of them.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import fx

_UNIT = torch.finfo(torch.float32).eps / 2  # a kernel computes narrower dtypes in float32 too
_ADDS = ("add", "sub", "rsub")
_SUMS = ("sum", "mean")
_PRODUCTS = ("mul",)
_MOMENTS = "var_mean"


@dataclass
class Rounding:
    """`rms` holds what is known of nodes' sizes, as tensors of one element: reading them waits for a GPU. `measured`
    holds the errors of nodes that a buffer was seen to hold, over that size; they stand for what leads to them.
    """

    rms: Mapping[Node, Tensor]
    measured: dict[Node, float] = field(default_factory=dict)
    _sizes: dict[Node, float] = field(default_factory=dict)
    _found: dict[Node, float] = field(default_factory=dict)

    def error(self, node: Node) -> float:
        """The absolute RMS of what rounding may do to the node's value; 0 where nothing is known."""
        error = self._of(node, again=True)
        return error if math.isfinite(error) else 0.0

    def natural(self, node: Node, error: float) -> float:
        """A relative error of the node's value as one of the terms that it is made of: what is all rounding is small
        beside them.
        """
        size, own = self._size(node), self._of(node, again=True)
        return error * min(1.0, _UNIT * size / own) if own and math.isfinite(own) else error

    def _of(self, node: Node, *, again: bool = False) -> float:
        """`again`: what was measured of the node itself says nothing."""
        waiting = [node]
        while waiting:
            each = waiting[-1]
            missing = [source for source in self._sources(each) if source not in self._found]
            if missing:
                waiting += missing
                continue
            self._found[each] = self._computed(each)
            waiting.pop()
        if not again and node in self.measured:
            return self.measured[node] * self._size(node)
        return self._found[node]

    def _sources(self, node: Node) -> list[Node]:
        return [source for source in node.all_input_nodes if source not in self.measured]

    def _input(self, node: Node) -> float:
        """The error that an input comes with."""
        if node in self.measured:
            return self.measured[node] * self._size(node)
        return self._found.get(node, 0.0)

    def _computed(self, node: Node) -> float:
        if node.op != "call_function":
            return 0.0
        rule = _RULES.get(fx.op_name(node.target))
        member = node.target is operator.getitem and _op(node.args[0]) == _MOMENTS
        if member:
            return self._moment(node)
        return rule(self, node) if rule else self._passed_on(node)

    def _size(self, value: object) -> float:
        """The RMS of a node's value or of a number; 0 where it is not known, or not finite."""
        if isinstance(value, (int, float)):
            return abs(float(value))
        if not isinstance(value, Node) or value not in self.rms:
            return 0.0
        if value not in self._sizes:
            size = float(self.rms[value])
            self._sizes[value] = size if math.isfinite(size) else 0.0
        return self._sizes[value]

    def _passed_on(self, node: Node) -> float:
        """Any other op: its result is as wrong, for its size, as the worst that it is computed from."""
        size = self._size(node)
        largest = _UNIT * size
        for source in node.all_input_nodes:
            error, own = self._input(source), self._size(source)
            largest = max(largest, error / own * size if own else error)
        return largest

    def _added(self, node: Node) -> float:
        scale = abs(_number(node.kwargs.get("alpha", 1)))
        terms = [(node.args[0], 1.0), (node.args[1], scale)] if len(node.args) > 1 else []
        errors = [self._input(term) * by for term, by in terms if isinstance(term, Node)]
        return max(errors, default=0.0) + _UNIT * max((self._size(term) * by for term, by in terms), default=0.0)

    def _multiplied(self, node: Node) -> float:
        one, other = node.args[:2]
        errors = [
            self._input(each) * self._size(by) for each, by in ((one, other), (other, one)) if isinstance(each, Node)
        ]
        return sum(errors) + _UNIT * self._size(node)

    def _summed(self, node: Node) -> float:
        source = node.args[0]
        if not isinstance(source, Node):
            return 0.0
        terms = _elements(source) / max(1, _elements(node))
        error = math.sqrt(terms) * self._input(source) + terms * _UNIT * self._size(source)
        return error / terms if _op(node) == "mean" else error

    def _moment(self, node: Node) -> float:
        """The variance and the mean that var_mean gives."""
        pair, which = node.args[:2]
        source = pair.args[0] if isinstance(pair, Node) else None
        if not isinstance(source, Node):
            return 0.0
        terms = max(1.0, _elements(source) / max(1, _elements(node)))
        if which == 1:
            return self._input(source) / math.sqrt(terms) + _UNIT * self._size(source)
        spread = math.sqrt(self._size(node))
        return 2 * spread * (self._input(source) + _UNIT * self._size(source)) + _UNIT * self._size(node)


Rule = Callable[[Rounding, Node], float]
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_ADDS, Rounding._added),
    **dict.fromkeys(_PRODUCTS, Rounding._multiplied),
    **dict.fromkeys(_SUMS, Rounding._summed),
}


def size_of(value: object) -> Tensor | None:
    """The RMS of a floating tensor, read in one pass."""
    if not isinstance(value, Tensor) or not value.dtype.is_floating_point or value.layout != torch.strided:
        return None
    norm: Tensor = torch.linalg.vector_norm(value)
    return norm / math.sqrt(max(1, value.numel()))


def _op(node: object) -> str:
    return fx.op_name(node.target) if isinstance(node, Node) and node.op == "call_function" else ""


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 1.0


def _elements(node: Node) -> float:
    value = node.meta.get("val")
    return float(math.prod(int(size) for size in value.shape)) if isinstance(value, Tensor) else 1.0
