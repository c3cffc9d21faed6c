"""Baselines: the findings that are known already, so that only new ones fail.

A baseline is a file that a team keeps beside its code: strict, versioned JSON, an entry a line in a fixed order, so
that two people's changes to it merge as text. Entries are found again by keys, which stay where lines move; `text` is
for the person who reads the file. It holds any number of programs, each for any number of accelerators.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from idbg.format.file_names import from_here, near_place
from idbg.schema import strict_json
from idbg.schema.errors import BadInput, output_errors
from idbg.schema.programs import Program
from idbg.schema.violations import Severity
from idbg.views.diagnostics import Diagnostic, DiagnosticKind
from idbg.whole_file import read_whole, write_whole

SCHEMA: Literal["idbg.baseline/1"] = "idbg.baseline/1"
MOST_TEXT = 200  # characters of the text beside a key
FindingKind = DiagnosticKind | Severity
"""What a diagnostic is called here: of a violation its severity says more."""


class KnownFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """One that is known, as often as `count`. `target` is what it was found on: see `Checked`."""

    program: str
    target: str
    kind: FindingKind
    key: str
    count: Annotated[int, msgspec.Meta(ge=1)]
    text: str

    @property
    def same(self) -> tuple[str, str, str, str]:
        """What tells it from every other."""
        return self.program, self.target, self.kind, self.key


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known, sorted."""

    schema: Literal["idbg.baseline/1"]
    known: tuple[KnownFinding, ...]


NOTHING_KNOWN = Baseline(SCHEMA, ())


class Checked(NamedTuple):
    """What was checked, and where: findings of other kinds or targets are left as they are.

    `stage` is that of a check, `compared` names both sides of a comparison. A run that is not `whole` did not come to
    its end: what it did not find may still be there.
    """

    program: str
    kinds: frozenset[str]
    accelerators: tuple[str, ...] = ()
    stage: str = ""
    compared: str = ""
    whole: bool = True

    def target(self, found: Diagnostic) -> str:
        """What this was found on: an accelerator (at the stage of a check), both sides of a comparison, or ""."""
        if found.kind == "violation":
            return self._accelerator(found.accelerator)
        return self.compared if found.kind == "mismatch" else ""

    def covers(self, known: KnownFinding) -> bool:
        """Whether it would have been found if it were still there."""
        targets = {"", self.compared, *map(self._accelerator, self.accelerators)}
        return known.program == self.program and known.kind in self.kinds and known.target in targets

    def _accelerator(self, name: str) -> str:
        named = from_here(_utf8(name))
        return f"{named} at {self.stage}" if self.stage else named


class BaselineDiff(NamedTuple):
    """What is `new`, and how often; what is known, and was found `fewer` times than that (0: not at all)."""

    new: tuple[tuple[Diagnostic, int], ...]
    known: int  # so many diagnostics are not new
    fewer: tuple[tuple[KnownFinding, int], ...]


def kind_of(found: Diagnostic) -> FindingKind:
    """A violation's severity, else its kind."""
    return found.severity or found.kind


def line(found: Diagnostic, count: int | None = None) -> str:
    """The finding in a line, with its place; so many of its `count` are new."""
    new = found.count if count is None else count
    place = near_place(found.file, found.line) or "an unknown line"
    often = f" ({new} of {found.count} are new)" if new < found.count else f" ({new} times)" * (new > 1)
    accelerator = f"{found.accelerator}: " if found.accelerator else ""
    return f"{place}: {accelerator}{' '.join(found.message.split())}{often}"


def program_of(program: Program) -> str:
    """The program as another checkout calls it too: from where it is started, with its arguments."""
    path = program.path if program.module else from_here(os.path.normpath(program.path))
    named = msgspec.structs.replace(program, path=path)
    return _utf8(" ".join((named.label, *program.argv)))


def compared_with(found: Iterable[Diagnostic], checked: Checked, baseline: Baseline) -> BaselineDiff:
    """What is new among the diagnostics of the kinds that were checked for, in their order."""
    left = Counter({each.same: each.count for each in baseline.known})
    new: list[tuple[Diagnostic, int]] = []
    known = 0
    for each in _of_kinds(found, checked):
        same = _entry(each, checked).same
        covered = min(left[same], each.count)
        left[same] -= covered
        if covered < each.count:
            new.append((each, each.count - covered))
        else:
            known += 1
    gone = (each for each in baseline.known if checked.whole and checked.covers(each) and left[each.same])
    return BaselineDiff(tuple(new), known, tuple((each, each.count - left[each.same]) for each in gone))


