"""Is nothing on the screen green beside what is red, and does each part say of what it speaks?"""

from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators import registry
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.violations import Violation
from idbg_tui.panes.findings.pane import FindingsPane
from idbg_tui.state import queries, sentences
from idbg_tui.state.state import State
from idbg_tui.status_bar.header import header
from tests.harness.recorded import app_of, chain, log, state_of
from tests.harness.screen import bar, settle

DENY = 'kind = "unsupported_ops"\nseverity = "reject"\ndeny = ["relu", "linear"]\nstages = ["dynamo"]\n'
IN_DYNAMO = f'name = "d"\n[[rules]]\n{DENY}'
NONE = 'name = "none"\n[[rules]]\nkind = "unsupported_ops"\nseverity = "reject"\ndeny = ["no_such_op"]\n'
DYNAMO = GraphId("0/0", "dynamo")
REFUSED = Failure("constraints", "2 violations of the rules of d:\n", type="ConstraintViolation")
STARTED = events.RunStarted(run=1, program=Program("m.py"), target=Target(rules=IN_DYNAMO, strict=True))
BROKEN = Violation(rule="unsupported_ops", severity="reject", node=NodeId(DYNAMO, "relu_0"), found="f", wanted="w")
TWO_GRAPHS = (
    events.GraphCaptured(run=1, graph=Graph(DYNAMO, chain(2).nodes)),
    events.GraphCaptured(run=1, graph=chain(2)),
)


def words(pieces: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in pieces)


def stopped() -> State:
    """Strict rules have refused the Dynamo graph; the inference graph, which is shown, breaks none."""
    state = State()
    found = events.ViolationsFound(run=1, violations=(BROKEN, BROKEN))
    state.apply(
        [STARTED, *TWO_GRAPHS, found, events.RunEnded(run=1, verdict="violations", seconds=1.0, failure=REFUSED)]
    )
    assert state.graph_id is not None and state.graph_id.stage == "inference"
    return state


def ended(*told: SessionEvent, rules: str = NONE, **end: object) -> State:
    state = State()
    started = events.RunStarted(run=1, program=Program("m.py"), target=Target(rules=rules))
    state.apply([started, *TWO_GRAPHS, *told, events.RunEnded(run=1, verdict="clean", seconds=1.0, **end)])  # type: ignore[arg-type]
    return state


def green(state: State) -> list[str]:
    left, right = header(state, 200)
    return [text for text, style in (*left, *right) if "success" in style]


def test_a_stage_without_violations_says_where_they_are_and_shows_no_green() -> None:
    state = stopped()
    left, right = header(state, 200)
    assert "inference no rule broken · dynamo ✘ 2 reject" in words(left)
    assert words(right).startswith("✘ stopped by the rules")
    assert green(state) == []
    assert sentences.other_levels(state) == "dynamo: 2 rejected"


def test_what_is_found_in_a_graph_that_torch_only_prints_is_not_in_the_runs_number_and_says_so() -> None:
    state = state_of("mlp_train")
    state.apply([events.RulesEdited(text=NONE.replace("no_such_op", "mul"), origin="editor")])
    run = state.shown
    assert run is not None
    joint = next(graph for graph in run.graphs if graph.stage == "joint")
    for graph, counted in ((joint, False), (GraphId(joint.frame, "forward"), True)):
        state.choose_graph(graph)
        left, _ = header(state, 300)
        assert sum(queries.counts(state).values()) > 0
        assert ("(not counted)" in words(left)) is not counted


def test_a_clean_run_of_clean_stages_is_green_once_and_again() -> None:
    assert green(ended()) == ["✔ no rule broken", "✔ no rule broken"]


def test_without_an_accelerator_nothing_is_said_of_rules() -> None:
    left, _ = header(ended(rules=registry.NO_RULES), 200)
    assert "rule" not in words(left) and "inference" in words(left)


def test_what_limits_all_captures_is_in_the_header() -> None:
    state = ended()
    started = events.WorkerStarted(pid=1, torch="9.9", python="3", devices=(), seconds=0.0)
    for captures, words_ in (("trace", "torch's trace alone"), ("untried", "untried torch"), ("all", "")):
        state.apply([replace(started, captures=captures)])
        for width in (300, 120):
            assert words_ in words(header(state, width)[0])
    assert "torch" not in words(header(state, 300)[0])


def test_nothing_is_green_beside_a_compile_that_failed_unseen() -> None:
    swallowed = events.FrameFailed(run=1, frame="0/0", failure=Failure("torch", "no such file", type="ImportError"))
    state = ended(swallowed)
    assert green(state) == []
    assert "1 frame did not compile" in words(header(state, 200)[1])


def test_nothing_is_green_while_a_run_goes_on() -> None:
    state = ended()
    state.apply([events.RunStarted(run=2, program=Program("m.py"), target=Target(rules=NONE))])
    assert green(state) == []


def test_a_backend_that_asks_no_rules_is_not_called_clean() -> None:
    state = ended(rules=IN_DYNAMO, checked=False)
    assert words(header(state, 200)[1]).startswith("✔ compiled, no rules checked")


def test_after_an_edit_the_runs_verdict_is_said_to_be_of_the_rules_before() -> None:
    state = ended()
    state.apply([events.RulesEdited(text=IN_DYNAMO, origin="editor")])
    left, right = header(state, 200)
    assert "dynamo ✘ 2 reject" in words(left)
    assert words(right).startswith("by the rules before the edit: ✔ no rule broken") and green(state) == []
    assert words(header(state, 60)[1]) == "old rules: ✔"


def test_a_comment_is_no_edit_of_the_rules() -> None:
    state = ended()
    state.apply([events.RulesEdited(text=f"# a comment\n{NONE}", origin="editor")])
    assert green(state) == ["✔ no rule broken", "✔ no rule broken"]


def test_rules_that_were_relaxed_until_nothing_breaks_them_are_green_under_the_old_verdict() -> None:
    state = state_of("resnet")
    state.apply([events.RulesEdited(text=NONE, origin="editor")])
    left, right = header(state, 200)
    assert "✔ no rule broken" in words(left) and "before the edit: ⚠ 37 violations" in words(right)


async def test_the_panes_of_one_stage_say_what_another_breaks(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        app.state.apply([events.RulesEdited(text=IN_DYNAMO, origin="editor")])
        app.show()
        pane = app.body.panes["findings"]
        assert isinstance(pane, FindingsPane)
        pane._forget_gone()
        await settle(pilot)
        told = pane.lines.line(0).text
        assert "forward + backward: no rule of d is broken · dynamo: 2 rejected: v goes there" in told
        assert pane.mark == "0 here" and "✔" not in (app.query_one("#tabs").border_title or "")
        await pilot.press("8", "right_square_bracket", "right_square_bracket")
        await settle(pilot)
        relax = app.body.panes["rules"].relax  # type: ignore[attr-defined]
        assert "dynamo: 2 rejected" in relax.empty and "nothing is rejected" in relax.empty
        assert "✔" not in bar(app, "header")


def test_no_recording_shows_a_green_verdict_that_its_events_deny() -> None:
    for name in ("attention", "mlp_train", "planted", "resnet", "benched"):
        assert log(name)
        state = state_of(name)
        run = state.run
        assert run is not None
        if run.violations or (run.diff is not None and not run.diff.passed):
            assert "✔ clean" not in words(header(state, 200)[1]), name
