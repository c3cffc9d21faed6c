"""In a notebook a session, a run, a comparison and a benchmark draw themselves, and change nothing around them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from idbg.api import Session
from idbg.render.html.templating import static
from idbg.reports import notebook
from idbg.reports.diff import ReadableReport
from idbg.schema import html_repr
from idbg.schema.bench import Rows
from idbg.schema.kernel_times import KernelTime, KernelTimes, Peaks
from idbg.schema.runs import History, Run, fold
from tests.harness.markup import Markup
from tests.harness.recorded import RECORDINGS, log

ROOT = Path(__file__).parents[3]
HOSTILE = '</style></script><img src=x onerror=alert(1)>]]>\x1b[31m\udc80\u202e\'"& href="#x" id="y"'


def run_of(name: str) -> Run:
    run = fold(log(name)).last
    assert run is not None
    return run


def drawing(record: object) -> Markup:
    """What the record draws: well-formed, of one element, and nothing in it that reaches out of it."""
    html = record._repr_html_()  # type: ignore[attr-defined]
    assert html is not None
    parsed = Markup(html)
    assert parsed.faults == []
    assert html.startswith('<div class="idbg-notebook">') and html.rstrip().endswith("</div>")
    assert not {"script", "img", "link", "iframe"} & {*parsed.tags} and parsed.tags.count("style") == 1
    assert not {"id", "href", "style", "onclick", "data-find"} & {name for name, _ in parsed.attributes}
    return parsed


def test_a_saved_session_draws_its_runs_and_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "resnet"
    folder.mkdir()
    shutil.copy(RECORDINGS / "resnet.jsonl", folder / "events.jsonl")
    with Session.open(folder) as session:
        page = drawing(session)
        assert "session resnet" in page.texts and f"idbg report {folder} -o report.html" in page.texts
        assert "37 violations (dynamo 37, inference 20) of 1 rule of mock" in page.text
        assert drawing(session.history.runs[1]).text.count("unsupported_ops") > 1


@pytest.mark.parametrize("name", ["breaking", "planted", "switched", "benched", "mlp_train_cuda"])
def test_a_run_draws_its_verdict_and_what_it_has(name: str) -> None:
    run = run_of(name)
    page = drawing(run)
    assert run.program.label in page.text
    assert ("Violations" in page.texts) == bool(run.violations)
    assert ("Numbers (KernelDiff)" in page.texts) == (run.diff is not None)


def test_a_run_that_waits_and_a_session_without_one_say_so() -> None:
    begun = fold(log("planted")[:4])
    assert begun.last is not None and begun.last.verdict == "waiting"
    assert "…" in drawing(begun.last).text
    assert "Nothing was run" in drawing(History()).text


def test_a_comparison_draws_its_tables_and_charts_by_itself() -> None:
    report = run_of("planted").diff
    assert report is not None and report.culprit is not None
    page = drawing(report)
    assert page.tags.count("svg") >= 3 and report.culprit.name in page.text
    readable = drawing(ReadableReport.of(report))
    assert readable.texts == page.texts
    unasked = drawing(ReadableReport.of(replace(report, kernels=(), first_bad_kernel=None)))
    assert "`KernelDiff(..., per_kernel=True)` says which stage" in unasked.text


def test_a_benchmark_draws_all_its_rows_and_a_row_itself() -> None:
    rows = fold(log("benched")).rows
    assert isinstance(rows, Rows) and rows == list(rows)
    page = drawing(rows)
    assert all(row.backend in page.texts for row in rows) and page.tags.count("svg") == 3
    assert rows[1].backend in drawing(rows[1]).texts
    assert "tvm" not in drawing(rows[1]).texts


def test_kernel_times_draw_their_bars() -> None:
    kernel = KernelTime(
        frame="0/0", part="inference", name="cpp_fused_relu_0", kind="cpp", samples_us=(3.0, 4.0, 5.0), share=0.5
    )
    peaks = Peaks(device="cpu", torch="2.14")
    times = KernelTimes(kernels=(kernel,), samples_us=(8.0, 8.0, 8.0), hooked_samples_us=(9.0, 9.0, 9.0), peaks=peaks)
    page = drawing(times)
    assert "cpp_fused_relu_0" in page.text and "4 µs" in page.texts


def test_hostile_names_stay_text() -> None:
    rows = Rows(replace(row, program=HOSTILE, backend=HOSTILE, reason=HOSTILE) for row in fold(log("benched")).rows)
    text = drawing(rows).text
    assert 'href="#x" id="y"' in text and "\x1b" not in text and "\u202e" not in text
    run = run_of("breaking")
    run.program = replace(run.program, path=HOSTILE)
    run.violations = [replace(each, found=HOSTILE, fix=HOSTILE, file=HOSTILE) for each in run.violations]
    assert "<img src=x onerror=alert(1)>" in drawing(run).text


def test_no_rule_of_the_style_reaches_beyond_what_is_ours() -> None:
    rules = re.findall(r"([^{}]+)\{", static("notebook.css"))
    assert rules and all(".idbg-notebook" in each for rule in rules for each in rule.split(","))
    assert "@import" not in static("notebook.css") and "url(" not in static("notebook.css")


def test_what_nobody_knows_to_draw_is_left_to_its_repr() -> None:
    assert html_repr.html_of(object()) is None
    code = "from idbg.schema.runs import History; assert History()._repr_html_() is None"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}/core:{ROOT}"})


def test_drawing_loads_no_template_before_it_is_asked_to() -> None:
    code = (
        "import sys; from idbg.api import Session; from idbg.schema.runs import History;"
        "assert 'jinja2' not in sys.modules; assert 'idbg-notebook' in History()._repr_html_()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}/core:{ROOT}"})


def test_a_record_still_is_the_data_that_it_was() -> None:
    report = run_of("planted").diff
    assert report is not None and "_repr_html_" not in asdict(report)
    assert notebook.of_diff(report) == report._repr_html_()