def updated(found: Iterable[Diagnostic], checked: Checked, baseline: Baseline) -> Baseline:
    """The baseline with what was found, and without what is gone; nothing that was not checked for changes. What a run
    that did not come to its end has not found, stays.
    """
    entries = {each.same: each for each in baseline.known if not checked.covers(each)}
    now: dict[tuple[str, str, str, str], KnownFinding] = {}
    for each in _of_kinds(found, checked):
        entry = _entry(each, checked)
        before = now.get(entry.same)
        count = entry.count + (before.count if before else 0)
        now[entry.same] = msgspec.structs.replace(before or entry, count=count)
    if not checked.whole:
        for kept in filter(checked.covers, baseline.known):
            if kept.same not in now or kept.count > now[kept.same].count:
                now[kept.same] = kept
    return Baseline(SCHEMA, tuple(sorted((entries | now).values())))


def _of_kinds(found: Iterable[Diagnostic], checked: Checked) -> Iterator[Diagnostic]:
    return (each for each in found if kind_of(each) in checked.kinds)


def _entry(found: Diagnostic, checked: Checked) -> KnownFinding:
    where = f"{from_here(found.file)}: " if found.file else ""
    text = " ".join(f"{where}{found.message}".split())
    key = found.key.partition(".")[0]  # the same finding at another line is counted with it
    return KnownFinding(
        checked.program, checked.target(found), kind_of(found), key, found.count, _utf8(text[:MOST_TEXT])
    )


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def load(path: Path, *, must_exist: bool = True) -> Baseline:
    """The file's, or an empty one where there is no file and none `must_exist`. Raises BadInput, in words."""
    try:
        text = read_whole(path)
    except FileNotFoundError as error:
        if not must_exist:
            return NOTHING_KNOWN
        raise BadInput(
            f"there is no baseline {path}", hint="--update-baseline makes it, of what is found now"
        ) from error
    except OSError as error:
        raise BadInput(f"cannot read the baseline {path}: {error.strerror or error}", hint="give another") from error
    try:
        baseline = msgspec.json.decode(text, type=Baseline)
        times = Counter(each.same for each in baseline.known)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path} is no baseline that can be read: {_why(text, error)}", hint=_HINT) from error
    if twice := next((same for same, count in times.items() if count > 1), None):
        raise BadInput(f"{path} is damaged: it has {twice[3]} of {twice[0]} twice", hint=_HINT)
    return baseline


_HINT = "take it from version control again, or remove it and make it anew with --update-baseline"


def _why(text: bytes, error: Exception) -> str:
    if b"<<<<<<<" in text and b">>>>>>>" in text:
        return "it has the marks of a merge that was not finished"
    schema = _schema(text)
    if schema is not None and schema != SCHEMA:
        return f"its schema is {schema[:60]!r}, and this idbg reads {SCHEMA}"
    return str(error)


def _schema(text: bytes) -> str | None:
    class Head(msgspec.Struct):
        schema: str = ""

    try:
        return msgspec.json.decode(text, type=Head).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def encode(baseline: Baseline) -> bytes:
    """As it is written: an entry a line."""
    lines = ",\n".join(f"  {strict_json.encode(each).decode()}" for each in baseline.known)
    known = f"[\n{lines}\n ]" if lines else "[]"
    return f'{{\n "schema": "{baseline.schema}",\n "known": {known}\n}}\n'.encode()


def write(path: Path, baseline: Baseline) -> None:
    """Write the file, whole or not at all. Raises OutputError."""
    with output_errors(f"cannot write the baseline {path}", "give another file"):
        write_whole(path, encode(baseline))


def changed(before: Baseline, after: Baseline) -> tuple[int, int]:
    """How many entries came or count more, and how many went or count less."""
    was, now = ({each.same: each.count for each in one.known} for one in (before, after))
    more = sum(count > was.get(same, 0) for same, count in now.items())
    return more, sum(count > now.get(same, 0) for same, count in was.items())
