"""How small can each size be, also those that the statements spell out?"""

from collections.abc import Sequence

from idbg.engine.minify.shrink.groups import Group, alike, groups, largest_first
from idbg.engine.minify.shrink.hunt import Hunt, Step
from idbg.engine.minify.shrink.parts import Parts

_SMALL = (1, 2, 4)  # tried for all sizes at once; then each by halves


def shrink_shapes(hunt: Hunt) -> list[Group]:
    """All sizes to 1, 2 or 4, at once where that fails as well; what stays larger by halves. The groups of sizes that
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
        while group.size(hunt.parts) > 2 * _SMALL[-1] and hunt.take(group.at(hunt.parts, group.size(hunt.parts) // 2)):
            pass
    return found


def refine_shapes(hunt: Hunt, found: Sequence[Group]) -> None:
    """The smallest size at which it fails, between the one it has and the next smaller that was tried."""
    for group in largest_first(found, hunt.parts):
        size = group.size(hunt.parts)
        passes = max((small for small in _SMALL if small < size), default=0)
        if size > 2 * _SMALL[-1]:
            passes = size // 2
        while size - passes > 1 and passes > 1:
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
