"""Show the ranks of a job beside one another: what stopped it, where they differ first, compile by compile."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import cast

from msgspec import to_builtins

from idbg.analysis.decisions.frames import spoken_name
from idbg.analysis.ranks.collectives import GRAPH_CALLS
from idbg.analysis.ranks.compare import PARTED
from idbg.format.amounts import counted, few, figure, seconds
from idbg.format.file_names import near_place
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.decisions.dynamo import StackLine
from idbg.schema.node_values import NodeValue
from idbg.schema.processes import ORDERLY
from idbg.schema.ranks import (
    Aspect,
    FrameDigest,
    FrameRow,
    GroupCalls,
    RankComparison,
    RankDifference,
    RankDigest,
    RankSide,
)
from idbg.views import remarks
from idbg.views.tree import Cell, Column, Place, Refs, Row, Section, Table, Tone, Verdict, words

TITLE = "Ranks"
NOTHING = "no rank was seen: each is captured from its import of torch on (idbg run --nproc-per-node N FILE.py)"
MOST_COLUMNS = 8
_ASPECTS: dict[Aspect, str] = {
    "end": "how it ended",
    "graphs": "graphs",
    "guards": "guards",
    "recompile": "recompiles",
    "breaks": "breaks",
    "kernels": "kernels",
    "caches": "cache answers",
}
_FAILURES = ("ended", "wait", "collective", "numbers", "replica", "result")
"""Differences that stop a job or make its numbers wrong; the others are only likely causes."""
_HARMLESS = ("guards", "kernels")


def rank_names(ranks: Sequence[int]) -> str:
    """ "rank 1", "ranks 0, 2-7"."""
    if not ranks:
        return "no rank"
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranges(ranks)}"


def ranges(ranks: Sequence[int]) -> str:
    """ "0, 2-7"; of many pieces the first."""
    pieces: list[list[int]] = []
    for rank in sorted(ranks):
        if pieces and rank == pieces[-1][-1] + 1:
            pieces[-1].append(rank)
        else:
            pieces.append([rank])
    texts = [f"{piece[0]}-{piece[-1]}" if len(piece) > 1 else str(piece[0]) for piece in pieces]
    return few(texts, 6, more=" and {:,} more ranges")


def level(difference: RankDifference) -> Verdict:
    """How bad a difference is; "unknown" for one that is of no consequence by itself."""
    if difference.kind in _FAILURES:
        return "error"
    if difference.follows_rank or (difference.kind == "aspect" and difference.what in _HARMLESS):
        return "unknown"
    return "warning"


def listed(found: RankComparison) -> list[RankDifference]:
    """The differences: what stopped the job, then those of consequence, each in the order of the program. What a
    launcher or a user ends by a signal comes after why.
    """

    def place(each: RankDifference) -> tuple[int, bool]:
        is_ended = each.kind == "ended" and each.sides[0].value in ORDERLY
        return ("error", "warning", "unknown", "ok").index(level(each)), is_ended

    return sorted(found.differences, key=place)


def first_of_program(found: RankComparison) -> RankDifference | None:
    """The first that may be the cause of the others: in what ranks compile, else in their collectives."""
    causes = [
        each
        for each in found.differences
        if each.kind not in ("ended", "wait", "count", "time", "numbers") and level(each) != "unknown"
    ]
    return next(iter(causes), None)


def sentence(difference: RankDifference) -> str:
    """What differs, without the place."""
    first, *others = difference.sides
    again = f" (compile {difference.nth})" if difference.nth else ""
    name, frame = rank_names(first.ranks), spoken_name(difference.frame) + again
    other = others[0] if others else None
    elsewhere = _at(other) if other and (other.file, other.line) != difference.place else ""
    both = f"{name} {first.value}" + (f"; {rank_names(other.ranks)} {other.value}{elsewhere}" if other else "")
    match difference.kind:
        case "ended":
            was = "was" if len(first.ranks) == 1 else "were"
            how = {"killed": f"{was} killed", "failed": "failed", "lost": "ended without a word"}[difference.what]
            return f"{name} {how}{f': {first.value}' if first.value else ''}"
        case "wait":
            number = f"number {difference.number} of {difference.what or 'its group'}"
            doing = f", which {other.value}{_at(other)}" if other else ""
            whom = rank_names(difference.to_ranks)
            return f"{name} wait{_s(first)} in {first.value} ({number}) for {whom}{doing}"
        case "collective":
            where = difference.what or "a group"
            noun = "number" if where == GRAPH_CALLS else "collective number"
            return f"{noun} {difference.number} of {where} differs: {both}"
        case "count":
            counts = "; ".join(f"{rank_names(side.ranks)} {side.value}{_at(side)}" for side in difference.sides)
            where = difference.what or "a group"
            return f"unequal numbers of collectives began in {where}, which torch does not record: {counts}"
        case "absent":
            others_compile = f"{rank_names(other.ranks)} compile{_s(other)}" if other else "others compile"
            return f"{name} do{'es' * (len(first.ranks) == 1)} not compile {frame}, which {others_compile}"
        case "graph":
            return f"{frame} has different {difference.what} graphs: {both}"
        case "constants":
            own = " (the number of the rank)" if difference.follows_rank else ""
            return f"{frame} has different constants in its {difference.what} graphs{own}: {both}"
        case "time":
            usual = f"; the others {seconds(float(other.value))}" if other else ""
            return f"{name} compile{_s(first)} {frame} in {seconds(float(first.value))}{usual}: these wait for it"
        case "numbers":
            return f"{name} compute{_s(first)} wrong numbers: {difference.what}"
        case "replica" | "result" | "node":
            return _parted(difference, frame)
        case "aspect":
            return f"{frame} differs in its {_ASPECTS[cast('Aspect', difference.what)]}: {both}"


def _parted(difference: RankDifference, frame: str) -> str:
    """What differs of the values of a node."""
    first, *others = difference.sides
    of = {
        "replica": f"{f'and {difference.more:,} more are' if difference.more else 'is'} not the same in all replicas",
        "result": "is a collective whose result is not the same in all ranks",
        "node": "differs between ranks, and what it is computed from is the same",
    }[difference.kind]
    sides = (first, *others[:1])
    is_close = len({_figures(side.node_value) for side in sides}) == 1
    exactly = _all_digits if is_close else figure
    both = "; ".join(f"{rank_names(side.ranks)} {_figures(side.node_value, exactly)}" for side in sides)
    return f"{difference.what} {of} (call {difference.number} of {frame}): {both}"


def _all_digits(value: float | None) -> str:
    return figure(None) if value is None else repr(value)


def _figures(value: NodeValue | None, in_words: Callable[[float | None], str] = figure) -> str:
    """ "mean 0.012, std 0.98, largest 3.1"."""
    if value is None:
        return "not measured"
    figures = [f"mean {in_words(value.mean)}, std {in_words(value.std)}, largest {in_words(value.max_abs)}"]
    figures += [f"{value.nonfinite:,} not finite"] if value.nonfinite else []
    return ", ".join(figures)


def headline(difference: RankDifference) -> str:
    """The same in a few words, with the place."""
    words = sentence(difference)
    short = words if difference.kind in ("ended", "time") else words.partition(": ")[0].partition(", which")[0]
    return f"{short}{_at_place(difference.place)}"


def summary(found: RankComparison) -> str:
    """The ranks, and the first thing that is wrong with them."""
    count = counted(len(found.digests), "rank")
    unseen = f"; {rank_names(found.unseen)} not seen" if found.unseen else ""
    first = next(iter(listed(found)), None)
    if first is None:
        goes_on = " so far" if any(each.ended == "running" for each in found.digests) else ""
        equal = ", equal in all that is compared" if len(found.digests) > 1 else ""
        return f"{count}{equal}{goes_on}{unseen}"
    cause = first_of_program(found)
    before = f"; before that {headline(cause)}" if cause is not None and cause is not first else ""
    return f"{count}{unseen}: {headline(first)}{before}"


def view(found: RankComparison) -> Section:
    """What is wrong, the worst first; then the matrix of compiles by ranks, in which equal ranks are one column."""
    if not found.digests:
        return Section(TITLE, NOTHING)
    differences = listed(found)
    levels = {level(each) for each in differences}
    running = any(each.ended == "running" for each in found.digests) or bool(found.unseen)
    verdicts: tuple[Verdict, ...] = ("error", "warning", "unknown" if running else "ok")
    verdict = next(each for each in verdicts if each in levels or each is verdicts[-1])
    rows = tuple(_difference(each, is_first=at == 0) for at, each in enumerate(differences))
    return Section(TITLE, summary(found), count(found), verdict, (*rows, *_not_comparable(found), _matrix(found)))


def _not_comparable(found: RankComparison) -> Iterator[Row]:
    """Why numbers of ranks are not comparable, each reason once."""
    reasons: dict[str, list[int]] = {}
    for each in found.digests:
        if each.not_comparable:
            reasons.setdefault(remarks.sentence(each.not_comparable), []).append(each.rank)
    for reason, ranks in reasons.items():
        sign, tone = _LOOKS["unknown"]
        yield Row(
            ("reason", reason), words((f"{sign} ", tone), f"numbers of {rank_names(ranks)}: {reason}"), hangs=True
        )


def count(found: RankComparison) -> int:
    """The differences that are of consequence."""
    return sum(level(each) != "unknown" for each in found.differences)


_LOOKS: dict[Verdict, tuple[str, Tone]] = {
    "error": (VERDICT_SIGNS["failed"], "reject"),
    "warning": (VERDICT_SIGNS["violations"], "fallback"),
    "unknown": (MARKS["separator"], "dim"),
    "ok": (VERDICT_SIGNS["clean"], "clean"),
}


def _difference(each: RankDifference, *, is_first: bool) -> Row:
    sign, tone = _LOOKS[level(each)]
    file, line = each.place
    key: Hashable = ("difference", each.kind, each.frame, each.nth, each.what, each.sides[0].ranks)
    return Row(
        key,
        words((f"{sign} ", tone), *((Place(file, line), ": ") if file else ()), sentence(each)),
        rows=[
            _side((key, at), side) for at, side in enumerate(each.sides) if side.value or side.file or side.node_value
        ],
        open="screen" if is_first else "",
        refs=Refs(file=file, line=line),
        opens="edit" if file else "fold",
        hangs=True,
    )


def _value_words(side: RankSide) -> str:
    value = side.node_value
    return f"{_figures(value)}, checksum {value.checksum}" if value is not None else ""


def _side(key: Hashable, side: RankSide) -> Row:
    place = (("  ", "dim"), Place(side.file, side.line)) if side.file else ()
    return Row(
        key,
        words((rank_names(side.ranks), "strong"), f"  {side.value or _value_words(side)}", *place),
        refs=Refs(file=side.file, line=side.line),
        opens="edit" if side.file else "fold",
    )


def _matrix(found: RankComparison) -> Table:
    """The largest group of equal ranks is the first column: others show in what they differ from it."""
    groups = sorted(found.columns, key=lambda group: (-len(group), group[0]))
    shown = groups[:MOST_COLUMNS]
    heads = [Column(rank_names(group), "text", MOST_COLUMNS - at) for at, group in enumerate(shown)]
    by_rank = {each.rank: each for each in found.digests}
    representatives = [by_rank[group[0]] for group in shown]
    rows = [_frame(row, shown) for row in found.rows]
    rows += _calls(representatives)
    rows.append(
        _facts(
            "compile time",
            representatives,
            _compile_words,
        )
    )
    if any(each.numbers != "not compared" for each in found.digests):
        rows.append(_facts("numbers", representatives, _numbers_words))
    if parted := [each for each in found.differences if each.kind in PARTED]:
        rows.append(_facts("replicas", representatives, lambda digest: _replica_words(digest, parted)))
    rows.append(_facts("ended", representatives, _ended_words))
    if len(groups) > len(shown):
        rows.append(
            Row("more", words((f"and {counted(len(groups) - len(shown), 'more group')} of equal ranks", "dim")))
        )
    return Table(tuple(heads), rows, "function", f"{counted(len(groups), 'group')} of equal ranks", names=True)


def _frame(row: FrameRow, columns: Sequence[tuple[int, ...]]) -> Row:
    group_of = {rank: at for at, (ranks, _) in enumerate(row.groups) for rank in ranks}
    digests = [row.groups[group_of[group[0]]][1] if group[0] in group_of else None for group in columns]
    cells = []
    for at, (group, digest) in enumerate(zip(columns, digests, strict=True)):
        if group[0] not in group_of:
            cells.append(Cell(MARKS["ellipsis"], "dim"))
        elif digest is None:
            cells.append(Cell("not compiled", "fallback"))
        elif at == 0 or digests[0] is None:
            cells.append(Cell(_frame_words(digest)))
        elif group_of[group[0]] == group_of.get(columns[0][0]):
            cells.append(Cell("=", "dim"))
        else:
            cells.append(Cell(f"other {_first_aspect(digests[0], digest)}", "reject"))
    again = f"  compile {row.nth}" if row.nth else ""
    key = ("frame", row.file, row.line, row.function, row.nth)
    return Row(
        key,
        words((spoken_name(row.function), "strong"), (again, "dim")),
        tuple(cells),
        rows=[_group_row((key, ranks), ranks, digest) for ranks, digest in row.groups],
        refs=Refs(file=row.file, line=row.line),
        opens="fold",
    )


def _first_aspect(one: FrameDigest, other: FrameDigest) -> str:
    """In what a compile differs from that of the first column, in a word."""
    theirs = dict(other.graphs)
    stage = next((stage for stage, prints in one.graphs if stage in theirs and theirs[stage].form != prints.form), "")
    if stage:
        return f"{stage} graph"
    for aspect, unlike in (
        ("breaks", one.breaks != other.breaks),
        ("end", one.end != other.end),
        ("guard that failed", one.recompiled != other.recompiled),
        ("guards", bool(one.guards and other.guards and one.guards.form != other.guards.form)),
    ):
        if unlike:
            return aspect
    return "kernels"


def _frame_words(digest: FrameDigest) -> str:
    graph = next((prints for _, prints in digest.graphs), None)
    nodes = counted(graph.count, "node") if graph else digest.end or MARKS["ellipsis"]
    return f"{nodes}, {counted(digest.kernels.count, 'kernel')}" if digest.kernels else nodes


def _group_row(key: Hashable, ranks: tuple[int, ...], digest: FrameDigest | None) -> Row:
    if digest is None:
        return Row(key, words((rank_names(ranks), "strong"), "  not compiled"))
    facts = [_frame_words(digest)]
    facts += [counted(digest.guards.count, "guard")] if digest.guards else []
    facts += [f"compiled again: {digest.recompiled}"] if digest.recompiled else []
    facts += [counted(len(digest.breaks), "break")] if digest.breaks else []
    facts += [", ".join(digest.caches)] if digest.caches else []
    facts += [seconds(digest.seconds)] if digest.seconds is not None else []
    return Row(key, words((rank_names(ranks), "strong"), f"  {digest.id}  {', '.join(facts)}"))


def _calls(representatives: Sequence[RankDigest]) -> Iterator[Row]:
    """A row for each process group that one of them has: how many collectives it began there."""
    if not any(each.recorded or each.groups for each in representatives):
        yield _facts("collectives", representatives, lambda each: "not recorded")
        return
    names = dict.fromkeys(_group_name(group) for each in representatives for group in each.groups)
    for name in names:
        counts = [
            sum(group.begun for group in each.groups if name in (group.group.about, group.group.name))
            for each in representatives
        ]
        yield Row(
            ("collectives", name),
            words(("" if name == GRAPH_CALLS else "collectives ", ""), (name, "dim")),
            tuple(
                Cell(f"{count:,}" if each.recorded else f"{count:,}, not recorded")
                for count, each in zip(counts, representatives, strict=True)
            ),
        )


def _group_name(group: GroupCalls) -> str:
    return group.group.about or group.group.name


def _facts(name: str, representatives: Sequence[RankDigest], of: Callable[[RankDigest], str]) -> Row:
    return Row(name, words((name, "dim")), tuple(Cell(of(each)) for each in representatives))


def _compile_words(digest: RankDigest) -> str:
    return "not measured" if digest.compile_seconds is None else seconds(digest.compile_seconds)


def _numbers_words(digest: RankDigest) -> str:
    agree = f"{counted(digest.compared, 'tensor')} agree{'s' * (digest.compared == 1)} with eager"
    if digest.numbers == "not comparable" and digest.compared:
        return f"{agree}, others are not comparable"
    return agree if digest.numbers == "agree" else digest.numbers


def _replica_words(digest: RankDigest, parted: Sequence[RankDifference]) -> str:
    """What the rank alone has, or with few others."""
    own = [each for each in parted if digest.rank in each.sides[0].ranks]
    count = sum(1 + each.more for each in own)
    return f"other values: {own[0].what}{f' +{count - 1:,}' if count > 1 else ''}" if own else ""


def _ended_words(digest: RankDigest) -> str:
    if digest.ended == "running":
        return f"running{f': {digest.phase}' if digest.phase else ''}"
    if digest.ended in ("killed", "failed"):
        return f"{digest.ended} {digest.signal}".rstrip()
    return {"lost": "no word", "ended": "ended"}[digest.ended]


def _s(side: RankSide | None) -> str:
    return "s" if side is not None and len(side.ranks) == 1 else ""


def _at(side: RankSide | None) -> str:
    return _at_place((side.file, side.line)) if side is not None else ""


def _at_place(place: tuple[str, int]) -> str:
    return f" at {near_place(*place)}" if place[0] else ""


def as_json(found: RankComparison) -> object:
    """Every rank, group, row and difference; of each difference also its sentence and level."""
    return {
        "ranks": [_rank_json(each) for each in found.digests],
        "unseen": found.unseen,
        "groups": found.columns,
        "summary": summary(found) if found.digests else NOTHING,
        "frames": to_builtins(found.rows),
        "differences": [
            {
                **to_builtins(each),
                "sentence": sentence(each),
                "level": level(each),
                "place": each.place,
            }
            for each in listed(found)
        ],
    }


def _rank_json(digest: RankDigest) -> dict[str, object]:
    stands: StackLine | None = digest.stands
    return {
        "rank": digest.rank,
        "name": digest.name,
        "host": digest.host,
        "pid": digest.pid,
        "ended": digest.ended,
        "exit_status": digest.exit_status,
        "signal": digest.signal,
        "failure": digest.failure,
        "frames": len(digest.frames),
        "compile_seconds": digest.compile_seconds,
        "phase": digest.phase,
        "stands": to_builtins(stands),
        "pending": to_builtins(digest.pending),
        "numbers": digest.numbers,
        "compared": digest.compared,
        "wrong": to_builtins(digest.wrong),
        "collectives": {_group_name(group): group.begun for group in digest.groups},
    }
