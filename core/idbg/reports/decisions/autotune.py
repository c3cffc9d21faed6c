"""Of which candidates did torch choose, how fast is each, and by how much did the winner win?"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import to_builtins

from idbg.format.amounts import counted, duration, elapsed, percentage
from idbg.reports.decisions.cache import place_of
from idbg.schema.decisions.caches import Autotuned, Choice
from idbg.schema.decisions.decision import Decision
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run

NOTHING = "nothing was measured to be chosen: max_autotune is off, or there was one candidate for each op"
MOST = 8  # candidates of one choice, in text


class Row(NamedTuple):
    """One choice: of which frame and part, what was chosen and by how much, of which kernels, and the candidates."""

    frame: str
    part: Part
    words: str
    margin: str
    kernels: tuple[str, ...]
    tuned: Autotuned


def rows(run: Run) -> list[Row]:
    """Every choice, in the order in which they were made."""
    return [
        Row(frame, tuned.part, _words(tuned), margin(tuned), kernels_of(run, frame, tuned), tuned)
        for frame, choices in run.decided.autotuned.items()
        for tuned in choices
    ]


def kernels_of(run: Run, frame: str, tuned: Autotuned) -> tuple[str, ...]:
    """The kernels that it is about: its own, or those that compute its nodes."""
    if tuned.kernel:
        return (tuned.kernel,)
    nodes = set(tuned.nodes)
    return tuple(
        kernel.name
        for kernel in run.kernels
        if (kernel.frame, kernel.part) == (frame, tuned.part) and not nodes.isdisjoint(kernel.nodes)
    )


def _words(tuned: Autotuned) -> str:
    of = " ".join(each for each in (tuned.op, tuned.kernel, f"({tuned.inputs})" if tuned.inputs else "") if each)
    if not tuned.chosen:
        return f"{of}: none of {counted(len(tuned.choices), 'candidate')} could be measured"
    if tuned.cached:
        return f"{of}: {tuned.chosen}, found in the autotune cache"
    number = len(tuned.choices) + tuned.dropped
    took = f" in {elapsed(tuned.seconds)}" if tuned.seconds is not None else ""
    return f"{of}: {tuned.chosen}, the fastest of {counted(number, 'candidate')} measured{took}"


def margin(tuned: Autotuned) -> str:
    """By how much the winner won: "12 % faster than the next, cpp_gemm_1"; "" where no two were measured."""
    measured = sorted((each for each in tuned.choices if each.seconds), key=_seconds)
    if len(measured) < 2:
        return ""
    first, second = measured[:2]
    ahead = 100 * (_seconds(second) / _seconds(first) - 1)
    slowest = measured[-1]
    times = f", {_seconds(slowest) / _seconds(first):.2g} times as fast as the slowest" if len(measured) > 2 else ""
    return f"{percentage(ahead)} faster than the next, {second.name}{times}"


def _seconds(choice: Choice) -> float:
    assert choice.seconds is not None
    return choice.seconds


def text(run: Run) -> Iterable[str]:
    """Each choice with its candidates, the fastest first; those that failed with the reason."""
    every = rows(run)
    if not every:
        yield NOTHING
    for frame, part in dict.fromkeys((row.frame, row.part) for row in every):
        yield place_of(run, frame, part)
        for row in every:
            if (row.frame, row.part) == (frame, part):
                yield from _lines(row)


def _lines(row: Row) -> Iterator[str]:
    yield f"  {row.words}{f': {row.margin}' if row.margin else ''}"
    if where := ", ".join((*(f"node {name}" for name in row.tuned.nodes), *(f"kernel {name}" for name in row.kernels))):
        yield f"    {where}"
    failed = [choice for choice in row.tuned.choices if choice.error]
    measured = [choice for choice in row.tuned.choices if choice.seconds is not None]
    for choice in measured[:MOST]:
        yield f"    {duration(1000 * _seconds(choice)):>9}   {choice.name}" + (
            f"   {choice.about}" if choice.about else ""
        )
    for choice in failed[:MOST]:
        yield f"    {'failed':>9}   {choice.name}: {choice.error}"
    more = len(measured) + len(failed) - len(measured[:MOST]) - len(failed[:MOST]) + row.tuned.dropped
    if more:
        yield f"    and {more:,} more"


def as_json(run: Run) -> object:
    """Each choice, whole, with its sentence, and the kernels that it is about."""
    return [
        {
            "frame": row.frame,
            **to_builtins(row.tuned),
            "words": row.words,
            "margin": row.margin,
            "kernels": list(row.kernels),
        }
        for row in rows(run)
    ]


def about(run: Run) -> Iterable[Decision]:
    """Each choice, of its nodes and kernels."""
    for row in rows(run):
        graph = GraphId(row.frame, "post_grad", row.part)
        yield Decision(
            kind="autotune",
            words=row.words,
            why=row.margin,
            frame=row.frame,
            nodes=tuple(NodeId(graph, name) for name in row.tuned.nodes),
            kernels=tuple((row.frame, name) for name in row.kernels),
        )
