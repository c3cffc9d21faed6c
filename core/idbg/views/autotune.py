"""Show between which candidates autotuning chose, how fast each is, and by how much the winner won."""

from collections.abc import Iterator

from idbg.format.amounts import counted, elapsed, percentage
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.schema.decisions.inductor import Autotuned, Choice
from idbg.schema.runs import Run
from idbg.views.frame_graphs import nodes_of
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Refs, Row, Section, Table, kernel_refs, words

TITLE = "Autotuning"
NOTHING = "no autotuning: max_autotune is off, or there was one candidate for each op"
_COLUMNS = (Column("takes", "seconds", 4), Column("", "bar", 1), Column("about", "text", 2, 8))


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
    every = run.decided.with_frames(Autotuned)
    if not every:
        return Section(TITLE, NOTHING)
    rows = [_row(run, number, *each, alone=len(every) == 1) for number, each in enumerate(every)]
    summary = f"autotuning: {counted(len(every), 'choice')}"
    return Section(TITLE, summary, len(every), "ok", (Table(_COLUMNS, rows, "candidate"),))


def count(run: Run) -> int:
    """Choices."""
    return len(run.decided.every(Autotuned))


def _row(run: Run, number: int, frame: str, tuned: Autotuned, *, alone: bool) -> Row:
    key = ("tuned", number)
    kernels = kernels_of(run, frame, tuned)
    named = (kernel_refs(one) for one in run.kernels if one.frame == frame and one.name in kernels)
    return Row(
        key,
        words((_words(tuned), "strong"), (f"  {margin(tuned)}", "dim")),
        rows=lambda: _candidates(frame, tuned, kernels, key),
        open="all" if alone else "text",
        refs=Refs(nodes=nodes_of(run, frame, tuned.part, tuned.nodes), kernel=next(named, None), frame=frame),
        opens="fold",
    )


def _candidates(frame: str, tuned: Autotuned, kernels: tuple[str, ...], key: tuple[str, int]) -> Iterator[Row]:
    names = (*(f"node {name}" for name in tuned.nodes), *(f"kernel {name}" for name in kernels))
    if names:
        yield Row((key, "of"), words((f"{frame} {tuned.part}: {', '.join(names)}", "dim")))
    slowest = max((choice.seconds for choice in tuned.choices if choice.seconds is not None), default=0.0)
    for number, choice in enumerate(tuned.choices):
        won = choice.name == tuned.chosen
        bar = choice.seconds / slowest if choice.seconds and slowest else ""
        yield Row(
            ("choice", key, number),
            words((f"{VERDICT_SIGNS['clean'] if won else ' '} ", "clean"), (choice.name, "strong" if won else "")),
            (
                Cell("failed" if choice.error else choice.seconds),
                Cell(bar, "clean" if won else ""),
                Cell(choice.error or choice.about, "reject" if choice.error else "dim"),
            ),
            refs=Refs(frame=frame),
            copied=choice.name,
        )
    if tuned.dropped:
        yield Row((key, "more"), words((f"and {tuned.dropped:,} more, not recorded", "dim")))


def as_json(run: Run) -> object:
    """Each choice, whole, with its sentence, and the kernels that it is about."""
    return [
        tuned.facts(frame=frame, words=_words(tuned), margin=margin(tuned), kernels=kernels_of(run, frame, tuned))
        for frame, tuned in run.decided.with_frames(Autotuned)
    ]
