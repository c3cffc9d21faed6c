"""What did all tests of a `pytest --idbg` compile, and where can it be looked at?

Each test's session lies in the run's folder. The process that was started hears of each from the test's last report, so
it is the same with pytest-xdist.
"""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from idbg.config import places
from idbg.format.amounts import counted
from idbg.format.file_names import from_here
from idbg.reports import baseline
from idbg.reports.baseline import Baseline, Checked
from idbg.reports.diagnostics import Diagnostic, of_history
from idbg.reports.documents import SessionData, document, formats, together, write
from idbg.reports.fail_kinds import KINDS, findings_of
from idbg.schema.errors import BadInput, IdbgError, OutputError
from idbg.schema.runs import fold
from idbg.session.reading import load
from idbg.testing.watcher import Watcher

ATTRIBUTE = "idbg"  # of a report, where it is plain data
FORMATS = ("html", "markdown", "sarif")
MOST = 20  # findings in the terminal
MOST_SESSIONS = 300  # in one report: it is read by a person, and each session is read to make it


class TestResult(msgspec.Struct, frozen=True):
    """What one test compiled. `program` and `whole` are as a baseline has them; `session` is "" where none could be
    kept.
    """

    __test__ = False  # pytest collects what is called Test

    test: str
    program: str
    session: str
    graphs: int
    found: tuple[Diagnostic, ...]
    accelerators: tuple[str, ...]
    whole: bool


def attach(report: pytest.TestReport, watcher: Watcher) -> None:
    """Have the report carry what the test compiled, if it compiled something."""
    folder, runs = watcher.recording.folder, watcher.recording.history.runs.values()
    if not runs:
        return
    told = TestResult(
        test=report.nodeid,
        program=baseline.program_of(watcher.program),
        session=str(folder) if folder is not None else "",  # a disk refused
        graphs=sum(len(run.graphs) for run in runs),
        found=tuple(msgspec.structs.replace(each, nodes=()) for each in of_history(watcher.recording.history)),
        accelerators=tuple({run.target.accelerator for run in runs if run.checked_rules}),
        whole=all(run.failure is None for run in runs),
    )
    setattr(report, ATTRIBUTE, msgspec.to_builtins(told))


