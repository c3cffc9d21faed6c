"""The conformance kit without a compiler: its programs, and what the records of a run come to."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from idbg.cli.commands.conform import status
from idbg.conformance import catalogue
from idbg.format.plain_text import one_line
from idbg.render.text import lines
from idbg.reports import conformance as reports
from idbg.schema.bench import Conformed, Latency, NativeOps
from idbg.schema.conformance import Conformance, ConformanceProgram, ConformanceRow
from idbg.schema.diff import DiffReport, SideResult, TensorDiff
from idbg.schema.errors import BadInput
from idbg.schema.programs import FALLBACK, Failure
from idbg.views import conformance as view

REPORT = DiffReport(test="b", reference="eager", verdict="passed", mode="float64", outputs=(TensorDiff(name="out"),))
WRONG = TensorDiff(name="out", passed=False, failed_by=("alias",))


def latency(milliseconds: float) -> Latency:
    return Latency.of([milliseconds * (1 + at / 1e4) for at in range(20)], 1, 10, True)


def row(name: str = "one", family: str = "Views", **fields) -> ConformanceRow:
    program = ConformanceProgram(name, family, f"/kit/{family.lower()}.py", "What it does.")
    return ConformanceRow(program=program, **({"result": Conformed(report=REPORT)} | fields))


def failing(failure: Failure) -> Conformed:
    sides = (SideResult("eager"), SideResult("b", failure=failure))
    return Conformed(report=replace(REPORT, verdict="error", sides=sides, outputs=()))


def of(*rows: ConformanceRow, **fields) -> Conformance:
    return Conformance(backend="b", rows=rows, expected=tuple(each.program for each in rows), **fields)


def test_each_family_has_programs_each_with_a_sentence_and_a_name_of_its_own() -> None:
    found = catalogue.programs()
    assert {Path(each.file).stem for each in found} == set(catalogue.ORDER)
    assert 60 <= len(found) <= 90 and len({view.name_of(each) for each in found}) == len(found)
    assert all(each.about.endswith(".") and each.family != Path(each.file).stem for each in found)


def test_quick_has_a_program_of_every_family() -> None:
    quick = catalogue.programs(quick=True)
    assert {each.family for each in quick} == {each.family for each in catalogue.programs()}
    assert 15 <= len(quick) <= 28


def test_programs_are_chosen_by_family_and_by_name() -> None:
    found = catalogue.programs()
    chosen = catalogue.chosen(found, ["dtypes", "views:transposes"])
    assert {Path(each.file).stem for each in chosen} == {"dtypes", "views"} and len(chosen) > 5
    with pytest.raises(BadInput, match="no program 'nonsense'"):
        catalogue.chosen(found, ["nonsense"])


def test_the_copied_programs_are_those_of_the_kit(tmp_path: Path) -> None:
    copied = catalogue.programs(catalogue.copied(tmp_path))
    assert [each.name for each in copied] == [each.name for each in catalogue.programs()]
    assert all(Path(each.file).parent == tmp_path / "programs" for each in copied)


def test_a_file_that_is_no_python_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def (")
    with pytest.raises(BadInput, match=r"mine\.py cannot be read"):
        catalogue.programs(tmp_path)


@pytest.mark.parametrize(
    ("made", "grade", "answers"),
    [
        (row(), "passed", (True, None, True, None)),
        (row(result=Conformed(report=REPORT, breaks=1)), "passed", (True, True, True, None)),
        (row(result=Conformed(report=REPORT, native=NativeOps(0, 4))), "passed", (True, False, True, None)),
        (row(result=Conformed(report=REPORT, native=NativeOps(1, 4))), "passed", (True, True, True, None)),
        (row(result=Conformed(report=REPORT, native=NativeOps(4, 4))), "falls back", (False, True, None, None)),
        (row(result=Conformed(report=replace(REPORT, verdict="empty"))), "falls back", (False, True, None, None)),
        (
            row(result=failing(Failure(kind="backend", message="m", type=FALLBACK))),
            "falls back",
            (False, True, None, None),
        ),
        (
            row(result=None, failure=Failure(kind="backend", message="m", type=FALLBACK)),
            "falls back",
            (False, True, None, None),
        ),
        (row(result=failing(Failure(kind="backend", message="m"))), "failed", (False, None, None, None)),
        (
            row(result=None, failure=Failure(kind="backend", message="m", type="SIGSEGV")),
            "failed",
            (False, None, None, None),
        ),
        (
            row(result=Conformed(report=replace(REPORT, verdict="failed", outputs=(WRONG,)))),
            "failed",
            (True, None, False, None),
        ),
        (row(result=Conformed(report=replace(REPORT, verdict="waiting"))), "unknown", (None, None, None, None)),
        (row(result=None, failure=Failure(kind="cancelled", message="m")), "unknown", (None, None, None, None)),
    ],
)
def test_the_answers_of_a_program(made: ConformanceRow, grade: str, answers: tuple[bool | None, ...]) -> None:
    assert (made.grade, (made.compiles, made.falls_back, made.agrees, made.slow)) == (grade, answers)


@pytest.mark.parametrize(
    ("eager", "compiled", "p", "slow"), [(1.0, 2.0, 1e-9, True), (2.0, 1.0, 1e-9, False), (1.0, 2.0, 0.5, False)]
)
def test_slow_is_decided_by_significance(eager: float, compiled: float, p: float, slow: bool) -> None:
    made = row(result=Conformed(report=REPORT, eager=latency(eager), compiled=latency(compiled), p=p))
    assert made.slow is slow and made.ratio == pytest.approx(compiled / eager)


def test_what_was_not_run_or_not_judged_is_neither_passed_nor_failed() -> None:
    unknown = row("two", result=Conformed(report=replace(REPORT, verdict="waiting")))
    assert (view.verdict(of(row())), status([of(row())])) == ("ok", 0)
    assert (view.verdict(of(row(), unknown)), status([of(row(), unknown)])) == ("unknown", 3)
    left = replace(of(row()), expected=(row().program, unknown.program))
    assert (view.verdict(left), status([left])) == ("unknown", 3)
    assert "1 not run" in view.summary(left) and "… views:two" in "\n".join(lines(view.view(left)))
    wrong = row("three", result=Conformed(report=replace(REPORT, verdict="failed", outputs=(WRONG,))))
    assert status([of(row(), unknown, wrong)]) == 1


def test_a_backend_that_compiles_nothing_does_not_pass() -> None:
    native = row(result=Conformed(report=replace(REPORT, verdict="empty")))
    assert view.verdict(of(native)) == "unknown" and view.verdict(of(row("two"), native)) == "warning"


def test_a_backend_that_cannot_be_used_is_one_sentence_and_the_others_are_reported() -> None:
    unknown = Conformance(backend="nosuch", problem=Failure(kind="input", message="there is no backend 'nosuch'"))
    assert view.summary(unknown) == "✘ nosuch: there is no backend 'nosuch'"
    assert status([unknown]) == 2 and status([unknown, of(row())]) == 1


def test_an_error_of_torch_is_the_backends_where_the_control_compiles_the_program() -> None:
    made = row(result=failing(Failure(kind="torch", message="no guard", type="AssertionError")))
    assert view.owner(made, of(made)) == "torch"
    assert view.owner(replace(made, control="passed"), of(made)).startswith("the backend b: raised in torch")
    assert view.owner(replace(made, control="failed"), of(made)) == "torch"


def test_text_lists_families_then_each_failure_with_its_reason_and_owner() -> None:
    crash = Failure(kind="backend", type="SIGSEGV", message="the process was killed by SIGSEGV")
    text = "\n".join(lines(view.view(of(row(), row("two", result=None, failure=crash), row("a", "Dtypes")))))
    assert re.search(r"^✘ Views +2 +1 of 2 +unknown +1 of 1, 1 unknown", text, re.MULTILINE), text
    assert "✘ views:two  What it does." in text and "because: the process was killed by SIGSEGV" in text
    assert "owner: the backend b" in text and "idbg diff /kit/views.py:two --backend b" in text


def test_junit_has_a_case_a_program() -> None:
    wrong = row("wrong", result=Conformed(report=replace(REPORT, verdict="failed", outputs=(WRONG,))))
    crash = row("crash", result=None, failure=Failure(kind="backend", type="SIGSEGV", message="killed"))
    unknown = row("unknown", result=Conformed(report=replace(REPORT, verdict="waiting")))
    found = replace(
        of(row(), wrong, crash, unknown), expected=(*(each.program for each in (row(), wrong)), row("left").program)
    )
    root = ElementTree.fromstring(reports.as_junit([found]))
    outcomes = {case.get("name"): [each.tag for each in case] for case in root.iter("testcase")}
    assert outcomes == {
        "views:one": [],
        "views:wrong": ["failure"],
        "views:crash": ["error"],
        "views:unknown": ["skipped"],
        "views:left": ["skipped"],
    }
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "1", "1")


def test_the_page_has_the_same_rows_and_escapes_them() -> None:
    failure = Failure(kind="backend", type="Error", message="<script>alert(1)</script>")
    page = reports.html([of(row(), row("two", result=failing(failure)))]).decode()
    assert "views:two" in page and "Conformance of b" in page
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_json_has_every_row_and_knows_what_is_not_known() -> None:
    found = view.as_json([of(row(), versions={"torch": "2.15.0"})])
    (backend,) = found["backends"]
    assert backend["versions"] == {"torch": "2.15.0"} and backend["summary"]["passed"] == 1
    (made,) = backend["rows"]
    assert (made["compiles"], made["falls_back"], made["agrees"], made["slow"]) == (True, None, True, None)
    assert one_line(made["reason"], 10) == ""
