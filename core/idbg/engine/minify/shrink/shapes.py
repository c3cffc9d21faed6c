"""How small can each size be, also those that the statements spell out?"""

from collections.abc import Sequence

from idbg.engine.minify.shrink.groups import Group, alike, groups, largest_first, resized, sizes
from idbg.engine.minify.shrink.hunt import Hunt, Step
from idbg.engine.minify.shrink.mending import mended
from idbg.engine.minify.shrink.parts import Parts

_SMALL = (1, 2, 3, 4)  # tried for all sizes at once; then each by halves


def shrink_shapes(hunt: Hunt) -> list[Group]:
    """All sizes to at most 4, at once where that fails as well; what stays larger by halves. The groups of sizes that
    change together.
    """
    found = groups(hunt.parts, hunt.allows)
    for size in _SMALL:
        hunt.together([_to(group, size) for group in largest_first(found, hunt.parts)])
    if not hunt.allows.is_known:  # then numbers of one size may have nothing to do with it
        bare = [alike(hunt.parts, group.base, with_numbers=False) for group in found if group.size(hunt.parts) > 2]
        for size in _SMALL:
            hunt.together([_to(group, size) for group in bare])
        found += bare
    for group in largest_first(found, hunt.parts):
        while group.size(hunt.parts) > _SMALL[-1] + 1 and hunt.take(group.at(hunt.parts, group.size(hunt.parts) // 2)):
            pass
    return found


def mend_shapes(hunt: Hunt) -> None:
    """Single sizes that are still large, where others then have to be what comes of them: as after a convolution."""
    if not hunt.allows.is_known:
        return
    dims = {slot: size for slot, size in sizes(hunt.parts).items() if slot.kind == "dim" and size > _SMALL[-1]}
    for slot in sorted(dims, key=lambda slot: -dims[slot]):
        for size in _SMALL:
            held = sizes(hunt.parts).get(slot, 0)
            smaller = resized(hunt.parts, {slot: size}, held, size) if size < held else None
            if smaller is not None and hunt.take(mended(smaller, {slot}, hunt.allows)):
                break


def refine_shapes(hunt: Hunt, found: Sequence[Group]) -> None:
    """The smallest size at which it fails, between the one it has and half of it, at which it was seen not to."""
    for group in largest_first(found, hunt.parts):
        size = group.size(hunt.parts)
        passes = max(size // 2, _SMALL[-1])
        while size - passes > 1:
            middle = (size + passes) // 2
            if hunt.take(group.at(hunt.parts, middle)):
                size = middle
            else:
                passes = middle


def _to(group: Group, size: int) -> Step:
    def step(parts: Parts) -> Parts | None:
        wanted = max(size, group.floor(parts))
        return group.at(parts, wanted) if group.size(parts) > wanted else None

    return step
