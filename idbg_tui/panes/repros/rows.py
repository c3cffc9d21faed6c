"""How does a session's repro read as rows: what it shows, whether it does, how small it is, and what was met?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.format.failures import headline
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.programs import Verdict
from idbg.schema.repros import OtherFailure
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.views.repros import (
    age,
    guarantee_words,
    left_words,
    progress_pieces,
    signature_words,
    sought_words,
    status_words,
    verdict,
)
from idbg_tui.widgets.lines import StyledRow, clip, cut, fit

WITH_PATHS, _WITH_HOW = 118, 90  # cells from which there are these columns; paths stand below in fewer
_MOST_OTHERS = 5
_PATH, _LEAST = 34, 12  # cells of a path's column, and of what is shown at least
_STYLES: dict[Verdict, str] = {"clean": "clean", "failed": "reject", "waiting": "dim"}


@dataclass(frozen=True)
class Heads:
    """The names of the columns."""


@dataclass(frozen=True)
class ReproRow:
    """A repro: `number` counts them from the oldest. The words of its cells but for the age, which grows."""

    number: int
    repro: SessionRepro
    status: str
    sign: Verdict
    what: str
    left: str
    path: str = ""  # where there is room for it


@dataclass(frozen=True)
class Note:
    """A sentence below a repro; with `other`, a failure that was met on the way, which has a script of its own."""

    number: int
    repro: SessionRepro
    text: str
    style: str = "dim"
    other: OtherFailure | None = None


Item = Heads | ReproRow | Note


def items(kept: Sequence[SessionRepro], runs: Mapping[int, Run], width: int, *, live: bool) -> list[Item]:
    """All repros, the newest first, each with what is to be said below it where so many cells are there."""
    rows: list[Item] = [Heads()] if kept else []
    for number in reversed(range(len(kept))):
        repro = kept[number]
        row = _row(number, repro, runs.get(repro.run), live=live)
        path = shown_path(repro.path)
        rows.append(replace(row, path=path if width >= WITH_PATHS else ""))
        rows += [Note(number, repro, path)] if path and width < WITH_PATHS else []
        rows += (Note(number, repro, text, style) for text, style in _notes(repro, live=live))
        rows += _others(number, repro)
    return rows


def _row(number: int, repro: SessionRepro, run: Run | None, *, live: bool) -> ReproRow:
    status = status_words(repro, live=live).partition(",")[0]
    return ReproRow(
        number, repro, status, verdict(repro.reproduced if repro.ended else None), _what(repro, run), _left(repro)
    )


def shown_path(path: str) -> str:
    """A path as it is told: from the session's folder, where it lies in that."""
    parts = PurePath(path).parts
    places = [index for index, part in enumerate(parts) if part == "repros"]
    return "/".join(parts[places[-1] :]) if places else file_names.from_here(path) if path else ""


def _how(repro: SessionRepro) -> str:
    """How it came to be: of what feeds a node nothing is made smaller."""
    return "written" if repro.sought.kind == "node" else repro.origin


def _what(repro: SessionRepro, run: Run | None) -> str:
    """What it shows: the failure's signature where that is known, else what was asked for, by its name."""
    sought, found = repro.sought, repro.minified
    if found is not None and found.signature.kind != "none":
        return signature_words(found.signature)
    if sought.kind == "wrong" and sought.launch is not None and run is not None and run.diff is not None:
        named = run.diff.kernels[sought.launch : sought.launch + 1]
        return f"{named[0].name} is wrong" if named else sought_words(sought)
    failure = (run.failure or run.cause) if run is not None else None
    if sought.kind == "failure" and failure is not None:
        line = headline(failure)
        return line.cause or line.what
    return sought_words(sought)


def _left(repro: SessionRepro) -> str:
    """How small it is, or is by now."""
    if repro.minified is not None:
        return left_words(repro.minified)
    return left_words(repro.progress) if repro.progress is not None else ""


