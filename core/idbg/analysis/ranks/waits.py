"""Find out which ranks wait in a collective, and for whom."""

from collections.abc import Iterator, Sequence

from idbg.analysis.ranks.collectives import members, words
from idbg.schema.collectives import Collective
from idbg.schema.ranks import RankDifference, RankDigest, RankSide

LEAST_WAIT = 5.0
"""Seconds that a collective is pending before its rank counts as waiting, while the job goes on."""


def waits(digests: Sequence[RankDigest], now: float | None = None) -> Iterator[RankDifference]:
    """One for each collective in which ranks wait for others of the group that did not come to it."""
    by_rank = {digest.rank: digest for digest in digests}
    of_group = members(digests)
    waiting: dict[tuple[str, int, tuple[int, ...]], list[tuple[RankDigest, Collective]]] = {}
    for digest in digests:
        for call in digest.pending:
            group = next((each for each in digest.groups if each.group.name == call.group), None)
            if group is None or not _is_long(digest, call, now):
                continue
            begun = {rank: calls.begun for rank, calls in of_group[group.key].items()}
            ranks = group.group.ranks or tuple(begun)
            lacking = () if call.peer_to_peer else tuple(rank for rank in ranks if begun.get(rank, 0) < call.number)
            to = (call.peer,) if call.peer is not None else lacking
            if to and digest.rank not in to:
                waiting.setdefault((group.group.about, call.number, to), []).append((digest, call))
                break
    for (about, number, to), found in waiting.items():
        call = found[0][1]
        first = RankSide(
            ranks=tuple(digest.rank for digest, _ in found),
            value=words(call.op, call.inputs, call.outputs),
            file=call.file,
            line=call.line,
        )
        others = tuple(_doing(by_rank.get(rank), rank) for rank in to[:_MOST_OTHERS])
        yield RankDifference(kind="wait", sides=(first, *others), what=about, number=number, to_ranks=to)


_MOST_OTHERS = 4


def _is_long(digest: RankDigest, call: Collective, now: float | None) -> bool:
    """Whether it is pending for good: the rank ended in it, or has been in it for long. Of a rank that ended well it is
    not known whether NCCL's last sends were over.
    """
    if digest.ended != "running":
        return digest.ended != "ended"
    return bool(call.began) and max(digest.seen, now or 0.0) - call.began >= LEAST_WAIT


def _doing(digest: RankDigest | None, rank: int) -> RankSide:
    """What a rank that others wait for does: the collective that it is in, else the phase, else its line."""
    if digest is None:
        return RankSide(ranks=(rank,), value="is not seen")
    place = digest.failed_at or digest.stands
    file, line = (place.file, place.line) if place else ("", 0)
    if digest.ended == "running" and digest.pending:
        call = digest.pending[0]
        value = f"is in {words(call.op, call.inputs, call.outputs)}"
        return RankSide(ranks=(rank,), value=value, file=call.file or file, line=call.line or line)
    return RankSide(ranks=(rank,), value=_state(digest), file=file, line=line)


def _state(digest: RankDigest) -> str:
    """What became of a rank, or the phase in which it compiles."""
    match digest.ended:
        case "running":
            return f"compiles ({digest.phase})" if digest.phase else "runs"
        case "killed" if digest.signal == "SIGTERM":
            return f"{f'compiled ({digest.phase})' if digest.phase else 'ran'} until SIGTERM ended it"
        case "killed":
            return f"was killed by {digest.signal}"
        case "failed":
            return f"failed{f' ({digest.failure})' if digest.failure else ''}"
        case "lost":
            return "ended without a word"
        case "ended":
            return "ended"
