"""Decide whether rows are slower than before, for CI.

What `bench.change` finds beyond the noise counts where both rows can be trusted. A row that is noisy, or was measured
while others used the machine, proves nothing either way: it is undecided, and neither slower nor passed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from idbg.format.amounts import duration
from idbg.schema.bench import LEAST_CHANGE, Row, SpeedChange


class SpeedVerdict(NamedTuple):
    """A sentence for each row that is slower, that is undecided, and that has no earlier row."""

    slower: tuple[str, ...]
    undecided: tuple[str, ...]
    new: tuple[str, ...]


def verdict(rows: Sequence[Row], changes: Sequence[SpeedChange]) -> SpeedVerdict:
    """Judge the rows that were measured now. A row without a latency failed, and is reported as that."""
    slower, undecided = [], []
    for change in changes:
        doubts = list(_doubts(change))
        if doubts:
            undecided.append(f"{_change_words(change)}; it is not known whether that is slower: {'; '.join(doubts)}")
        elif change.direction == "slower":
            slower.append(f"{_change_words(change)} (p {change.p:.2g}){_also(change)}")
    held = {change.now.key for change in changes}
    new = tuple(f"{_name(row)}: no earlier row" for row in rows if row.latency_ms is not None and row.key not in held)
    return SpeedVerdict(tuple(slower), tuple(undecided), new)


def _doubts(change: SpeedChange) -> Iterator[str]:
    for when, row in (("now", change.now), ("then", change.before)):
        yield from (f"{when} {caveat}" for caveat in row.caveats)
    yield from (what for what in change.what if what.startswith(("device ", "threads ")))
    if change.direction == "same" and change.ratio > 1 + LEAST_CHANGE:
        yield f"no more than the noise of the samples (p {change.p:.2g})"


def _change_words(change: SpeedChange) -> str:
    was, now = (duration(row.latency_ms.median) for row in (change.before, change.now) if row.latency_ms)
    return f"{_name(change.now)}: {was} → {now}, {change.ratio:.2f} times as long"


def _name(row: Row) -> str:
    return f"{row.program} {row.backend}"


def _also(change: SpeedChange) -> str:
    return f"; also changed: {', '.join(change.what)}" if change.what else ""


def lines(judged: SpeedVerdict) -> Iterable[str]:
    """All of it, the worst first."""
    yield from (f"slower: {line}" for line in judged.slower)
    yield from (f"undecided: {line}" for line in judged.undecided)
    yield from (f"not compared: {line}" for line in judged.new)
