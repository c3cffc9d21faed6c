"""Give Inductor's own random operators, which a comparison replaces by eager's, numbers by which graphs are comparable.

A pass replaces each draw of the joint graph by one from a seed, numbered in the same order. Where the n-th draw before
and the draw of seed n after are the same numbers, all graphs after the joint one compute the same, as without draws.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.compat import comparing, fx
from idbg.engine.kerneldiff.stages.captured import FrameStages

_BEFORE = ("rand", "randn")
_REDRAWN = "rng_state"  # in the names of what draws again in a backward, by a generator's state
_SEEDS, _LOOKUP, _RANDOM = "prims::inductor_seeds", "prims::inductor_lookup_seed", "prims::inductor_random"


class NumberedDraws:
    """The draws of one run of a graph: numbers by their order on each device, or by their seed where they have one."""

    def __init__(self) -> None:
        self._drawn: Counter[str] = Counter()

    def of(self, target: object, args: Sequence[object], kwargs: Mapping[str, object]) -> Tensor | None:
        """What the op returns; None of an op that is no such draw."""
        name = fx.op_name(target)
        if name == _SEEDS:
            with comparing.no_modes():
                return torch.arange(int(str(args[0])), device=str(args[1]))
        if name == _RANDOM and isinstance(seed := args[1], Tensor):
            return _numbers(int(seed), args[0], str(args[2]), torch.float32, seed.device)
        if name in _BEFORE:
            device = torch.device(str(kwargs.get("device") or "cpu"))
            self._drawn[str(device)] += 1
            return _numbers(self._drawn[str(device)] - 1, args[0], name, kwargs.get("dtype"), device)
        return None


def _numbers(seed: int, shape: object, kind: str, dtype: object, device: torch.device) -> Tensor:
    """Uniform or normal numbers of this seed, the same on all devices."""
    assert isinstance(shape, (list, tuple))
    generator = torch.Generator().manual_seed(seed)
    with comparing.no_modes():
        draw = torch.randn if kind == "randn" else torch.rand
        made = draw([int(each) for each in shape], generator=generator, dtype=torch.float32)
        return made.to(device, dtype if isinstance(dtype, torch.dtype) else torch.float32)


def judged_by_joint(frame: FrameStages) -> FrameStages | None:
    """The frame, whose graphs are compared with the joint one: Dynamo's draws in other ops. None where Inductor's own
    operators do not draw, or cannot be numbered as the joint graph's are.
    """
    if frame.joint is None or frame.joint_passes is None:
        return None
    after = [node for node in frame.joint_passes.graph.nodes if fx.op_name(node.target) == _RANDOM]
    by_seed = all(isinstance(seed := node.args[1], Node) and fx.op_name(seed.target) == _LOOKUP for node in after)
    graphs = (frame.joint, frame.joint_passes, *frame.parts)
    others = any(_draws_otherwise(node) for gm in graphs for node in gm.graph.nodes)
    same = _shapes(frame.joint, _BEFORE) == _shapes(frame.joint_passes, (_RANDOM,))
    return replace(frame, pre_grad=None, own_draws=True) if after and by_seed and same and not others else None


def _draws_otherwise(node: Node) -> bool:
    """Whether it draws numbers that have no place in the order: integers, those of a region that is computed again."""
    name = fx.op_name(node.target)
    return _REDRAWN in name or (comparing.is_random(node) and name not in (_SEEDS, _RANDOM, *_BEFORE))


def _shapes(gm: GraphModule, names: Sequence[str]) -> list[object]:
    """The shapes and kinds of the draws, in their order."""
    drawn = (node for node in gm.graph.nodes if fx.op_name(node.target) in names)
    return [(str(node.args[0]), str(node.args[2]) if len(node.args) > 2 else fx.op_name(node.target)) for node in drawn]
