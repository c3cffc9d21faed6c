"""Show between which candidates autotuning chose, how fast each is, and by how much the winner won."""

from collections.abc import Iterator
from typing import NamedTuple

from idbg.format.amounts import counted, elapsed, percentage
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.schema.decisions.inductor import Autotuned, Choice
from idbg.schema.graphs import Part
from idbg.schema.runs import Run
from idbg.schema.strict_json import picked
from idbg.views.frame_graphs import nodes_of
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Refs, Row, Section, Table, kernel_refs, words

TITLE = "Autotuning"
NOTHING = "no autotuning: max_autotune is off, or there was one candidate for each op"
_COLUMNS = (Column("takes", "seconds", 4), Column("", "bar", 1), Column("about", "text", 2, 8))


class Tuned(NamedTuple):
    """One choice: of which frame and part, what was chosen and by how much, of which kernels, and the candidates."""

    frame: str
    part: Part
    words: str
    margin: str
    kernels: tuple[str, ...]
    tuned: Autotuned


def choices(run: Run) -> list[Tuned]:
    """Every choice, in the order in which they were made."""
    return [
        Tuned(frame, tuned.part, _words(tuned), margin(tuned), kernels_of(run, frame, tuned), tuned)
        for frame, choices in run.decided.of(Autotuned).items()
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


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a choice; below it its candidates, the fastest first, each with a bar as long as it takes."""
    every = choices(run)
    if not every:
        return Section(TITLE, NOTHING)
    rows = [_row(run, each, number, alone=len(every) == 1) for number, each in enumerate(every)]
    summary = f"autotuning: {counted(len(every), 'choice')}"
    return Section(TITLE, summary, len(every), "ok", (Table(_COLUMNS, rows, "candidate"),))


def count(run: Run) -> int:
    """Choices."""
    return sum(map(len, run.decided.of(Autotuned).values()))


def _row(run: Run, each: Tuned, number: int, *, alone: bool) -> Row:
    key = ("tuned", number)
    named = (kernel_refs(one) for one in run.kernels if one.frame == each.frame and one.name in each.kernels)
    return Row(
        key,
        words((each.words, "strong"), (f"  {each.margin}", "dim")),
        rows=lambda: _candidates(each, key),
        open="all" if alone else "text",
        refs=Refs(
            nodes=nodes_of(run, each.frame, each.part, each.tuned.nodes), kernel=next(named, None), frame=each.frame
        ),
        opens="fold",
    )


def _candidates(each: Tuned, key: tuple[str, int]) -> Iterator[Row]:
    names = (*(f"node {name}" for name in each.tuned.nodes), *(f"kernel {name}" for name in each.kernels))
    if names:
        yield Row((key, "of"), words((f"{each.frame} {each.part}: {', '.join(names)}", "dim")))
    slowest = max((choice.seconds for choice in each.tuned.choices if choice.seconds is not None), default=0.0)
    for number, choice in enumerate(each.tuned.choices):
        won = choice.name == each.tuned.chosen
        bar = choice.seconds / slowest if choice.seconds and slowest else ""
        yield Row(
            ("choice", key, number),
            words((f"{VERDICT_SIGNS['clean'] if won else ' '} ", "clean"), (choice.name, "strong" if won else "")),
            (
                Cell("failed" if choice.error else choice.seconds),
                Cell(bar, "clean" if won else ""),
                Cell(choice.error or choice.about, "reject" if choice.error else "dim"),
            ),
            refs=Refs(frame=each.frame),
            copied=choice.name,
        )
    if each.tuned.dropped:
        yield Row((key, "more"), words((f"and {each.tuned.dropped:,} more, not recorded", "dim")))


def as_json(run: Run) -> object:
    """Each choice, whole, with its sentence, and the kernels that it is about."""
    return [{**row.tuned.facts(), **picked(row, "frame words margin kernels")} for row in choices(run)]
