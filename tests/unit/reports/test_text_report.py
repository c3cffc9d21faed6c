"""The text report tells the verdict first, and fits a screen."""

from idbg.reports import text
from idbg.schema import events
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.graphs import Graph, GraphId, Node, NodeId, TensorMeta
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import Run
from idbg.schema.violations import Severity, Violation

FORWARD, DYNAMO = GraphId("0/0", "forward"), GraphId("0/0", "dynamo")


def violation(
    node: str,
    line: int,
    *,
    rule: str = "alignment",
    severity: Severity = "reject",
    graph: GraphId = FORWARD,
    fix: str = "pad to 16",
) -> Violation:
    found = f"dim 0 is {line}"
    place = NodeId(graph, node)
    return Violation(
        rule=rule,
        severity=severity,
        node=place,
        found=found,
        wanted="a multiple of 16",
        fix=fix,
        file="m.py",
        line=line,
    )


def told(*log: events.SessionEvent, target: Target | None = None) -> str:
    run = Run(1, Program("m.py"), target or Target(), 0.0)
    for event in log:
        run.apply(event)
    return "\n".join(text.run_report(run))


def ended(verdict: str, failure: Failure | None = None) -> events.RunEnded:
    return events.RunEnded(run=1, verdict=verdict, seconds=2.0, failure=failure)  # type: ignore[arg-type]


def test_a_clean_run_is_told_in_one_line_and_its_counts() -> None:
    node = Node(name="x", op="placeholder", target="x", tensors=(TensorMeta("float32", (2,), (1,), "cpu"),))
    said = told(events.GraphCaptured(run=1, graph=Graph(FORWARD, (node,))), ended("clean"))
    assert said.splitlines() == [
        "✔ no rule broken   m.py   aot · cpu · mock (warn)   2.0 s",
        "  1 graph of 1 frame, 1 node, 0 kernels, 0 graph breaks",
    ]


def test_violations_are_told_by_rule_and_the_users_line() -> None:
    found = (
        violation("a", 3),
        violation("b", 3),
        violation("a", 3, graph=DYNAMO),
        violation("c", 5, rule="pads", severity="pad"),
    )
    said = told(events.ViolationsFound(run=1, violations=found), ended("violations"))
    assert said.splitlines() == [
        "⚠ 4 violations (dynamo 1, forward 3)   m.py   aot · no device yet · mock (warn)   2.0 s",
        "",
        "4 violations (dynamo 1, forward 3) of 2 rules of mock         which nodes  stage            severity  count",
        "✘ alignment  dim 0 is 3, wanted a multiple of 16 → pad to 16                                reject        3",
        "  m.py:3                                                      a, b         forward, dynamo                3",
        "◇ pads  dim 0 is 5, wanted a multiple of 16 → pad to 16                                     pad           1",
        "  m.py:5                                                      c            forward                        1",
    ]


def test_a_thousand_violations_fit_a_screen_and_say_how_many_are_not_shown() -> None:
    found = tuple(violation(f"n{i}", i % 100, fix=f"pad to {i % 50}") for i in range(1000))
    said = told(events.ViolationsFound(run=1, violations=found), ended("violations"))
    assert len(said.splitlines()) < 24
    assert "and 95 more" in said and " → pad to 4" in said and "n4, n104, n204, n304, n404, n504, …" in said


def test_strict_mode_does_not_tell_its_violations_twice() -> None:
    failure = Failure("constraints", "1 violation of the rules of mock:\n  ...")
    events_seen = (events.ViolationsFound(run=1, violations=(violation("a", 3),)), ended("violations", failure))
    assert "of the rules of mock" not in told(*events_seen)
    assert "of the rules of mock" in told(ended("violations", failure))


def test_a_failure_in_torch_with_graphs_says_where_to_see_them_and_get_a_repro() -> None:
    failure = Failure("torch", "InductorError: no", hint="a repro shows it alone")
    captured = events.GraphCaptured(run=1, graph=Graph(FORWARD, ()))
    assert "idbg-tui m.py shows the graphs" in told(captured, ended("failed", failure))
    assert "idbg-tui" not in told(ended("failed", failure))


def test_a_failure_is_told_with_its_hint_its_place_and_the_users_traceback() -> None:
    failure = Failure("user", "ValueError: no", hint="mend it", traceback="Traceback\n  here", file="m.py", line=4)
    lines = told(ended("failed", failure)).splitlines()
    assert lines[0].startswith("✘ failed")
    assert lines[2:] == ["ValueError: no (m.py:4)", "  mend it", "  Traceback", "    here"]


def test_graph_breaks_are_told_with_their_line_and_the_first_line_of_the_reason() -> None:
    said = told(events.GraphBroke(run=1, graph_break=GraphBreak("print called\nlong story", "m.py", 9)), ended("clean"))
    assert "graph break at m.py:9: print called" in said and "long story" not in said


def test_a_run_that_goes_on_says_what_it_does() -> None:
    assert told(events.PhaseChanged(run=1, phase="codegen")).splitlines()[0].endswith("codegen")


def test_an_installed_packages_file_is_told_from_the_package_on() -> None:
    found = Violation(
        rule="r",
        severity="slow",
        node=NodeId(FORWARD, "a"),
        found="f",
        wanted="w",
        file="/usr/lib/python3/site-packages/torchvision/models/resnet.py",
        line=92,
    )
    assert "\n  torchvision/models/resnet.py:92  " in told(events.ViolationsFound(run=1, violations=(found,)))


def test_what_strict_mode_stopped_unseen_names_its_repro() -> None:
    failure = Failure(kind="constraints", message="1 violation", repro="/s/repros/a/repro.py")
    said = told(events.FrameFailed(run=1, frame="0/0", failure=failure), ended("violations"))
    assert "strict mode stopped frame 0/0, and the program went on; repro: /s/repros/a/repro.py" in said
    assert told(ended("violations", failure)).count("repro: /s/repros/a/repro.py") == 1
