"""Violations, comparisons and benchmarks in the page say what the JSON says, and say what was not asked."""

import json

import pytest
from msgspec.structs import replace

from idbg.accelerators.registry import rules_for
from idbg.checking import check as checks
from idbg.format.amounts import column_figure, seconds
from idbg.reports import diff as told_diff
from idbg.reports import text
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections import bench, diff, violations
from idbg.schema import events
from idbg.schema.bench import Rows
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame
from idbg.schema.programs import Target
from idbg.schema.runs import History, Run, fold
from idbg.views.bench import numbers
from idbg.views.broken_rules import by_rule
from idbg.views.tree import Table
from idbg.views.violations import view
from tests.harness.markup import Markup
from tests.harness.recorded import log

HOSTILE = "</script><img src=x onerror=alert(1)>]]>\x1b[31m\udc80\u202e'\"&{{ 7*7 }}"


def told(name: str) -> SessionData:
    return SessionData(name, fold(log(name)))


def run_of(name: str) -> Run:
    run = told(name).history.last
    assert run is not None
    return run


def found(section: object) -> Markup:
    assert section is not None
    parsed = Markup(str(section))
    assert parsed.faults == []
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    return parsed


@pytest.mark.parametrize("name", ["resnet", "attention", "breaking", "mlp_train"])
def test_violations_stand_by_rule_by_line_and_by_module_and_add_up(name: str) -> None:
    run = run_of(name)
    page = found(violations.section(told(name)))
    assert f"{run.violation_count} violations" in page.text
    tables = [block for block in view(run).body if isinstance(block, Table)]
    assert [table.noun for table in tables][:2] == ["rule", "line"]
    for table in tables:
        assert sum(row.cells[-1].value for row in table.rows) == run.violation_count  # type: ignore[misc]
    for rule in by_rule(run.violations):
        fixes = {violation.fix for violation in rule.violations}
        assert rule.name in page.text and all(fix in page.text for fix in fixes)


def test_a_violation_leads_to_its_node_and_its_line() -> None:
    page = found(violations.section(told("resnet")))
    assert "#node:1:0/0:inference::convolution_1" in page.values("href")
    assert any(link.startswith("#line:") and link.endswith("resnet.py:92") for link in page.values("href"))
    assert "layer1.0.conv1" in page.text and " conv1 " in page.text


@pytest.mark.parametrize(("accelerator", "said"), [("tpu", "pads: +"), ("ethos_u55", "runs on the host: ")])
def test_what_a_rule_costs_is_said_with_it(accelerator: str, said: str) -> None:
    history = told("resnet").history
    run = history.runs[1]
    (preset,) = checks.named([accelerator])
    findings = checks.check(run, "aten", [preset]).accelerators[0].findings
    run.target = replace(run.target, accelerator=accelerator, rules=rules_for(Target(accelerator=accelerator))[0])
    run.violations = [violation for each in findings for violation in each.violations()]
    page = found(violations.section(SessionData("", history)))
    assert said in page.text


def test_no_rule_asked_is_not_no_rule_broken() -> None:
    assert "no rule of mock is broken in 3 graphs" in found(violations.section(told("planted"))).text
    nothing = found(violations.section(SessionData("", History()))).text
    assert "Nothing was run" in nothing and "idbg check FILE.py" in nothing
    unasked = [replace(each, checked=False) if isinstance(each, events.RunEnded) else each for each in log("planted")]
    page = found(violations.section(SessionData("", fold(unasked)))).text
    assert "no rule of mock is broken in 3 graphs" in page


