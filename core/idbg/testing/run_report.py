"""Report what all tests of a `pytest --idbg` compiled.

Each test's session is in the run's folder. The main process gets each result from the test's last report, with and
without pytest-xdist.
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
from idbg.reports.documents import SessionData, document, formats, together, write
from idbg.reports.fail_kinds import KINDS, findings_of
from idbg.schema.errors import BadInput, IdbgError, OutputError, output_errors
from idbg.schema.runs import fold
from idbg.session.reading import load
from idbg.testing.watcher import Watcher
from idbg.views.diagnostics import Diagnostic, of_history

ATTRIBUTE = "idbg"  # of a report, where it is plain data
FORMATS = ("html", "markdown", "sarif")
MOST = 20  # findings in the terminal
MOST_SESSIONS = 300  # in one report: it is read by a person, and each session is read to make it


class TestResult(msgspec.Struct, frozen=True):
    """What one test compiled. `program` and `whole` are as a baseline has them; `session` is "" if none could be
    stored.
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
    """Attach what the test compiled to the report, if it compiled something."""
    folder, runs = watcher.recording.folder, watcher.recording.history.runs.values()
    if not runs:
        return
    result = TestResult(
        test=report.nodeid,
        program=baseline.program_of(watcher.program),
        session=str(folder) if folder is not None else "",  # a disk refused
        graphs=sum(len(run.graphs) for run in runs),
        found=tuple(msgspec.structs.replace(each, nodes=()) for each in of_history(watcher.recording.history)),
        accelerators=tuple({run.target.accelerator for run in runs if run.checked_rules}),
        whole=all(run.failure is None for run in runs),
    )
    setattr(report, ATTRIBUTE, msgspec.to_builtins(result))


class RunReport:
    """The report of one run of pytest: a plugin of its own in the main process. `folder` is the run's."""

    def __init__(self, folder: Path, kinds: frozenset[str], path: Path | None, update: bool) -> None:
        self.folder, self.kinds, self.path, self.update = folder, kinds, path, update
        self.known: Baseline = baseline.NOTHING_KNOWN
        if path is not None:
            self.known = baseline.load(path, must_exist=not update)
        self.results: list[TestResult] = []
        self._notes: list[str] = []
        self._new: list[tuple[str, Diagnostic, int]] = []

    @classmethod
    def of(cls, config: pytest.Config, output: Path) -> "RunReport":
        """The report that the command line describes. Raises BadInput or OutputError."""
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
        """A stage of a test is over, in this process or in another."""
        if (result := getattr(report, ATTRIBUTE, None)) is not None:
            self.results.append(msgspec.convert(result, TestResult))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """All tests are over: compare them with the baseline, write the report, and fail if the flags say so."""
        wrong = False
        try:
            self._judge()
        except IdbgError as error:  # the baseline could not be read or written
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
        """Print the summary, and where the sessions are."""
        terminalreporter.section("idbg")
        for line in self._lines():
            terminalreporter.write_line("".join(each if each.isprintable() else "\ufffd" for each in line))

    def _judge(self) -> None:
        """Find what is new in all tests, by the one baseline file."""
        known = self.known
        for result in self.results:
            looked = self._looked(result)
            if self.update:
                known = baseline.updated(result.found, looked, known)
            verdict = baseline.compared_with(result.found, looked, known)
            self._new += [(result.test, found, count) for found, count in verdict.new]
            if verdict.fewer:
                gone = counted(len(verdict.fewer), "finding")
                self._notes.append(f"{result.test}: {gone} of {self.path} no longer found, or less often")
        if self.update and self.path is not None:
            baseline.write(self.path, known)
            self._notes.append(f"{self.path} is written: {counted(len(known.known), 'entry')}")

    def _looked(self, result: TestResult) -> Checked:
        return Checked(result.program, self.kinds, accelerators=result.accelerators, whole=result.whole)

    def _write(self) -> None:
        """Write the report in each format. Raises OutputError."""
        folders = [Path(result.session) for result in self.results if result.session]
        if len(folders) < len(self.results):
            self._notes.append(f"{counted(len(self.results) - len(folders), 'session')} could not be kept")
        if not folders:
            return
        if len(folders) > MOST_SESSIONS:
            self._notes.append(f"the report has the first {MOST_SESSIONS} of {len(folders):,} sessions")
        sessions = together([SessionData(each.name, fold(load(each)), str(each)) for each in folders[:MOST_SESSIONS]])
        for name in FORMATS:
            if name not in formats():
                continue
            path = self.folder / f"report{document(name).SUFFIXES[0]}"
            write(path, document(name).render(sessions))
            self._notes.append(f"report: {from_here(str(path))}")

    def _lines(self) -> Iterator[str]:
        if not self.results:
            yield "no test compiled anything"
        else:
            graphs = sum(result.graphs for result in self.results)
            yield f"{counted(len(self.results), 'test')} compiled something: {counted(graphs, 'graph')}{self._counts()}"
        tests: dict[tuple[str, str], list[str]] = {}
        for result in self.results:
            for found in result.found:
                tests.setdefault((baseline.kind_of(found), baseline.line(found)), []).append(result.test)
        for (kind, line), where in list(tests.items())[:MOST]:
            yield f"{kind}: {line}   {where[0]}" + (f" and {len(where) - 1:,} more" if len(where) > 1 else "")
        if len(tests) > MOST:
            yield f"and {counted(len(tests) - MOST, 'finding')} more: they are in the report"
        for test, found, count in self._new[:MOST]:
            yield f"FAILED {test} {baseline.kind_of(found)}: {baseline.line(found, count)}"
        if len(self._new) > MOST:
            yield f"FAILED and {len(self._new) - MOST:,} more"
        yield from self._notes
        if any(result.session for result in self.results):
            yield f"sessions: {from_here(str(self.folder))}   (idbg-tui FOLDER/TEST opens one)"

    def _counts(self) -> str:
        counts: Counter[str] = Counter()
        for result in self.results:
            for found in result.found:
                counts[found.kind] += found.count
        return "".join(f", {counted(count, _NOUNS.get(kind, kind))}" for kind, count in counts.items())


_NOUNS = {"break": "graph break", "mismatch": "mismatch", "recompile": "recompile"}


def _own_folder(output: Path) -> Path:
    """Create a folder that no other run has. Raises OutputError."""
    base = f"pytest-{time.strftime('%Y%m%d-%H%M%S')}"
    with output_errors(f"cannot write to the output folder {output}", "name another: --idbg-output"):
        output.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            folder = output / (base if number == 1 else f"{base}-{number}")
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
                return folder
    raise OutputError(f"{output} is full of runs of this second", hint="name another with --idbg-output")
