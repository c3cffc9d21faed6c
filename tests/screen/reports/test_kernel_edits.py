"""What came of an edited kernel, in words, as a table and as JSON."""

import json

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from idbg.render.text import text as as_text
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections import kernels
from idbg.reports.documents.json import session_report
from idbg.schema import strict_json
from idbg.schema.bench import Latency
from idbg.schema.diff import DiffReport, KernelError, Outcome, TensorDiff
from idbg.schema.events import KernelEdited, KernelEditing
from idbg.schema.kernel_edits import EditTimes, KernelEdit, TimeChange
from idbg.schema.programs import Failure
from idbg.schema.remarks import NoFloat64
from idbg.schema.runs import History, Run, fold
from idbg.views import kernel_edits
from idbg.views.tree import Table
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Look
from tests.harness import recorded

RUN = next(iter(fold(recorded.log("resnet")).runs.values()))
KERNEL = next(kernel for kernel in RUN.kernels if kernel.source)


def report(verdict: Outcome, *diffs: TensorDiff) -> DiffReport:
    missing = NoFloat64("not narrow")
    return DiffReport(
        test="edited", reference="original", verdict=verdict, mode="float64", float64_missing=missing, outputs=diffs
    )


def launch(error: float, *, bad: bool = False) -> KernelError:
    return KernelError(frame="0/0", part="inference", name=KERNEL.name, observed=True, isolated=error, bad=bad)


def change(original_us: float, edited_us: float) -> TimeChange:
    """Of samples that all are so, for the p of ten of them."""
    original, edited = (Latency.of([each / 1e3] * 10, 1, 10, True) for each in (original_us, edited_us))
    return TimeChange(original, edited, 1e-5)


AGREES = KernelEdit(
    frame=KERNEL.frame,
    part=KERNEL.part,
    name=KERNEL.name,
    language=KERNEL.language,
    version=1,
    text=KERNEL.source + "// faster\n",
    report=report("passed", TensorDiff(name="out", max_abs=1e-6)),
    original=launch(1e-7),
    edited=launch(2e-7),
    times=EditTimes(kernel=change(20, 10), call=change(200, 199)),
    build_s=1.5,
    seconds=4.0,
)
WRONG_OUTPUT = report("failed", TensorDiff(name="out", passed=False, failed_by=("rmse",), max_abs=0.5))
FAILED = replace(
    AGREES, version=2, report=None, times=None, line=3, failure=Failure("input", "it does not build: line 3: no", "fix")
)


@pytest.mark.parametrize(
    ("edit", "verdict"),
    [
        (AGREES, "agrees"),
        (replace(AGREES, report=WRONG_OUTPUT), "wrong"),
        (replace(AGREES, edited=launch(0.1, bad=True)), "wrong"),  # which no output shows
        (replace(AGREES, report=report("waiting")), "not compared"),
        (replace(AGREES, report=None), "not compared"),
        (replace(AGREES, failure=Failure("worker", "it died")), "failed"),
    ],
)
def test_the_verdict_is_the_worst_of_what_is_known(edit: KernelEdit, verdict: str):
    assert edit.verdict == verdict


@pytest.mark.parametrize(
    ("original", "edited", "words"),
    [
        (20, 10, "2 times faster: 20 µs → 10 µs (p 1e-05)"),
        (10, 20, "2 times slower: 10 µs → 20 µs (p 1e-05)"),
        (100, 99, "no difference beyond the noise: 100 µs → 99 µs (p 1e-05)"),  # two processes differ by as much
    ],
)
def test_a_time_has_changed_only_beyond_the_noise(original: float, edited: float, words: str):
    assert kernel_edits.change_words(change(original, edited)) == words


def test_numbers_and_time_are_told_apart_in_few_words():
    same = replace(AGREES, report=WRONG_OUTPUT, times=EditTimes(kernel=change(100, 99), call=change(200, 199)))
    assert kernel_edits.brief(same) == "numbers are wrong · time: no difference beyond the noise"


def test_versions_stand_below_the_original_with_what_came_of_them_and_their_diffs():
    run = Run(1, RUN.program, RUN.target, 0.0, codes=RUN.codes)
    for edit in (AGREES, FAILED):
        run.apply(KernelEdited(run=1, edit=edit))
    text = as_text(kernel_edits.view(run), None)
    assert f"{KERNEL.name}\n" in text and text.count("original") >= 3
    assert "✔ version 1  agree" in text and "2 times faster" in text and "✘ version 2  failed" in text
    assert "it does not build: line 3: no" in text and "\n      +// faster\n" in text
    assert kernel_edits.view(run).count == 2 and kernel_edits.view(run, ("1/0", "", "k")).count == 0
    editing = KernelEditing(
        run=1, frame=KERNEL.frame, part=KERNEL.part, name=KERNEL.name, version=3, step="timing both"
    )
    run.apply(editing)
    assert "version 3" in as_text(kernel_edits.view(run, editing=run.editing), None)
    run.apply(KernelEdited(run=1, edit=replace(AGREES, version=3)))
    assert run.editing is None


@pytest.mark.parametrize("width", [40, 60, 78, 100, 120, 200])
def test_unfolded_versions_can_be_laid_out_in_any_width(width: int):
    run = Run(1, RUN.program, RUN.target, 0.0, codes=RUN.codes, edits=[AGREES, FAILED])
    section = kernel_edits.view(run)
    unfolded = frozenset(row.key for table in section.body if isinstance(table, Table) for row in table.rows)
    listed = sections.rows(section, Look(width=width, turned=unfolded))
    assert len({row.key for row in listed if row.key is not None}) >= 8


def test_the_json_has_each_version_with_its_figures_and_its_diff():
    run = Run(1, RUN.program, RUN.target, 0.0, codes=RUN.codes, edits=[AGREES, FAILED])
    first, second = json.loads(strict_json.encode(kernel_edits.reports(run)))
    assert (first["verdict"], first["max_abs"], first["error"]) == ("agrees", 1e-6, 2e-7)
    assert first["kernel_time"]["direction"] == "faster" and first["call_time"]["direction"] == "same"
    assert "+// faster" in first["diff"] and second["line"] == 3 and second["kernel_time"] is None


def test_the_page_and_the_json_of_a_session_have_them():
    run = Run(1, RUN.program, RUN.target, 0.0, codes=RUN.codes, edits=[AGREES])
    session = SessionData("s", History({1: run}))
    page = str(kernels.section(session))
    assert "Edited kernels" in page and "version 1" in page and "+// faster" in page
    (written,) = session_report(session).runs
    assert [(edit["name"], edit["version"]) for edit in to_builtins(written.edits)] == [(KERNEL.name, 1)]


def test_an_error_of_the_build_stands_at_its_line_of_the_file():
    first, second, *_ = kernel_edits.edit_lines(FAILED, "relu.cpp")
    assert first == "relu.cpp:3: no" and second.strip() == KERNEL.source.splitlines()[2].strip()