@pytest.mark.parametrize("name", ["planted", "wrong_pass"])
def test_the_page_has_the_numbers_of_the_json(name: str) -> None:
    report = run_of(name).diff
    assert report is not None
    page = found(diff.section(told(name)))
    as_json = json.loads(told_diff.to_json(report))
    assert as_json["blame"] in page.text
    for tensor in (*as_json["outputs"], *as_json["gradients"]):
        assert tensor["name"] in page.text and tensor["because"] in page.text
        assert column_figure(tensor["max_abs"]) in page.texts and f"{tensor['elements']:,}" in page.texts
    for kernel in as_json["kernels"]:
        assert kernel["name"] in page.text
        assert kernel["error"] is None or column_figure(kernel["error"]) in page.texts
    for stage in as_json["stages"]:
        assert stage["error"] is None or column_figure(stage["error"]) in page.texts


def test_a_wrong_pass_is_told_by_stage_with_its_node_and_maker() -> None:
    page = found(diff.section(told("wrong_pass")))
    report = run_of("wrong_pass").diff
    assert report is not None and report.first_wrong_stage is not None and report.first_wrong_stage.made_by is not None
    assert report.first_wrong_stage.node in page.texts
    assert report.first_wrong_stage.made_by.name in page.text
    assert "reject" in " ".join(page.values("class")).split(), "the guilty stage stands out"
    assert "right" not in " ".join(page.values("class")).split(), "which is where the page puts a graph"


def test_a_comparison_that_was_not_made_or_not_ended_is_said_to_be_so() -> None:
    page = found(diff.section(told("resnet")))
    assert "numbers were not compared: idbg diff examples/resnet.py" in page.text
    cut = [each for each in log("planted") if not isinstance(each, events.Compared | events.RunEnded)]
    assert "has no verdict: it did not come to its end" in found(diff.section(SessionData("", fold(cut)))).text


def test_every_row_of_a_benchmark_is_told_with_its_spread_and_what_was_not_measured() -> None:
    rows = fold(log("benched")).rows
    page = found(bench.section(told("benched")))
    for row in rows:
        assert numbers(row) in page.texts
        if row.latency_ms is not None:
            assert seconds(row.latency_ms.median / 1e3) in page.texts
            assert f"{len(row.latency_ms.samples)} samples, each" in page.text
        else:
            assert "not measured" in page.texts
    assert "Nothing was measured: idbg bench tests/recordings/planted.py" in found(bench.section(told("planted"))).text


@pytest.mark.parametrize("name", ["planted", "benched", "resnet"])
def test_hostile_names_stay_text(name: str) -> None:
    history = fold([hostile(each) for each in log(name)])
    history.rows = Rows(replace(row, program=HOSTILE, backend=HOSTILE, reason=HOSTILE) for row in history.rows)
    for section in (violations, diff, bench):
        page = found(section.section(SessionData(HOSTILE, history)))
        assert "img" not in page.tags and "script" not in page.tags
        assert "\x1b" not in page.text and "\u202e" not in page.text and "49" not in page.values("href")


def hostile(event: SessionEvent) -> SessionEvent:
    """The event with names, notes and findings that want to be more than text."""
    if isinstance(event, events.RunStarted):
        return replace(event, program=replace(event.program, path=HOSTILE))
    if isinstance(event, events.Compared):
        outputs = tuple(replace(each, name=HOSTILE, note=HOSTILE) for each in event.report.outputs)
        return replace(event, report=replace(event.report, outputs=outputs, notes=(HOSTILE,), test=HOSTILE))
    if isinstance(event, events.ViolationsFound):
        spoilt = [replace(each, found=HOSTILE, fix=HOSTILE, file=HOSTILE) for each in event.violations]
        return replace(event, violations=tuple(spoilt))
    return event


def test_frames_without_a_graph_are_counted_too() -> None:
    run = fold(log("planted")).last
    assert run is not None
    graphs = {graph.frame for graph in run.graphs}
    (line,) = [line for line in text.contents(run) if " of " in line][:1]
    assert len(graphs) == len(run.frames) == 1 and "of 1 frame," in line
    run.frames["1/0"] = Frame("1/0", "left_alone")
    (line,) = [line for line in text.contents(run) if " of " in line][:1]
    assert "of 1 of 2 frames," in line
