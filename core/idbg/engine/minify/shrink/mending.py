"""Which other sizes have to change with one, where no rule tells, so that the statements run again?"""

import math
from collections.abc import Iterator

import torch

from idbg.engine.minify.shrink.groups import Slot, resized, sizes
from idbg.engine.minify.shrink.parts import Parts
from idbg.engine.minify.shrink.plausible import Plausible

_MOST = 3  # sizes that are changed
_QUESTIONS = 400  # in all: half a second


def mended(parts: Parts, fixed: set[Slot], plausible: Plausible) -> Parts | None:
    """The parts with a few other sizes made those of tensors that the statements came to before one raised; None where
    that does not make them run. Those in `fixed` stay.
    """
    ran, fixed, left = plausible.ran(parts), set(fixed), _QUESTIONS
    for _ in range(_MOST):
        if ran.is_whole:
            return parts
        known = list(dict.fromkeys(size for shape, _ in ran.forms.values() for size in _told(shape)))
        for slot, size in _changes(parts, fixed, known):
            changed = resized(parts, {slot: size}, 0, 0)
            left -= 1
            after = plausible.ran(changed) if changed is not None else ran
            if changed is not None and (after.is_whole or after.steps > ran.steps):
                parts, ran = changed, after
                fixed.add(slot)
                break
            if not left:
                return None
        else:
            return None
    return parts if ran.is_whole else None


def _changes(parts: Parts, fixed: set[Slot], known: list[int]) -> Iterator[tuple[Slot, int]]:
    """Sizes that may be too large now, and what they may have to be."""
    for slot, held in sorted(sizes(parts).items(), key=lambda pair: -pair[1]):
        if slot not in fixed and held > 1:
            yield from ((slot, size) for size in known if 0 < size < held)


def _told(shape: torch.Size) -> list[int]:
    """Sizes that a tensor's shape speaks of: its own, and those of what is flattened from some dimension on."""
    return [*shape, *(math.prod(shape[at:]) for at in range(len(shape) - 1))]
