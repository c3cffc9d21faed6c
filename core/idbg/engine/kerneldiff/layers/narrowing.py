"""Find the first wrong one of many values, of which one run can return a limited number."""

from collections.abc import Callable, Mapping, Sequence

from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict
from idbg.engine.kerneldiff.layers.judged import HELD

MOST = 200  # outputs that are added to a model at once
_HELD = HELD // 4  # bytes of their values

Verdicts = Mapping[str, BufferVerdict]


def narrowed(
    names: Sequence[str], run: Callable[[Sequence[str]], Verdicts], size: Callable[[str], int]
) -> dict[str, BufferVerdict]:
    """The verdicts of these values, which are in order. `run` gives those of some; if there are too many, or they are
    too large, evenly spread ones are run first, then those before the first wrong one. Values that cannot be judged
    have no verdict.
    """
    known: dict[str, BufferVerdict] = {}
    while names:
        total = sum(map(size, names))
        count = min(len(names), MOST, max(1, len(names) * _HELD // total) if total else MOST)
        chosen = spread(names, count)
        found = run(chosen)
        known.update(found)
        wrong = next((name for name in chosen if name in found and found[name].excess > 1), None)
        if count == len(names):
            break
        at = names.index(wrong) if wrong is not None else len(names)
        right = [names.index(name) for name in chosen if name in found and names.index(name) < at]
        names = [name for name in names[max(right, default=-1) + 1 : at] if name not in known and name not in chosen]
    return known


def spread(names: Sequence[str], count: int) -> list[str]:
    """So many of the names, evenly spread; the middle one of one."""
    step = len(names) / count
    return [names[int((place + 0.5) * step)] for place in range(count)]
