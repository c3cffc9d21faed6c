"""Which items of a list are enough, so that not one of them can be left out?

Minimal as ddmin's results are, by fewer questions where few items of many matter: they are found by halves, k of n in
about k*log(n) questions, and a sweep asks at the end whether each is needed, so that nothing rests on an oracle's being
monotone (that whatever holds a failing list fails).
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Fails = Callable[[Sequence[T]], bool]


def ddmin(items: Sequence[T], fails: Fails[T], better: Callable[[list[T]], None] = lambda kept: None) -> list[T]:
    """A part of a list that fails, in its order, no single item of which can be left out.

    The whole is known to fail, and nothing (the empty list) not to: neither is asked. No list is asked twice. `better`
    is told each smaller one that fails at once, so that whoever stops the search (by an exception of `fails`) has it.
    """
    asked: dict[tuple[int, ...], bool] = {(): False, tuple(range(len(items))): True}
    smallest = len(items)

    def holds(kept: Sequence[int]) -> bool:
        nonlocal smallest
        key = tuple(kept)
        if key not in asked:
            asked[key] = fails([items[place] for place in kept])
        if asked[key] and len(key) < smallest:
            smallest = len(key)
            better([items[place] for place in kept])
        return asked[key]

    kept = list(range(len(items)))
    if len(kept) > 2:
        kept = kept[: first_failing(len(kept), lambda length: holds(kept[:length]))[1]]
        kept = thinned(kept, holds, {kept[-1]})
    return [items[place] for place in swept(kept, holds)]


LONG = 4
"""Questions for one item after which one more, whether those found are enough, is worth asking."""


def thinned(
    items: Sequence[T],
    fails: Fails[T],
    needed: set[T],
    hull: Callable[[set[T]], Sequence[T]] | None = None,
) -> list[T]:
    """What is left where runs of items are left out from the end: twice as many as long as it still fails, halves where
    it does not. The item at which that ends is added to `needed`, whose items are not asked.

    Where finding one took several questions, those found so far are asked alone: what `hull` makes of them, if given.
    """
    kept = list(items)
    left = [item for item in kept if item not in needed]
    gap, asked = len(left) // 2, LONG
    while left:
        in_here = False
        if needed and asked >= LONG:
            alone = list(hull(needed)) if hull else [item for item in kept if item in needed]
            if len(alone) < len(kept) and fails(alone):
                kept = alone
                left = [item for item in kept if item not in needed]
            else:
                in_here = len(alone) < len(kept)
        gap, asked = _leave_out(kept, left, fails, gap, in_here)
        if left:
            needed.add(left.pop())
    return kept


def _leave_out(kept: list[T], left: list[T], fails: Fails[T], step: int, in_here: bool) -> tuple[int, int]:
    """Shorten both lists until the last of `left` is needed, or none is left; how many went, and questions it took.

    `in_here`: one of those left is known to be needed, and so the last window that holds it is halved, not asked.
    """
    gone = asked = 0
    step, window = max(1, step), len(left)
    while left and not (in_here and window == 1):
        step = min(step, window // 2 if in_here else window)
        run = set(left[-step:])
        rest = [item for item in kept if item not in run]
        asked += 1
        if fails(rest):
            kept[:] = rest
            del left[-step:]
            gone, window, step = gone + step, window - step, step * 2
        else:
            window, step, in_here = step, max(1, step // 2), True
    return gone, asked


def swept(items: Sequence[T], fails: Fails[T]) -> list[T]:
    """What is left where single items are left out, from the end and over again, until none can be."""
    kept = list(items)
    place, held = len(kept), 0
    while held < len(kept):
        place = (place or len(kept)) - 1
        rest = kept[:place] + kept[place + 1 :]
        if fails(rest):
            kept, held = rest, 0
        else:
            held += 1
    return kept


def first_failing(high: int, fails: Callable[[int], bool | None]) -> tuple[int, int]:
    """How many it takes: with the second number of them it fails, and with the first it does not.

    `high` of them fail, and none of them do not: neither is asked. They are neighbours, unless all between could not
    tell (`fails` gave None).
    """
    low = 0
    silent: set[int] = set()
    while between := [number for number in range(low + 1, high) if number not in silent]:
        middle = (low + high) // 2
        number = min(between, key=lambda at: (abs(at - middle), at))
        answer = fails(number)
        if answer is None:
            silent.add(number)
        elif answer:
            high = number
        else:
            low = number
    return low, high
