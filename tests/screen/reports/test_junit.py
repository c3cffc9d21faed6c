"""A session as JUnit XML is read back, has what CIs take, and has a case for each thing that was looked at."""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from idbg.reports.documents import SessionData, junit
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import History, fold
from idbg.schema.violations import Severity, Violation
from tests.harness.hostile import LONG, TEXT, hostile
from tests.harness.recorded import RECORDINGS, log

# What Jenkins' xunit plug-in (junit-10.xsd) takes: tag -> attributes, those of `_` must be there; and what is in it.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name_", "tests_", "failures_", "errors_", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name_", "value_"}, set()),
    "testcase": (
        {"name_", "classname", "time", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "skipped": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "failure": ({"type", "message"}, set()),
    "system-out": (set(), set()),
    "system-err": (set(), set()),
}
RULES = """
[[rules]]
kind = "dtype"
allowed = ["float32"]

[[rules]]
kind = "alignment"
name = "wide"
multiple = 64
dims = "last"
severity = "pad"

[[rules]]
kind = "layout"
enabled = false

[[rules]]
kind = "rank"
max = 4
stages = ["post_grad"]
"""


def rendered(history: History, name: str = "s") -> Element:
    root = ElementTree.fromstring(junit.render(SessionData(name, history)))
    for element in root.iter():
        allowed, inside = ALLOWED[element.tag]
        assert set(element.attrib) <= {each.rstrip("_") for each in allowed}
        assert {each[:-1] for each in allowed if each.endswith("_")} <= set(element.attrib)
        assert {child.tag for child in element} <= inside
        assert re.fullmatch(r"(\d+(\.\d+)?)?", element.get("time", ""))
    for suite in root.iter("testsuite"):
        cases = suite.findall("testcase")
        assert int(suite.attrib["tests"]) == len(cases)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[count]) == len(list(suite.iter(tag)))
    return root


def cases(history: History) -> dict[str, str]:
    """Each case's name, and "failure", "error", "skipped", "system-out" or "" for what is in it."""
    [suite] = rendered(history)
    return {case.get("name"): "".join(child.tag for child in case) for case in suite.iter("testcase")}


def run(*violations: Violation, failure: Failure | None = None, checked: bool = True, ended: bool = True) -> History:
    graph = Graph(GraphId("0/0", "inference"), ())
    told: list[SessionEvent] = [
        events.RunStarted(
            run=1, program=Program("nets/model.py", "net"), target=Target(accelerator="a/npu.toml", rules=RULES)
        ),
        events.GraphCaptured(run=1, graph=graph),
        events.ViolationsFound(run=1, violations=violations),
    ]
    if ended:
        told.append(events.RunEnded(run=1, verdict="clean", seconds=2.5, failure=failure, checked=checked))
    return fold(told)


def violation(rule: str, severity: Severity = "reject") -> Violation:
    node = NodeId(GraphId("0/0", "inference"), "relu")
    return Violation(rule=rule, severity=severity, node=node, found="f", wanted="w", fix="x", file="nets/m.py", line=3)


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.jsonl")))
def test_every_recorded_session_is_read_back(name: str) -> None:
    assert len(rendered(fold(log(name)))) > 0


def test_what_was_looked_at_passes_and_what_was_not_is_skipped() -> None:
    assert cases(run()) == {
        "compiles and runs": "",
        "graphs do not break": "skipped",  # no frame was seen
        "nothing is compiled again": "skipped",
        "numbers agree": "skipped",
        "rule dtype of npu": "",
        "rule wide of npu": "",
        "rule layout of npu": "skipped",
        "rule rank of npu": "skipped",
        "rule unknown of npu": "",
    }


def test_a_rule_fails_by_what_rejects_and_tells_of_what_costs() -> None:
    found = cases(run(violation("dtype"), violation("wide", "pad"), violation("gone")))
    assert found["rule dtype of npu"] == "failure"
    assert found["rule wide of npu"] == "system-out"
    assert found["rule gone of npu"] == "failure"
    [case] = [case for case in rendered(run(violation("dtype"))).iter("testcase") if case.find("failure") is not None]
    assert case.get("classname") == "nets.model.net"
    assert case.find("failure").text == "nets/m.py:3: error: f, wanted w (relu)\n    x"


def test_a_program_that_fails_is_an_error_and_no_failure_of_a_rule() -> None:
    found = cases(run(failure=Failure("user", "it raised", type="ValueError")))
    assert found["compiles and runs"] == "error"
    assert [name for name, inside in found.items() if inside == "failure"] == []
    assert "" not in found.values()  # what was not seen is not green
    stopped = cases(run(violation("dtype"), failure=Failure("constraints", "1 violation")))
    assert stopped["rule dtype of npu"] == "failure"
    assert stopped["rule wide of npu"] == stopped["graphs do not break"] == "skipped"


def test_a_run_that_has_not_ended_passes_nothing() -> None:
    assert "" not in cases(run(ended=False)).values()
    assert "" not in cases(run(failure=Failure("cancelled", "cancelled"))).values()


def test_rules_that_nobody_asked_are_skipped() -> None:
    found = cases(run(checked=False))
    assert {inside for name, inside in found.items() if name.startswith("rule ")} == {"skipped"}


def test_breaks_recompiles_and_numbers_are_cases() -> None:
    found = cases(fold(log("breaking")))
    assert found["graphs do not break"] == found["nothing is compiled again"] == "system-out"
    assert cases(fold(log("wrong_pass")))["numbers agree with eager's"] == "failure"


@pytest.mark.parametrize("text", [TEXT, LONG], ids=["breaking out", "long"])
def test_hostile_text_stays_text(text: str) -> None:
    written = junit.render(SessionData(text, hostile(text)))
    assert len(written) < 200_000
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\ufffe]", written.decode("utf-8"))
    assert b"]]>" not in written
    assert b"<b" not in written
    [suite] = rendered(hostile(text), text)
    assert suite.find("system-out").text.endswith(text[-5:].encode("unicode_escape").decode())


def test_a_session_without_runs_is_an_empty_file_of_tests() -> None:
    root = rendered(History())
    assert (root.tag, root.get("tests"), len(root)) == ("testsuites", "0", 0)


def test_a_session_that_is_not_whole_is_an_error() -> None:
    history = run()
    history.missing.append("the log is not whole")
    assert rendered(history).get("errors") == "1"
    assert [suite.get("errors") for suite in rendered(history)] == ["0", "1"]
