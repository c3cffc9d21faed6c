"""Make each size as small as possible, also those written in the statements."""

import math
from collections.abc import Iterator, Sequence

import torch

from idbg.engine.minify.shrink.dry_run import DryRun
from idbg.engine.minify.shrink.groups import Group, Slot, alike, groups, largest_first, resized, sizes
from idbg.engine.minify.shrink.parts import Parts
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure, Step

_SMALL = (1, 2, 3, 4)  # tried for all sizes at once; then each by halves


def shrink_shapes(smallest: SmallestFailure) -> list[Group]:
    """All sizes to at most 4, at once where that fails as well; what stays larger by halves. The groups of sizes that
    change together.
    """
    found = groups(smallest.parts, smallest.allows)
    for size in _SMALL:
        smallest.together([_to(group, size) for group in largest_first(found, smallest.parts)])
    if not smallest.allows.is_known:  # then numbers of one size may have nothing to do with it
        bare = [
            alike(smallest.parts, group.base, with_numbers=False) for group in found if group.size(smallest.parts) > 2
        ]
        for size in _SMALL:
            smallest.together([_to(group, size) for group in bare])
        found += bare
    for group in largest_first(found, smallest.parts):
        while group.size(smallest.parts) > _SMALL[-1] + 1 and smallest.take(
            group.at(smallest.parts, group.size(smallest.parts) // 2)
        ):
            pass
    return found


def shrink_single_sizes(smallest: SmallestFailure) -> None:
    """Single sizes that are still large, where others then have to be what comes of them: as after a convolution."""
    if not smallest.allows.is_known:
        return
    dims = {slot: size for slot, size in sizes(smallest.parts).items() if slot.kind == "dim" and size > _SMALL[-1]}
    for slot in sorted(dims, key=lambda slot: -dims[slot]):
        for size in _SMALL:
            held = sizes(smallest.parts).get(slot, 0)
            smaller = resized(smallest.parts, {slot: size}, held, size) if size < held else None
            if smaller is not None and smallest.take(with_matching_sizes(smaller, {slot}, smallest.allows)):
                break


def refine_shapes(smallest: SmallestFailure, found: Sequence[Group]) -> None:
    """The smallest size at which it fails, between the one it has and half of it, at which it was seen not to."""
    for group in largest_first(found, smallest.parts):
        size = group.size(smallest.parts)
        passes = max(size // 2, _SMALL[-1])
        while size - passes > 1:
            middle = (size + passes) // 2
            if smallest.take(group.at(smallest.parts, middle)):
                size = middle
            else:
                passes = middle


def _to(group: Group, size: int) -> Step:
    def step(parts: Parts) -> Parts | None:
        wanted = max(size, group.floor(parts))
        return group.at(parts, wanted) if group.size(parts) > wanted else None

    return step


_MOST = 3  # sizes that are changed
_QUESTIONS = 400  # dry runs in all: half a second


def with_matching_sizes(parts: Parts, fixed: set[Slot], dry_run: DryRun) -> Parts | None:
    """The parts with a few other sizes made those of tensors that the statements came to before one raised; None where
    that does not make them run. Those in `fixed` stay.
    """
    ran, fixed, left = dry_run.ran(parts), set(fixed), _QUESTIONS
    for _ in range(_MOST):
        if ran.is_whole:
            return parts
        known = list(dict.fromkeys(size for shape, _ in ran.forms.values() for size in _sizes_of(shape)))
        for slot, size in _changes(parts, fixed, known):
            changed = resized(parts, {slot: size}, 0, 0)
            left -= 1
            after = dry_run.ran(changed) if changed is not None else ran
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


def _sizes_of(shape: torch.Size) -> list[int]:
    """The sizes of a shape, and those of its flattened trailing dimensions."""
    return [*shape, *(math.prod(shape[at:]) for at in range(len(shape) - 1))]
