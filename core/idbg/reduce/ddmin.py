"""Find items of a list that are enough for a failure, of which no single one can be left out.

The result is 1-minimal as ddmin's, with fewer questions if few items matter: k of n are found by bisection in about
k*log(n) questions. A sweep at the end asks whether each is needed, so that the oracle need not be monotone.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Fails = Callable[[Sequence[T]], bool]


def ddmin(items: Sequence[T], fails: Fails[T], better: Callable[[list[T]], None] = lambda kept: None) -> list[T]:
    """A failing part of a list, in its order, of which no single item can be left out.

    The whole is known to fail, and the empty list to pass: neither is tried, and no list twice. `better` gets each
    smaller failing list at once, so that it is known if an exception of `fails` stops the search.
    """
    answers: dict[tuple[int, ...], bool] = {(): False, tuple(range(len(items))): True}
    smallest = len(items)

    def holds(kept: Sequence[int]) -> bool:
        nonlocal smallest
        key = tuple(kept)
        if key not in answers:
            answers[key] = fails([items[place] for place in kept])
        if answers[key] and len(key) < smallest:
            smallest = len(key)
            better([items[place] for place in kept])
        return answers[key]

    kept = list(range(len(items)))
    if len(kept) > 2:
        kept = kept[: first_failing(len(kept), lambda length: holds(kept[:length]))[1]]
        kept = thinned(kept, holds, {kept[-1]})
    return [items[place] for place in swept(kept, holds)]


LONG = 4
"""Questions for one item after which it is worth asking whether the items found so far are enough."""


def thinned(
    items: Sequence[T],
    fails: Fails[T],
    needed: set[T],
    hull: Callable[[set[T]], Sequence[T]] | None = None,
) -> list[T]:
    """Leave out runs of items from the end: the run doubles while it still fails, and halves when it does not. The item
    at which that ends is added to `needed`, whose items are not tried.

    If finding one took several questions, those found so far are tried alone (or `hull` of them, if given).
    """
    kept = list(items)
    left = [item for item in kept if item not in needed]
    gap, questions = len(left) // 2, LONG
    while left:
        in_here = False
        if needed and questions >= LONG:
            alone = list(hull(needed)) if hull else [item for item in kept if item in needed]
            if len(alone) < len(kept) and fails(alone):
                kept = alone
                left = [item for item in kept if item not in needed]
            else:
                in_here = len(alone) < len(kept)
        gap, questions = _leave_out(kept, left, fails, gap, in_here)
        if left:
            needed.add(left.pop())
    return kept


def _leave_out(kept: list[T], left: list[T], fails: Fails[T], step: int, in_here: bool) -> tuple[int, int]:
    """Shorten both lists until the last of `left` is needed, or none is left; the number of items left out, and of
    questions.

    `in_here`: one of `left` is known to be needed, so the last window that contains it is halved without a question.
    """
    gone = questions = 0
    step, window = max(1, step), len(left)
    while left and not (in_here and window == 1):
        step = min(step, window // 2 if in_here else window)
        run = set(left[-step:])
        rest = [item for item in kept if item not in run]
        questions += 1
        if fails(rest):
            kept[:] = rest
            del left[-step:]
            gone, window, step = gone + step, window - step, step * 2
        else:
            window, step, in_here = step, max(1, step // 2), True
    return gone, questions


def swept(items: Sequence[T], fails: Fails[T]) -> list[T]:
    """Leave out single items, from the end and repeatedly, until none can be."""
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
    """Bisect for the shortest failing prefix: it fails with the second number of items, and passes with the first.

    It is known to fail with `high` items, and to pass with none: neither is tried. The numbers are neighbours, unless
    `fails` returned None (undecided) for all between.
    """
    low = 0
    undecided: set[int] = set()
    while between := [number for number in range(low + 1, high) if number not in undecided]:
        middle = (low + high) // 2
        number = min(between, key=lambda at: (abs(at - middle), at))
        answer = fails(number)
        if answer is None:
            undecided.add(number)
        elif answer:
            high = number
        else:
            low = number
    return low, high
