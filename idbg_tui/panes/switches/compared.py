"""What changed from one run to another: what it was made for, what is worse, which kernels, and what it costs?"""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from idbg.analysis.decisions.compared import Compared, Tally, compared
from idbg.analysis.decisions.kernels_matched import KernelChange
from idbg.analysis.decisions.side_by_side import SideLine, around_changes, side_by_side
from idbg.format.glyphs import MARKS, plain
from idbg.reports.decisions import compared as report
from idbg.schema.runs import Run
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow, clip, fit
from idbg_tui.widgets.listing import Entry
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import INDENT, Enter, Look, Row, Rows, fixed, said, sign

_LOOKS = {"worse": "reject", "better": "clean"}
_WIDE = 100  # cells of a row from which columns fit
_MANY = 40  # of a kind, from which they are folded at first


@dataclass(frozen=True)
class Changed(Row):
    """The row of kernels that are not the same in both runs: enter shows their sources side by side."""

    change: KernelChange | None = None


class ComparedLines(SectionLines):
    """The rows of a comparison; what is looked for is found among all of them."""

    ALL = "the comparison"

    def find(self, text: str, start: int) -> int:
        return ItemList.find(self, text, start)


class _Pair:
    """Two runs that have ended: they are the same for ever."""

    def __init__(self, before: Run, after: Run) -> None:
        self.runs = before, after
        self.known = tuple((run.number, run.started, run.ended) for run in self.runs)

    def __hash__(self) -> int:
        return hash(self.known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pair) and other.known == self.known


@lru_cache(maxsize=8)
def _found(pair: _Pair) -> Compared:
    return compared(*pair.runs)


def differences(before: Run, after: Run) -> Compared:
    """In what two runs that ended differ; found once."""
    return _found(_Pair(before, after))


def summary(before: Run, after: Run) -> str:
    """What changed, in one line: what is worse, kernels, time."""
    found = differences(before, after)
    verdict = next(iter(report.verdicts(before, after, found)), "")
    worse = f"{verdict}; " if verdict else ""
    return plain(f"{worse}{report.kernels_sentence(found)}; time {report.times_words(found.seconds)}")


def rows(before: Run, after: Run, look: Look) -> Sequence[Row]:
    """The worst first, as the report has it; kernels, breaks and rules lead to their sources and lines."""
    found = differences(before, after)
    made = _Made(Rows(), look)
    made.rows.add(
        Row(
            ("runs",),
            fixed([(f" run {before.number}", "strong"), (" against ", "dim"), (f"run {after.number}", "strong")]),
        )
    )
    if not found.target:
        made.sentence("changed: nothing, the same target", "target", "dim")
    for number, change in enumerate(found.target):
        made.sentence(report.target_words(change), ("target", number), "accent")
    for number, line in enumerate(report.verdicts(before, after, found)):
        made.sentence(line, ("verdict", number), _LOOKS.get(line.partition(":")[0], ""))
    made.section("numbers", map(report.number_words, found.numbers or ()))
    made.tallies("rules broken", found.violations)
    made.tallies("graph breaks", found.breaks)
    made.tallies("recompiles", found.recompiles)
    made.section("compiles that one run alone has", report.frames_words(found))
    if found.latency is not None:
        made.sentence(f"latency: {report.latency_words(found)}", "latency", "")
    made.kernels(report.kernels_sentence(found), sorted(found.different, key=report.rank))
    made.section("graphs", map(report.graph_words, found.graphs))
    told = [line.strip() for line in report.time_lines(before, after, found)]
    lines = told if look.width >= _WIDE else [re.sub(" {2,}", "  ", line) for line in told]
    made.section(report.time_sentence(found), lines)
    return made.rows


@dataclass(frozen=True)
class _Made:
    """Rows that are added section by section."""

    rows: Rows
    look: Look

    def sentence(self, text: str, key: Hashable, style: str) -> None:
        """Add a text on as many rows as it takes."""
        for row in said(plain(text), self.look, key=key, depth=1, style=style):
            self.rows.add(row)

    def heading(self, title: str, count: int) -> bool:
        """Add a row under which others are; whether these are listed."""
        fold = ("section", title.partition(":")[0])
        is_open = self.look.is_open(fold, at_first=count <= _MANY)
        pieces = [(f"{sign(is_open=is_open)} ", ""), (plain(title), "strong")]
        self.rows.add(Row(fold, fixed(pieces), "fold", fold, is_open, copied=title))
        return is_open

    def section(self, title: str, lines: Iterable[str]) -> None:
        """Add a title and its lines, if there are any; a sentence that stands alone is none's title."""
        told = list(lines)
        if not told:
            if ": " in title:
                self.sentence(title, title, "strong")
            return
        inside = ("section", title.partition(":")[0])
        if self.heading(title, len(told)):
            for number, line in enumerate(told):
                for row in said(plain(line), self.look, key=(*inside, number), depth=2, inside=(inside,)):
                    self.rows.add(row)

    def tallies(self, title: str, found: Sequence[Tally]) -> None:
        """Add what was met more often, or less, at lines of the user's."""
        inside = ("section", title)
        if found and self.heading(title, len(found)):
            for number, tally in enumerate(found):
                enter: Enter = "edit" if tally.file else ""
                look = "reject" if tally.after > tally.before else "clean"
                pieces = [(" " * 2 * INDENT, ""), (plain(report.tally_words(tally)), look)]
                row = Row((*inside, number), fixed(pieces), enter, None, False, (inside,), "", tally.file, tally.line)
                self.rows.add(row)

    def kernels(self, title: str, found: Sequence[KernelChange]) -> None:
        """Add the kernels that are not the same."""
        if not found:
            self.sentence(title, "kernels", "strong")
            return
        inside = ("section", title.partition(":")[0])
        if self.heading(title, len(found)):
            for number, change in enumerate(found):
                words = plain(report.kernel_words(change).strip())
                pieces = [(" " * 2 * INDENT, ""), (words, "")]
                self.rows.add(Changed((*inside, number), fixed(pieces), inside=(inside,), copied=words, change=change))


# ---------------------------------------------------------------- side by side


def side_entries(change: KernelChange, width: int) -> list[Entry]:
    """Both sources beside each other with their lines' numbers; what is equal, and far from what is not, left out."""
    left, right = (report.sources(kernels) for kernels in (change.before, change.after))
    half = max((width - 3) // 2, 10)
    names = [" and ".join(kernel.name for kernel in kernels) or "none" for kernels in (change.before, change.after)]
    found: list[Entry] = [
        Entry.fixed(
            [(fit(f" {names[0]}", half), "strong"), ("   ", ""), (clip(names[1], half), "strong")], picture=True
        )
    ]
    if not change.before or not change.after:  # one of them alone: whole
        text = left or right
        return [*found, *(Entry.fixed([(clip(f" {line}", width), "")]) for line in text.splitlines())]
    return [*found, *(Entry.fixed(_side_row(line, half)) for line in around_changes(side_by_side(left, right)))]


def _side_row(line: SideLine | None, half: int) -> StyledRow:
    if line is None:
        return [(f" {MARKS['ellipsis']}", "dim")]
    return [
        *_half(line.left, line.left_text, half, "" if line.same else "reject"),
        (f" {' ' if line.same else MARKS['bar']} ", "accent"),
        *_half(line.right, line.right_text, half, "" if line.same else "clean"),
    ]


def _half(number: int, text: str, half: int, style: str) -> StyledRow:
    lead = f"{number:>4} " if number else "     "
    shown = clip(text.replace("\t", "    "), half - len(lead))
    return [(lead, "dim"), (shown.ljust(half - len(lead)), style)]
