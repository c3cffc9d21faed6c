"""How is it said where else a repro fails: a table, and JSON?"""

from collections.abc import Iterator, Sequence

import msgspec

from idbg.format import file_names
from idbg.format.amounts import elapsed
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.schema import strict_json
from idbg.schema.programs import Verdict
from idbg.schema.replays import Answer, Change, Replayed

SCHEMA = "idbg.replay/1"

_VERDICTS: dict[Answer, Verdict] = {"same": "failed", "different": "violations", "gone": "clean", "not run": "waiting"}
_WIDTH = 100  # of a line that a script said


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """One script in one variant: see `Replayed`."""

    script: str
    change: Change
    value: str
    answer: Answer
    exit_status: int | None
    said: str
    note: str
    seconds: float


class ReplaysReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of them; `same` are so many."""

    schema: str
    same: int
    replays: list[ReplayReport]


def table(replays: Sequence[Replayed]) -> Iterator[str]:
    """A block for each script, and a row for each variant: sign, what was changed, answer, exit status, seconds."""
    width = max((len(str(each.variant)) for each in replays), default=0)
    script = ""
    for each in replays:
        if each.script != script:
            script = each.script
            yield file_names.from_here(script)
        status = "" if each.status is None else f"exit {each.status}"
        head = f"  {VERDICT_SIGNS[_VERDICTS[each.answer]]} {each.variant!s:{width}}  {each.answer:9}  {status:8}"
        took = f"{elapsed(each.seconds):>8}" if each.seconds else " " * 8
        yield f"{head}{took}  {_told(each)}".rstrip()


def _told(replay: Replayed) -> str:
    said = replay.said if len(replay.said) <= _WIDTH else f"{replay.said[:_WIDTH]} ..."
    return f"{said} ({replay.note})" if said and replay.note else said or replay.note


def report(replays: Sequence[Replayed]) -> ReplaysReport:
    """The same for another program."""
    rows = [
        ReplayReport(
            script=each.script,
            change=each.variant.change,
            value=each.variant.value,
            answer=each.answer,
            exit_status=each.status,
            said=each.said,
            note=each.note,
            seconds=each.seconds,
        )
        for each in replays
    ]
    return ReplaysReport(schema=SCHEMA, same=sum(each.answer == "same" for each in replays), replays=rows)


def encode(told: ReplaysReport) -> bytes:
    """Strict JSON."""
    return strict_json.formatted(told)
