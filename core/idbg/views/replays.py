"""List where else each repro fails: its answer with another backend, accelerator, options or torch."""

from collections.abc import Sequence
from itertools import groupby

from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.schema.programs import Verdict
from idbg.schema.repros import Answer, Replayed
from idbg.views.tree import Cell, Column, Row, Section, Table, words

_COLUMNS = (Column("answer", rank=3), Column("exit", "count", 2), Column("took", "seconds", 1))
_SIGNS: dict[Answer, Verdict] = {"same": "failed", "different": "violations", "gone": "clean", "not run": "waiting"}
_LONGEST = 100  # characters of a line that a script printed


def view(replays: Sequence[Replayed]) -> Section:
    """A table a script, a row a variant: what it printed stands below."""
    same = sum(each.answer == "same" for each in replays)
    tables = tuple(
        Table(_COLUMNS, [_row(each) for each in variants], "variant", file_names.from_here(script))
        for script, variants in groupby(replays, key=lambda each: each.script)
    )
    summary = f"the same failure in {same} of {counted(len(replays), 'run')}" if replays else "no repro was run"
    return Section("Replays", summary, same, "error" if same else "ok", tables)


def _row(replay: Replayed) -> Row:
    printed = replay.result_line if len(replay.result_line) <= _LONGEST else f"{replay.result_line[:_LONGEST]} ..."
    return Row(
        (replay.script, str(replay.variant)),
        words(f"{VERDICT_SIGNS[_SIGNS[replay.answer]]} ", str(replay.variant)),
        (Cell(replay.answer), Cell(replay.status), Cell(replay.seconds or None)),
        code=f"{printed} ({replay.note})" if printed and replay.note else printed or replay.note,
    )


def as_json(replays: Sequence[Replayed]) -> dict[str, object]:
    """The same for another program."""
    rows = [
        {
            "script": each.script,
            "change": each.variant.change,
            "value": each.variant.value,
            "answer": each.answer,
            "exit_status": each.status,
            "said": each.result_line,
            "note": each.note,
            "seconds": each.seconds,
        }
        for each in replays
    ]
    same = sum(each.answer == "same" for each in replays)
    return {"schema": "idbg.replay/1", "same": same, "replays": rows}
