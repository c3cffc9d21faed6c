"""Choose what a summary shows of many diagnostics, so that no kind of them hides another."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from idbg.format.amounts import counted
from idbg.reports.diagnostics import KINDS, Diagnostic, badness


def by_line(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The same with all that one rule finds at one line as one violation; the worst first."""
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for each in found:
        place = (each.program, each.accelerator, each.rule, each.severity, each.file, each.line)
        groups.setdefault(place if each.kind == "violation" else (each.key,), []).append(each)
    return sorted((_as_one(group) for group in groups.values()), key=badness)


def _as_one(group: list[Diagnostic]) -> Diagnostic:
    first = min(group, key=badness)
    if len(group) == 1:
        return first
    return replace(
        first,
        message=f"{first.message}; and {counted(len(group) - 1, 'other finding')} at this line",
        nodes=tuple(node for each in group for node in each.nodes),
        count=sum(each.count for each in group),
    )


def split(found: Sequence[Diagnostic], most: int) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """At most so many to show, and the others; both in the order of `found`. Each kind has an equal share of the room,
    and what a kind does not need goes to the first of the others.
    """
    share = most // max(1, len({each.kind for each in found}))
    of_kind: Counter[str] = Counter()
    within: list[int] = []
    beyond: list[int] = []
    for place, each in enumerate(found):
        (within if of_kind[each.kind] < share else beyond).append(place)
        of_kind[each.kind] += 1
    shown = {*within, *beyond[: most - len(within)]}
    return (
        [each for place, each in enumerate(found) if place in shown],
        [each for place, each in enumerate(found) if place not in shown],
    )


def kinds(found: Iterable[Diagnostic]) -> str:
    """ "19 violations and 1 recompile"."""
    counts = Counter(each.kind for each in found)
    words = [counted(counts[kind], kind) for kind in KINDS if counts[kind]]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
