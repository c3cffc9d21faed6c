"""Compare how much a launch's random mask keeps with how much the graph's keeps, where they draw different numbers.

If element i depends on the i-th draw alone, the elements that are not 0 are independent trials. Chernoff's bound then
holds for their share (Hoeffding 1963, theorem 1), also where some are 0 for another reason.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import fx
from idbg.schema.remarks import Remark

_FALSE_ALARM = 1e-12  # of one buffer: of a thousand buffers 1e-9
_RANDOM = "prims::inductor_random"
_SAME_ELEMENTS = {"view", "reshape", "unsqueeze", "squeeze", "clone", "_to_copy", "prims::convert_element_type"}
_MASKS = {"gt", "ge", "lt", "le"}
_STEPS = 60  # of a bisection


@dataclass(frozen=True)
class KeptShares:
    """The share of a buffer's elements that are not 0, and the one that its graph gives, each of so many draws."""

    kept: float
    wanted: float
    draws: int

    @property
    def differ(self) -> bool:
        """Whether no chance of an element gives both, but with a probability below `_FALSE_ALARM`."""
        low, high = sorted((self.kept, self.wanted))
        below, above = low, high
        for _ in range(_STEPS):
            chance = (below + above) / 2
            if _divergence(low, chance) < _divergence(high, chance):
                below = chance
            else:
                above = chance
        return self.draws * _divergence(low, below) > log(4 / _FALSE_ALARM)  # each share on either side

    @property
    def remark(self) -> Remark:
        """The two shares, with as many digits as show that they differ."""
        digits = next(at for at in range(2, 17) if at == 16 or f"{self.kept:.{at}f}" != f"{self.wanted:.{at}f}")
        return Remark("other share", f"{self.kept:.{digits}f}", f"{self.wanted:.{digits}f}", f"{self.draws:,}")


def kept_shares(nodes: Collection[Node], before: Collection[Node], value: Tensor, wanted: Tensor) -> KeptShares | None:
    """The shares of what a launch wrote and should have written, if they differ. `nodes`: what it is computed by, in
    order; `before`: all that its inputs come of. None where it is no mask or its elements are not independent.
    """
    drawn = {node for node in nodes if fx.op_name(node.target) == _RANDOM}
    if not drawn or drawn.intersection(before) or value.numel() != wanted.numel():
        return None
    for node in nodes:
        if not drawn.isdisjoint(node.all_input_nodes):
            drawn.add(node)
    is_mask = any(fx.op_name(node.target) in _MASKS for node in drawn)
    if not is_mask or not all(_keeps_elements(node, value.numel()) for node in drawn):
        return None
    shares = KeptShares(_not_zero(value), _not_zero(wanted), value.numel())
    return shares if shares.differ else None


def _keeps_elements(node: Node, count: int) -> bool:
    """Whether its i-th element comes of the i-th elements of what it depends on, of which each has so many."""
    value, target = node.meta.get("val"), node.target
    if not isinstance(value, Tensor) or fx.concrete(value.numel()) != count:
        return False
    name = fx.op_name(target)
    return name == _RANDOM or name in _SAME_ELEMENTS or torch.Tag.pointwise in getattr(target, "tags", ())


def _not_zero(value: Tensor) -> float:
    return float(torch.count_nonzero(value)) / max(1, value.numel())


def _divergence(share: float, chance: float) -> float:
    """Kullback and Leibler's, of trials with this chance from what shows this share."""
    pairs = (share, chance), (1 - share, 1 - chance)
    return sum(one * log(one / other) for one, other in pairs if one > 0)
