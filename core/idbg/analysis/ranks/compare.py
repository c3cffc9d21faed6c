"""Hold the digests of a job's ranks against one another, compile by compile and collective by collective.

Ranks that legitimately differ in device, address and path are equal. Of numbers that differ, `follow_rank` finds those
that are the ranks' own.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import median_low

from idbg.analysis.ranks import replicas
from idbg.analysis.ranks.collectives import count_differences, sequence
from idbg.analysis.ranks.collectives import differences as collective_differences
from idbg.analysis.ranks.normal import fewest_first, grouped, without_numbers
from idbg.analysis.ranks.waits import waits
from idbg.schema.ranks import (
    Aspect,
    DifferenceKind,
    FrameDigest,
    FrameRow,
    RankComparison,
    RankDifference,
    RankDigest,
    RankSide,
)

PARTED = ("replica", "result")
"""Differences of values that must agree."""
LEAST_SLOWER = 2.0
"""Seconds by which a compile takes longer than that of other ranks to be reported; and by half of theirs."""
_STAGES = ("dynamo", "joint", "inference", "forward", "backward", "post_grad")
_ENDS = ("failed", "killed", "lost")
Key = tuple[str, int, str, int]
Cells = dict[int, FrameDigest | None]


def compare(
    digests: Sequence[RankDigest], world_size: int | None = None, *, now: float | None = None
) -> RankComparison:
    """All ranks. `now` is the time, where the job goes on: who waits long is then known."""
    ordered = tuple(sorted(digests, key=lambda each: each.rank))
    size = world_size or max((each.world_size or 0 for each in ordered), default=0)
    there = {each.rank for each in ordered}
    keys = _merged([[frame.key for frame in each.frames] for each in ordered])
    frames = {each.rank: {frame.key: frame for frame in each.frames} for each in ordered}
    rows: list[FrameRow] = []
    compiled: list[RankDifference] = []
    numbers: list[RankDifference] = []
    parts: dict[int, list[Hashable]] = {
        each.rank: [sequence(each), _how_ended(each), each.numbers, each.wrong] for each in ordered
    }
    reached = {each.rank: _reached(each, keys) for each in ordered}
    for at, key in enumerate(keys):
        cells: Cells = {rank: frames[rank].get(key) for rank in frames if key in frames[rank] or at < reached[rank]}
        row = _row(key, cells)
        rows.append(row)
        for group, found in row.groups:
            for rank in group:
                parts[rank].append(None if found is None else group)
        present = {rank: frame for rank, frame in cells.items() if frame is not None}
        compiled += [*_of_row(row, cells), *_slower(row, cells)]
        numbers += replicas.differences(row.function, row.nth, present)
    for each in numbers:
        for at, side in enumerate(each.sides if each.kind in PARTED else ()):
            for rank in side.ranks:
                parts[rank].append((each.what, at))
    return RankComparison(
        digests=ordered,
        program=next((each.program for each in ordered if each.program), ""),
        unseen=tuple(rank for rank in range(size) if rank not in there),
        columns=grouped({rank: tuple(part) for rank, part in parts.items()}),
        rows=tuple(rows),
        differences=(*compiled, *collective_differences(ordered), *numbers, *_wrong(ordered), *_stops(ordered, now)),
    )


def _wrong(digests: Sequence[RankDigest]) -> Iterator[RankDifference]:
    """The ranks in which compiled numbers are wrong, by the first tensors that are."""
    by_names: dict[Hashable, list[RankDigest]] = {}
    for each in digests:
        if each.wrong:
            by_names.setdefault(tuple(wrong.name for wrong in each.wrong), []).append(each)
    for found in by_names.values():
        first = found[0].wrong[0]
        side = RankSide(ranks=tuple(each.rank for each in found), value=first.name, file=first.file, line=first.line)
        yield RankDifference(kind="numbers", sides=(side,), what=first.name)


def _stops(digests: Sequence[RankDigest], now: float | None) -> Iterator[RankDifference]:
    """What stopped the job: a rank that failed while it waited for another comes after that."""
    waiting = list(waits(digests, now))
    late = {rank for each in waiting for rank in each.sides[0].ranks}
    ended = list(_ended(digests))
    effects = [each for each in ended if late.issuperset(each.sides[0].ranks)]
    yield from (each for each in ended if each not in effects)
    yield from waiting
    yield from count_differences(digests)
    yield from effects


def _merged(orders: Iterable[list[Key]]) -> list[Key]:
    """The compiles of all ranks: each after what comes before it in the rank that has it first."""
    merged: list[Key] = []
    for order in dict.fromkeys(map(tuple, orders)):
        at = 0
        known = {key: place for place, key in enumerate(merged)}
        for key in order:
            if key in known:
                at = merged.index(key, min(at, known[key])) + 1
            else:
                merged.insert(at, key)
                at += 1
    return merged


def _reached(digest: RankDigest, keys: Sequence[Key]) -> int:
    """How many of these compiles the rank has come past: all where it ended well, else up to its own last."""
    if digest.ended == "ended":
        return len(keys)
    own = {frame.key for frame in digest.frames}
    return max((at for at, key in enumerate(keys) if key in own), default=-1) + 1


def _row(key: Key, cells: Cells) -> FrameRow:
    present = [frame for frame in cells.values() if frame is not None]
    aspects = tuple(aspect for aspect, of in _aspects(present).items() if len({of(frame) for frame in present}) > 1)
    of = [each for aspect, each in _aspects(present).items() if aspect != "caches"]
    values = {rank: None if frame is None else tuple(each(frame) for each in of) for rank, frame in cells.items()}
    groups = grouped(values)
    first = present[0]
    return FrameRow(
        function=first.function,
        file=first.file,
        line=first.line,
        nth=key[3],
        groups=tuple((group, cells[group[0]]) for group in groups),
        aspects=aspects,
    )


def _aspects(frames: Sequence[FrameDigest]) -> dict[Aspect, Callable[[FrameDigest], Hashable]]:
    """What of these frames is comparable, as a value that is equal for equal ones: what each of them has."""
    found: dict[Aspect, Callable[[FrameDigest], Hashable]] = {}
    if all(frame.end for frame in frames):
        found["end"] = lambda frame: frame.end
    stages = _stages(frames)
    found["graphs"] = lambda frame: tuple(prints.form for stage, prints in frame.graphs if stage in stages)
    if all(frame.guards for frame in frames):
        found["guards"] = lambda frame: frame.guards and frame.guards.form
    found["recompile"] = lambda frame: without_numbers(frame.recompiled)
    found["breaks"] = lambda frame: frame.breaks
    if all(frame.kernels for frame in frames):
        found["kernels"] = lambda frame: frame.kernels and frame.kernels.form
    found["caches"] = lambda frame: frame.caches
    return found


def _stages(frames: Sequence[FrameDigest]) -> list[str]:
    """The stages that all have, in the order of the compiler: what a cache answers has fewer."""
    common = set.intersection(*({stage for stage, _ in frame.graphs} for frame in frames)) if frames else set()
    return sorted(common, key=lambda stage: (_STAGES.index(stage.partition(" ")[0]), stage))


def _of_row(row: FrameRow, cells: Cells) -> Iterator[RankDifference]:
    """The first thing in which a compile differs: what follows from it is not repeated."""
    present = {rank: frame for rank, frame in cells.items() if frame is not None}
    absent = tuple(rank for rank, frame in cells.items() if frame is None)
    if absent:
        compiled = RankSide(ranks=tuple(present), file=row.file, line=row.line)
        yield RankDifference(kind="absent", sides=(RankSide(ranks=absent), compiled), frame=row.function, nth=row.nth)
        return
    for stage in _stages([*present.values()]):
        graphs = {rank: dict(frame.graphs)[stage] for rank, frame in present.items()}
        forms = {rank: graph.form for rank, graph in graphs.items()}
        wholes = {rank: graph.whole for rank, graph in graphs.items()}
        if len(set(wholes.values())) > 1:
            texts = {rank: f"{graph.count} nodes" for rank, graph in graphs.items()}
            is_constant = len(set(forms.values())) == 1
            sides = _sides(wholes if is_constant else forms, texts, present)
            kind: DifferenceKind = "constants" if is_constant else "graph"
            yield RankDifference(kind=kind, sides=sides, frame=row.function, nth=row.nth, what=stage)
            return
    for aspect in ("breaks", "end", "recompile", "guards", "kernels"):
        if aspect in row.aspects:
            of = _aspects([*present.values()])[aspect]
            values = {rank: str(of(frame)) for rank, frame in present.items()}
            texts = {rank: _aspect_text(aspect, frame) for rank, frame in present.items()}
            yield RankDifference(
                kind="aspect",
                sides=_sides(values, texts, present),
                frame=row.function,
                nth=row.nth,
                what=aspect,
            )
            return


def _aspect_text(aspect: str, frame: FrameDigest) -> str:
    if aspect == "breaks":
        return frame.breaks[0] if frame.breaks else "none"
    if aspect == "end":
        return frame.end
    if aspect == "recompile":
        return frame.recompiled or "none"
    found = frame.guards if aspect == "guards" else frame.kernels
    return str(found.count) if found else ""


def _sides(values: dict[int, str], texts: dict[int, str], frames: dict[int, FrameDigest]) -> tuple[RankSide, ...]:
    return tuple(
        RankSide(ranks=group, frame=first.id, value=texts[group[0]], file=first.file, line=first.line)
        for group in fewest_first(values)
        for first in (frames[group[0]],)
    )


def _slower(row: FrameRow, cells: Cells) -> Iterator[RankDifference]:
    seconds = {rank: frame.seconds for rank, frame in cells.items() if frame is not None and frame.seconds is not None}
    if len(seconds) < 2:
        return
    usual = median_low(seconds.values())
    least = usual + max(LEAST_SLOWER, usual / 2)
    slow = tuple(rank for rank, taken in seconds.items() if taken > least)
    if slow:
        worst = max(seconds[rank] for rank in slow)
        others = tuple(rank for rank in seconds if rank not in slow)
        sides = (
            RankSide(ranks=slow, value=str(worst), file=row.file, line=row.line),
            RankSide(ranks=others, value=str(usual)),
        )
        yield RankDifference(kind="time", sides=sides, frame=row.function, nth=row.nth)


def _ended(digests: Sequence[RankDigest]) -> Iterator[RankDifference]:
    """Ranks that did not end well. What a launcher ends because another rank did is not reported."""
    bad = [each for each in digests if each.ended in _ENDS]
    causes = [each for each in bad if each.ended != "lost" and each.signal != "SIGTERM"] or bad
    groups: dict[tuple[str, str], list[RankDigest]] = {}
    for each in causes:
        groups.setdefault(_how_ended(each), []).append(each)
    for (how, value), found in sorted(groups.items(), key=lambda item: (item[0][0] != "killed", item[1][0].seen)):
        place = next((each.failed_at or each.stands for each in found if each.failed_at or each.stands), None)
        file, line = (place.file, place.line) if place else ("", 0)
        side = RankSide(ranks=tuple(each.rank for each in found), value=value, file=file, line=line)
        yield RankDifference(kind="ended", sides=(side,), what=how)


def _how_ended(digest: RankDigest) -> tuple[str, str]:
    if digest.ended not in _ENDS:
        return "", ""
    status = f"exit status {digest.exit_status}" if digest.exit_status else ""
    return digest.ended, digest.failure or digest.signal or status
