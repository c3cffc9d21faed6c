"""Find the first collective of each process group in which its ranks differ."""

from collections.abc import Hashable, Iterator, Sequence

from idbg.analysis.ranks.normal import fewest_first, grouped
from idbg.schema.ranks import CallKind, GroupCalls, RankDifference, RankDigest, RankSide

_UNEVEN = ("all_to_all", "alltoall", "gather", "scatter", "coalesced")
"""Ops whose sizes may differ between ranks; of all_gather and reduce_scatter they may not."""
_EVEN = ("all_gather", "allgather", "reduce_scatter")
IN_GRAPH = "compiled graph"
"""What the group is for that has the collectives of a compiled graph, before its name; all of them are known."""
GRAPH_CALLS = "calls of compiled graphs"
"""What the group is for that has the compiled graphs in the order of their calls."""
GroupKey = tuple[str, tuple[int, ...]]


def sequence(digest: RankDigest) -> Hashable:
    """What is equal for ranks whose collectives are equal, as far as both began them."""
    return tuple(
        (group.group.about, group.first, tuple(signature(digest.calls[kind]) for kind in group.order), group.begun)
        for group in digest.groups
    )


def signature(call: CallKind) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What of a collective must be equal in all ranks of its group."""
    is_uneven = any(op in call.op for op in _UNEVEN) and not any(op in call.op for op in _EVEN)
    return (call.op, (), ()) if is_uneven else (call.op, call.inputs, call.outputs)


def members(digests: Sequence[RankDigest]) -> dict[GroupKey, dict[int, GroupCalls]]:
    """Each process group, and the calls of the ranks in it; none of a rank that began none there."""
    found: dict[GroupKey, dict[int, GroupCalls]] = {}
    for digest in digests:
        for group in digest.groups:
            found.setdefault(group.key, {})[digest.rank] = group
    return found


def differences(digests: Sequence[RankDigest]) -> Iterator[RankDifference]:
    """One for each group in which a collective differs. Fewer calls alone are none: a rank may still come to them; but
    not of compiled graphs, of which all are known.
    """
    by_rank = {digest.rank: digest for digest in digests}
    for key, calls in members(digests).items():
        number = _first(by_rank, calls, is_whole=_is_whole(key))
        if number is not None:
            yield RankDifference(
                kind="collective",
                sides=_sides(by_rank, calls, number, is_whole=_is_whole(key)),
                what=key[0],
                number=number,
            )


def count_differences(digests: Sequence[RankDigest]) -> Iterator[RankDifference]:
    """One for each group whose collectives are counted and not recorded, where they ended after unequal counts and one
    of them did not end well. While they run, one may just be ahead.
    """
    by_rank = {digest.rank: digest for digest in digests if not digest.recorded}
    for key, calls in members([*by_rank.values()]).items():
        ends = {by_rank[rank].ended for rank in calls}
        groups = grouped({rank: group.begun for rank, group in calls.items()})
        if len(groups) > 1 and "running" not in ends and ends != {"ended"}:
            sides = (
                _counted(by_rank, calls, ranks) for ranks in sorted(groups, key=lambda ranks: calls[ranks[0]].begun)
            )
            yield RankDifference(kind="count", sides=tuple(sides), what=key[0])


def _counted(by_rank: dict[int, RankDigest], calls: dict[int, GroupCalls], ranks: tuple[int, ...]) -> RankSide:
    place = next((each for rank in ranks if (each := by_rank[rank].failed_at or by_rank[rank].stands)), None)
    file, line = (place.file, place.line) if place else ("", 0)
    return RankSide(ranks=ranks, value=str(calls[ranks[0]].begun), file=file, line=line)


def call_at(digest: RankDigest, calls: GroupCalls, number: int) -> CallKind | None:
    """The call with this number; None where it is not recorded, or did not begin."""
    at = number - calls.first
    return digest.calls[calls.order[at]] if 0 <= at < len(calls.order) else None


def words(op: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    """ "all_reduce f32[8]", "all_gather f32[8] -> f32[16]"."""
    arrow = f" -> {', '.join(outputs)}" if outputs and outputs != inputs else ""
    return f"{op} {', '.join(inputs)}{arrow}".rstrip()


def _is_whole(key: GroupKey) -> bool:
    return key[0].startswith((IN_GRAPH, GRAPH_CALLS))


def _first(by_rank: dict[int, RankDigest], calls: dict[int, GroupCalls], *, is_whole: bool) -> int | None:
    """The number of the first call that is not the same in all ranks that have it, or in all if all are known; equal
    ranks are looked at once.
    """
    distinct: dict[Hashable, int] = {}
    for rank, group in calls.items():
        distinct.setdefault((group.first, tuple(signature(by_rank[rank].calls[kind]) for kind in group.order)), rank)
    ranks = list(distinct.values())
    if len(ranks) < 2:
        return None
    begin = max(calls[rank].first for rank in ranks)
    end = max(calls[rank].first + len(calls[rank].order) for rank in ranks)
    for number in range(begin, end):
        found = [call_at(by_rank[rank], calls[rank], number) for rank in ranks]
        if len({signature(call) if call else None for call in found if call or is_whole}) > 1:
            return number
    return None


def _sides(
    by_rank: dict[int, RankDigest], calls: dict[int, GroupCalls], number: int, *, is_whole: bool
) -> tuple[RankSide, ...]:
    every = {rank: call_at(by_rank[rank], group, number) for rank, group in calls.items()}
    found = {rank: call and signature(call) for rank, call in every.items() if call or is_whole}
    sides = []
    for ranks in fewest_first(found):
        call = every[ranks[0]]
        value = words(call.op, call.inputs, call.outputs) if call else "none"
        file, line = (call.file, call.line) if call else ("", 0)
        sides.append(RankSide(ranks=ranks, value=value, file=file, line=line))
    return tuple(sides)