def _notes(repro: SessionRepro, *, live: bool) -> Iterator[tuple[str, str]]:
    """Why there is none; what its search does, or came to."""
    if not repro.ended and repro.progress is not None:
        yield "  ".join(progress_pieces(repro.progress)), "accent"
    if repro.minified is not None:
        said = guarantee_words(repro.minified)
        goes_on = live and repro.path and not repro.minified.minimal and repro.minified.signature.kind != "none"
        said += "; X goes on" if goes_on else ""
        yield said, "dim" if repro.minified.minimal else "fallback"
        if repro.minified.passing:
            lacks = ", ".join(repro.minified.difference)
            yield f"beside the nearest that does not fail{f': it lacks {lacks}' if lacks else ''}", "dim"
    if repro.failure is not None and not repro.stopped:
        first = repro.failure.message.strip().partition("\n")[0]
        yield f"{first}; {repro.failure.hint}" if repro.failure.hint else first, "reject"
    elif repro.stopped and repro.minified is None and live:
        yield "it was stopped before a script was found: X begins again", "fallback"


def _others(number: int, repro: SessionRepro) -> Iterator[Note]:
    """The failures of another kind that its search met, the most frequent first."""
    others = sorted(repro.minified.others if repro.minified is not None else (), key=lambda one: -one.count)
    for other in others[:_MOST_OTHERS]:
        often = f" {MARKS['times']}{other.count:,}" if other.count > 1 else ""
        yield Note(number, repro, f"also met{often}: {other.signature}", "", other)
    if len(others) > _MOST_OTHERS:
        more = counted(len(others) - _MOST_OTHERS, "other failure")
        yield Note(number, repro, f"and {more}, whose scripts lie beside it")


# ---------------------------------------------------------------- drawing


@dataclass(frozen=True)
class Columns:
    """How many cells each column has, in a list of `width` cells; that of the paths may have none."""

    width: int
    status: int
    how: int
    what: int
    left: int
    age: int
    path: int

    @classmethod
    def of(cls, told: Sequence[Item], width: int) -> "Columns":
        """What it shows takes what the others leave: numbers are not cut."""
        rows = [item for item in told if isinstance(item, ReproRow)]
        status = max([6, *(len(row.status) for row in rows)])
        how = max([3, *(len(_how(row.repro)) for row in rows)]) if width >= _WITH_HOW else 0
        left = max([4, *(len(row.left) for row in rows)])
        ages = 8
        path = 0
        if width >= WITH_PATHS:
            longest = max([0, *(len(row.path) for row in rows)])
            path = min(longest, max(_PATH, width // 3))
        rest = width - 3 - status - left - ages - 2 * 3 - sum(column + 2 for column in (how, path) if column)
        return cls(width, status, how, max(rest, _LEAST), left, ages, path)


def heads(columns: Columns) -> StyledRow:
    """The line over the columns."""
    words = [fit("status", columns.status), fit("what it shows", columns.what)]
    words[1:1] = [fit("how", columns.how)] if columns.how else []
    text = f"   {'  '.join(words)}  {'left':>{columns.left}}  {'age':>{columns.age}}"
    return [(clip(text + ("  script" if columns.path else ""), columns.width), "dim")]


def drawn(row: ReproRow, columns: Columns, now: float) -> StyledRow:
    """One repro."""
    repro = row.repro
    style, sign = _STYLES[row.sign], VERDICT_SIGNS[row.sign]
    if repro.ended and row.sign == "waiting":
        sign = MARKS["separator"]  # nothing more will be known of it
    if not repro.ended and row.status in ("searching", "being written"):
        style = "accent"
    pieces: list[tuple[str, str]] = [
        (f" {sign} {fit(row.status, columns.status)}  ", style),
        (f"{fit(_how(repro), columns.how)}  " if columns.how else "", "dim"),
        (f"{fit(clip(row.what, columns.what), columns.what)}  ", "strong"),
        (f"{row.left:>{columns.left}}  ", ""),
        (f"{age(repro.at, now):>{columns.age}}", "dim"),
    ]
    if columns.path:
        pieces.append((f"  {cut(row.path, columns.path)}", "dim"))
    return pieces


def drawn_note(note: Note, width: int) -> StyledRow:
    """A sentence below a repro; a path is cut in its middle."""
    mark = f"{MARKS['arrow']} " if note.other is not None else ""
    room = width - 5 - len(mark)
    text = cut(note.text, room) if note.text.endswith(".py") else clip(note.text, room)
    return [("     ", ""), (mark, "accent"), (text, note.style)]
