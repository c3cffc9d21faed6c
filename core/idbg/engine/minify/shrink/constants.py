"""Simplify numbers, and leave out arguments of calls."""

from idbg.engine.minify.shrink.dry_run import DryRun
from idbg.engine.minify.shrink.extras import used_alone
from idbg.engine.minify.shrink.literals import Droppable, droppable, numbers, replaced, without
from idbg.engine.minify.shrink.parts import Parts, weight_of
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure, Step

_PLAIN = (1, 0, 2)


def drop_arguments(smallest: SmallestFailure) -> None:
    """Arguments that say what a call does by itself: all at once, else by halves, until none is left that can go."""
    if smallest.allows.is_known:
        bare, before = _bare(smallest), None
        while bare is not before:
            before, bare = bare, _bare(smallest, bare)
        if smallest.take(bare):
            return
    while smallest.together([*_steps(smallest, smallest.parts), used_alone]):
        pass


def _bare(smallest: SmallestFailure, parts: Parts | None = None) -> Parts:
    """The parts without all arguments that, one by one, make no difference to what the statements give."""
    parts = parts or smallest.parts
    for step in [*_steps(smallest, parts), used_alone]:
        parts = step(parts) or parts
    return parts


def _steps(smallest: SmallestFailure, parts: Parts) -> list[Step]:
    """One for each argument that may go, those at the end of the text first: the places of those before it stay."""
    found = _candidates(smallest.allows, parts)
    return [_without(smallest.allows, at, each) for at, each in reversed([*enumerate(found)])]


def _candidates(allows: DryRun, parts: Parts) -> list[Droppable]:
    """What may go, in the order of the text. Where it is not known what runs, an argument without a name stays: that
    it meant something else would show too late.
    """
    found = droppable(parts.draft.statements)
    return found if allows.is_known else [each for each in found if each.is_named]


def simplify_numbers(smallest: SmallestFailure) -> None:
    """Numbers to 1, 0 or 2, all at once, else by halves; what is left shorter, whole ones by halves of their value."""
    for plain in _PLAIN:
        smallest.together([_with_number(at, plain) for at in _odd(smallest.parts)])
    for at in _odd(smallest.parts):
        value = numbers(smallest.parts.draft.statements)[at].value
        if isinstance(value, float):
            smallest.take(_with_number(at, float(f"{value:.1g}"))(smallest.parts))
            continue
        while (value := numbers(smallest.parts.draft.statements)[at].value) > 3:
            if not smallest.take(_with_number(at, value // 2)(smallest.parts)):
                break


def _odd(parts: Parts) -> list[int]:
    held = enumerate(numbers(parts.draft.statements))
    return [at for at, each in held if weight_of(each.value) and not each.is_place]


def _with_number(at: int, value: float) -> Step:
    """The n-th number replaced; a float stays one."""

    def step(parts: Parts) -> Parts | None:
        held = numbers(parts.draft.statements)
        if at >= len(held) or held[at].value == value:
            return None
        new = float(value) if isinstance(held[at].value, float) else int(value)
        lines = replaced(parts.draft.statements, [(held[at], repr(new))])
        return parts.changed(lambda each: None, lines)

    return step


def _without(allows: DryRun, at: int, dropped: Droppable) -> Step:
    """The n-th of what can be dropped; those before it are found at the same place once it is gone."""

    def step(parts: Parts) -> Parts | None:
        found = _candidates(allows, parts)
        if at >= len(found) or found[at].text != dropped.text:
            return None
        lines = without(parts.draft.statements, found[at])
        after = parts.changed(lambda each: None, lines)
        return after if after is not None and allows.is_alike(after, parts) else None

    return step
