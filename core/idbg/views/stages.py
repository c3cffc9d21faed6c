"""Show what other compilers made of a run's graphs, stage by stage, and how much of it is linked to nodes."""

from collections.abc import Iterator

import msgspec

from idbg.format.amounts import counted
from idbg.format.spelling import did_you_mean
from idbg.schema.code import CompilerStage
from idbg.schema.errors import BadInput
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.schema.written import Written, keys_of, written
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Refs, Row, Section, Table, words

TITLE = "Stages of other compilers"
NOTHING = "no other compiler shows its stages: docs/backends.md says how one does"
SCHEMA = "idbg.stage/1"
ORIGINS = {
    "artifact": "an artifact of its trace",
    "dump": "dumped",
    "call": "idbg.stage",
    "adapter": "from its adapter",
}
"""Where a stage comes from."""
_SHOWN = 20_000  # characters of a text below its row
_COLUMNS = (
    Column("language", rank=3),
    Column("size", "bytes", 4),
    Column("linked lines", "count", 2),
    Column("nodes", "count", 2),
    Column("from", rank=1),
)


class StageLink(msgspec.Struct, frozen=True):
    """A line of a stage's text, 1-based, and the nodes that it belongs to, by their names in the stage's `graph`."""

    line: int
    nodes: tuple[str, ...]


@keys_of(CompilerStage, "compiler name frame part language origin size binary file graph links text")
class StageReport(Written, frozen=True):
    """One stage. `text` is empty where it is in `file` of the session's folder, and of a `binary`."""

    links: list[StageLink]
    text: str


class StageListing(msgspec.Struct, frozen=True, kw_only=True):
    """`stages` are all of the run, without their texts; `stage` the requested one; `note` says what it lacks."""

    schema: str = SCHEMA
    run: int
    stages: list[StageReport]
    stage: StageReport | None = None
    note: str = ""


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a stage, under its compiler and frame; below it the beginning of its text."""
    if not run.stages:
        return Section(TITLE, NOTHING)
    compilers = list(dict.fromkeys((stage.compiler, stage.frame) for stage in run.stages.values()))
    rows = [
        Row(
            ("compiler", compiler, frame),
            words(compiler, (f"  frame {frame}" if frame else "", "dim")),
            rows=[_row(each) for each in run.stages.values() if (each.compiler, each.frame) == (compiler, frame)],
            open="all",
            refs=Refs(frame=frame),
            opens="fold",
        )
        for compiler, frame in compilers
    ]
    named = ", ".join(dict.fromkeys(compiler for compiler, _ in compilers))
    summary = f"{counted(len(run.stages), 'stage')} of {named}"
    return Section(TITLE, summary, len(run.stages), "ok", (Table(_COLUMNS, rows, "stage"),))


def _row(stage: CompilerStage) -> Row:
    names = dict.fromkeys(name for _, names in stage.links for name in names)
    nodes = tuple(NodeId(stage.graph, name) for name in names) if stage.graph is not None else ()
    cells = (
        Cell("binary" if stage.binary else stage.language),
        Cell(stage.size),
        Cell(len(stage.links)),
        Cell(len(names)),
        Cell(ORIGINS[stage.origin]),
    )
    return Row(
        stage.key,
        words(stage.name, (f"  {stage.part}" if stage.part else "", "dim")),
        cells,
        rows=[Row((*stage.key, "text"), words(("its text", "dim")), code=_beginning(stage))] if stage.text else (),
        refs=Refs(nodes=nodes, frame=stage.frame),
        opens="fold",
    )


def _beginning(stage: CompilerStage) -> str:
    if len(stage.text) <= _SHOWN:
        return stage.text
    return f"{stage.text[:_SHOWN].rpartition(chr(10))[0]}\n… of {len(stage.text):,} characters"


def count(run: Run) -> int:
    """How many stages there are."""
    return len(run.stages)


def as_json(run: Run) -> list[StageReport]:
    """Every stage, with its text where it is not long."""
    return [_report(stage, stage.text) for stage in run.stages.values()]


def _report(stage: CompilerStage, text: str) -> StageReport:
    return written(StageReport, stage, links=[StageLink(*each) for each in stage.links], text=text)


def listing(run: Run, stage: CompilerStage | None = None, text: str = "", note: str = "") -> StageListing:
    """The stages of a run, and one of them with as much of its text as was read."""
    every = [_report(each, "") for each in run.stages.values()]
    return StageListing(
        run=run.number, stages=every, stage=_report(stage, text) if stage is not None else None, note=note
    )


def named(run: Run, name: str) -> CompilerStage:
    """The stage of this name ("flow", "iree: flow"), the last of several, or the only one whose name has it. Raises
    BadInput where none is meant.
    """
    stages = list(run.stages.values())
    same = [stage for stage in stages if name in (stage.name, f"{stage.compiler}: {stage.name}")]
    having = same or [stage for stage in stages if name in stage.name]
    if same or len(having) == 1:
        return having[-1]
    names = list(dict.fromkeys(stage.name for stage in having or stages))
    what = f"{len(names)} stages have {name!r} in their name" if having else f"there is no stage {name!r}"
    hint = did_you_mean(name, names, "without a name, the stages are listed", most=5, cutoff=0 if having else 0.3)
    raise BadInput(what, hint=hint if names else NOTHING)


def text_lines(stage: CompilerStage, text: str, note: str) -> Iterator[str]:
    """The text of the stage, under a line that says whose it is; a linked line ends with its nodes."""
    where = f", frame {stage.frame} {stage.part}".rstrip() if stage.frame else ""
    yield f"{stage.compiler}: {stage.name}{where}; {ORIGINS[stage.origin]}" + (f"; {note}" if note else "")
    yield (
        f"its links name nodes of the {stage.graph.stage} graph" if stage.graph else "its lines are not linked to nodes"
    )
    yield ""
    nodes = {line: ", ".join(names) for line, names in stage.links}
    for number, line in enumerate(text.split("\n") if text else (), 1):
        yield f"{line}   ← {nodes[number]}" if number in nodes else line