class RunReport:
    """Of one run of pytest; a plug-in of its own in the process that was started. `folder` is the run's."""

    def __init__(self, folder: Path, kinds: frozenset[str], path: Path | None, update: bool) -> None:
        self.folder, self.kinds, self.path, self.update = folder, kinds, path, update
        self.known: Baseline = baseline.NOTHING_KNOWN
        if path is not None:
            self.known = baseline.load(path, must_exist=not update)
        self.told: list[TestResult] = []
        self._notes: list[str] = []
        self._new: list[tuple[str, Diagnostic, int]] = []

    @classmethod
    def of(cls, config: pytest.Config, output: Path) -> "RunReport":
        """As the command line asks. Raises BadInput or OutputError where it cannot be."""
        from idbg.accelerators.registry import rules_for
        from idbg.schema.programs import Target

        named, path = config.getoption("idbg_fail_on"), config.getoption("idbg_baseline")
        accelerator = config.getoption("idbg_accelerator")
        if accelerator:
            rules_for(Target(accelerator=accelerator))
        if config.getoption("idbg_update_baseline") and not path:
            raise BadInput(
                "--idbg-update-baseline has no file to write", hint="name it with --idbg-baseline KNOWN.json"
            )
        kinds = findings_of(named or (KINDS if path else ()))
        update = bool(config.getoption("idbg_update_baseline"))
        report = cls(output, kinds, places.expanded(path) if path else None, update)
        report.folder = _own_folder(output)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test's stage is over, here or in another process."""
        if (told := getattr(report, ATTRIBUTE, None)) is not None:
            self.told.append(msgspec.convert(told, TestResult))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """All tests are over: judge them together, write the report, and fail where that was asked for."""
        wrong = False
        try:
            self._judge()
        except IdbgError as error:  # what was asked for is not done
            self._notes.append(f"FAILED {error.in_one_line}")
            wrong = True
        try:
            self._write()
        except IdbgError as error:
            self._notes.append(error.in_one_line)
        if (wrong or self._new) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        with contextlib.suppress(OSError):
            self.folder.rmdir()  # if it is empty

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What it came to, and where to look at it."""
        terminalreporter.section("idbg")
        for line in self._lines():
            terminalreporter.write_line("".join(each if each.isprintable() else "\ufffd" for each in line))

    def _judge(self) -> None:
        """What is new in all tests, by the one file of what is known."""
        known = self.known
        for told in self.told:
            looked = self._looked(told)
            if self.update:
                known = baseline.updated(told.found, looked, known)
            verdict = baseline.compared_with(told.found, looked, known)
            self._new += [(told.test, found, count) for found, count in verdict.new]
            if verdict.fewer:
                gone = counted(len(verdict.fewer), "finding")
                self._notes.append(f"{told.test}: {gone} of {self.path} no longer found, or less often")
        if self.update and self.path is not None:
            baseline.write(self.path, known)
            self._notes.append(f"{self.path} is written: {counted(len(known.known), 'entry')}")

    def _looked(self, told: TestResult) -> Checked:
        return Checked(told.program, self.kinds, accelerators=told.accelerators, whole=told.whole)

    def _write(self) -> None:
        """The report in each format. Raises OutputError."""
        folders = [Path(told.session) for told in self.told if told.session]
        if len(folders) < len(self.told):
            self._notes.append(f"{counted(len(self.told) - len(folders), 'session')} could not be kept")
        if not folders:
            return
        if len(folders) > MOST_SESSIONS:
            self._notes.append(f"the report has the first {MOST_SESSIONS} of {len(folders):,} sessions")
        told = together([SessionData(each.name, fold(load(each)), str(each)) for each in folders[:MOST_SESSIONS]])
        for name in FORMATS:
            if name not in formats():
                continue
            path = self.folder / f"report{document(name).SUFFIXES[0]}"
            write(path, document(name).render(told))
            self._notes.append(f"report: {from_here(str(path))}")

    def _lines(self) -> Iterator[str]:
        if not self.told:
            yield "no test compiled anything"
        else:
            graphs = sum(told.graphs for told in self.told)
            yield f"{counted(len(self.told), 'test')} compiled something: {counted(graphs, 'graph')}{self._counts()}"
        tests: dict[tuple[str, str], list[str]] = {}
        for told in self.told:
            for found in told.found:
                tests.setdefault((baseline.kind_of(found), baseline.line(found)), []).append(told.test)
        for (kind, line), where in list(tests.items())[:MOST]:
            yield f"{kind}: {line}   {where[0]}" + (f" and {len(where) - 1:,} more" if len(where) > 1 else "")
        if len(tests) > MOST:
            yield f"and {counted(len(tests) - MOST, 'finding')} more: they are in the report"
        for test, found, count in self._new[:MOST]:
            yield f"FAILED {test} {baseline.kind_of(found)}: {baseline.line(found, count)}"
        if len(self._new) > MOST:
            yield f"FAILED and {len(self._new) - MOST:,} more"
        yield from self._notes
        if any(told.session for told in self.told):
            yield f"sessions: {from_here(str(self.folder))}   (idbg-tui FOLDER/TEST opens one)"

    def _counts(self) -> str:
        counts: Counter[str] = Counter()
        for told in self.told:
            for found in told.found:
                counts[found.kind] += found.count
        return "".join(f", {counted(count, _NOUNS.get(kind, kind))}" for kind, count in counts.items())


_NOUNS = {"break": "graph break", "mismatch": "mismatch", "recompile": "recompile"}


def _own_folder(output: Path) -> Path:
    """A folder that no other run has. Raises OutputError."""
    base = f"pytest-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        output.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            folder = output / (base if number == 1 else f"{base}-{number}")
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
                return folder
    except OSError as error:
        raise OutputError(
            f"cannot write to the output folder {output}: {error.strerror or error}", hint="name another: --idbg-output"
        ) from error
    raise OutputError(f"{output} is full of runs of this second", hint="name another with --idbg-output")
