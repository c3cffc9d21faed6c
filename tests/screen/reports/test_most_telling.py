"""A summary of many findings has each kind of them, and what one rule finds at a line once."""

from dataclasses import replace

from idbg.render.html import links
from idbg.reports.documents import SessionData, html, markdown
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.runs import Run, fold
from idbg.schema.violations import Violation
from idbg.views import diagnostics, findings
from idbg.views.diagnostics import Diagnostic
from tests.harness.recorded import log


def with_pads(count: int) -> Run:
    """A recorded run that breaks its graph and is compiled again, with so many pads beside, each at a line."""
    run = fold(log("breaking")).last
    assert run is not None and run.breaks and run.recompiles
    node = NodeId(GraphId("0/0", "inference"), "relu")
    pads = [
        Violation(rule="alignment", severity="pad", node=node, found=found, wanted="32", file="m.py", line=line + 1)
        for line in range(count)
        for found in ("30", "31")
    ]
    return replace(run, violations=pads)


def test_pads_hide_no_break_and_no_recompile() -> None:
    run = with_pads(200)
    history = fold(log("breaking"))
    history.runs = {run.number: run}
    told = SessionData("s", history)
    others = [each for each in diagnostics.diagnostics(run) if each.kind in ("break", "recompile")]
    table = markdown.render(told).decode().partition("\n\n… and ")[0]
    rows = [line.split("|")[2].split()[0] for line in table.splitlines() if line.startswith("| ")]
    assert rows.count("break") + rows.count("recompile") == len(others) > 2
    at_once = html.render(told).decode().partition("findings more: ")
    assert all(links.spelt(str(("finding", each.kind, each.key))) in at_once[0] for each in others)
    assert at_once[2].partition("<")[0].endswith(" violations")


def test_what_a_rule_finds_at_a_line_is_one_finding_of_all_its_nodes() -> None:
    found = diagnostics.diagnostics(with_pads(3))
    grouped = [each for each in findings.by_line(found) if each.kind == "violation"]
    assert [each.line for each in grouped] == [1, 2, 3]
    assert all(each.count == len(each.nodes) == 2 for each in grouped)
    assert "1 other finding at this line" in grouped[0].message
    assert len([each for each in found if each.kind == "violation"]) == 6, "of which the list itself has all"


def test_a_kind_takes_the_room_that_others_leave() -> None:
    def of(kind: diagnostics.DiagnosticKind, number: int) -> list[Diagnostic]:
        return [
            Diagnostic(kind=kind, level="warning", rule="r", message="m", program="p", key=f"{kind}{place}")
            for place in range(number)
        ]

    found = [*of("violation", 30), *of("break", 2)]
    shown, more = findings.split(found, 10)
    assert shown == [*of("violation", 8), *of("break", 2)] and len(more) == 22
    assert findings.split(found, 40) == (found, []) and findings.split([], 5) == ([], [])
    assert findings.kinds(found) == "30 violations and 2 breaks"
    assert findings.kinds(of("mismatch", 1)) == "1 mismatch"
