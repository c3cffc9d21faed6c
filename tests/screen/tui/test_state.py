"""Is what is shown a fold of what happened, and does nothing jump?"""

import pytest

from idbg.analysis.outline import ModuleHeading
from idbg.schema import events
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg_tui.state import navigation, queries
from idbg_tui.state.state import State
from tests.harness.recorded import INFERENCE, chain, log, state_of

RELU = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["relu"]\n'
DYNAMO = GraphId("0/0", "dynamo")


def started(run: int, rules: str = RELU) -> events.RunStarted:
    return events.RunStarted(run=run, program=Program("m.py"), target=Target(rules=rules), at=100.0 * run)


def captured(run: int, graph: Graph) -> events.GraphCaptured:
    return events.GraphCaptured(run=run, graph=graph)


def ended(run: int, failure: Failure | None = None) -> events.RunEnded:
    return events.RunEnded(run=run, verdict="failed" if failure else "clean", seconds=2.0, failure=failure)


def dynamo(count: int) -> Graph:
    return Graph(DYNAMO, chain(count).nodes)


def running_with(*more: events.SessionEvent) -> State:
    state = State()
    state.apply([started(1), captured(1, dynamo(3)), *more])
    return state


@pytest.mark.parametrize("name", ["resnet", "mlp_train", "attention"])
def test_batches_and_single_events_give_the_same_state(name: str) -> None:
    whole, single = state_of(name), State(live=False)
    for event in log(name):
        single.apply([event])
    assert (single.graph_id, single.selected) == (whole.graph_id, whole.selected)
    assert queries.counts(single) == queries.counts(whole)


def test_the_forward_or_inference_graph_is_shown_once_it_is_there() -> None:
    state = running_with()
    assert state.graph_id == DYNAMO
    state.apply([captured(1, chain(3))])
    assert state.graph_id == INFERENCE


def test_a_graph_that_the_user_chose_stays() -> None:
    state = running_with()
    assert state.choose(NodeId(DYNAMO, "relu_2"))
    state.apply([captured(1, chain(3))])
    assert state.graph_id == DYNAMO and state.selected == NodeId(DYNAMO, "relu_2")


def test_a_new_run_is_shown_when_it_has_the_graph_that_is_on_the_screen() -> None:
    state = running_with(captured(1, chain(3)), ended(1))
    state.choose(NodeId(INFERENCE, "relu_1"))
    state.apply([started(2), captured(2, dynamo(3))])
    assert state.shown is not None and state.shown.number == 1
    state.apply([captured(2, chain(5))])
    assert state.shown.number == 2
    assert state.selected == NodeId(INFERENCE, "relu_1")


def test_nothing_of_a_new_run_is_shown_until_it_has_as_many_graphs_or_has_ended() -> None:
    backward = Graph(GraphId("0/0", "backward"), chain(4).nodes)
    state = running_with(captured(1, chain(3)), captured(1, backward), ended(1))
    state.choose_graph(INFERENCE)
    state.apply([started(2), captured(2, dynamo(3)), captured(2, chain(3))])
    assert queries.counts(state) == {"reject": 7} and state.shown is not None and state.shown.number == 1
    state.apply([captured(2, backward)])
    assert state.shown.number == 2
    state.apply([started(3), captured(3, chain(3))])
    assert state.shown.number == 2
    state.apply([ended(3)])
    assert state.shown.number == 3 and queries.counts(state) == {"reject": 3}


def test_a_cancelled_run_that_has_fewer_graphs_is_not_shown() -> None:
    state = running_with(captured(1, chain(3)), ended(1))
    state.apply([started(2), captured(2, dynamo(3)), ended(2, Failure(kind="cancelled", message="x"))])
    assert state.shown is not None and state.shown.number == 1


def test_a_run_that_fails_before_any_graph_leaves_the_last_one_on_the_screen() -> None:
    state = running_with(captured(1, chain(3)), ended(1))
    state.apply([started(2), ended(2, Failure(kind="user", message="SyntaxError"))])
    assert state.shown is not None and state.shown.number == 1
    assert state.run is not None and state.run.verdict == "failed"


def test_the_first_violation_is_selected_at_first() -> None:
    state = state_of("resnet")
    assert state.selected is not None and queries.violations_of(state, state.selected)


def test_another_stage_selects_the_same_computation() -> None:
    state = state_of("resnet")
    state.choose(NodeId(INFERENCE, "convolution_3"))
    assert navigation.step_stage(state, -1) and state.graph_id == DYNAMO
    node = state.node
    assert node is not None and "conv2d" in node.target
    assert node.line == next(n.line for n in state.shown.graphs[INFERENCE].nodes if n.name == "convolution_3")  # type: ignore[union-attr]


def test_stages_end_at_both_ends() -> None:
    state = state_of("mlp_train")
    while navigation.step_stage(state, 1):
        pass
    assert state.graph_id is not None and state.graph_id.stage == "post_grad"
    while navigation.step_stage(state, -1):
        pass
    assert state.graph_id.stage == "dynamo"


def test_a_chosen_kernel_marks_its_nodes_and_selects_one_of_them() -> None:
    state = state_of("resnet")
    assert state.shown is not None
    kernel = next(kernel for kernel in state.shown.kernels if kernel.source)
    assert navigation.choose_kernel(state, kernel.frame, kernel.part, kernel.name)
    assert state.kernel is kernel
    assert (
        queries.marked_nodes(state)
        and state.selected is not None
        and state.selected.name in queries.marked_nodes(state)
    )


def test_a_users_line_selects_a_node_that_it_made() -> None:
    state = state_of("resnet")
    node = next(node for node in state.graph.nodes if node.name == "convolution_4")  # type: ignore[union-attr]
    assert navigation.choose_line(state, node.file, node.line)
    assert state.node is not None and (state.node.file, state.node.line) == (node.file, node.line)
    assert not navigation.choose_line(state, node.file, 100_000)


def test_counts_are_of_the_shown_level_only() -> None:
    state = state_of("mlp_train")
    assert {graph.id.stage for graph in queries.level(state)} == {"forward", "backward"}
    assert sum(queries.counts(state).values()) == sum(
        len(state.checks.findings(graph)) for graph in queries.level(state)
    )


def test_an_edit_checks_again_and_a_mistake_keeps_the_last_good_rules() -> None:
    state = running_with(captured(1, chain(3)), ended(1))
    assert queries.counts(state) == {"reject": 3}
    state.apply([events.RulesEdited(text=RELU.replace("relu", "tanh"), origin="editor", at=1000.0)])
    assert queries.counts(state) == {}
    state.apply([events.RulesRefused(text="[[", origin="editor", message="not valid TOML", line=1)])
    assert (state.rules.error, state.rules.line, queries.counts(state)) == ("not valid TOML", 1, {})
    assert state.accelerator is not None


def test_a_run_that_waited_with_older_rules_takes_no_edit_back() -> None:
    state = running_with(captured(1, chain(3)), ended(1))
    assert queries.counts(state) == {"reject": 3}
    state.apply([events.RulesEdited(text=RELU.replace("relu", "tanh"), origin="editor", at=1000.0)])
    state.apply([started(2, rules=RELU)])
    assert queries.counts(state) == {} and state.rules.text != RELU


def test_typical_is_the_time_of_the_last_run_for_the_same_backend() -> None:
    state = running_with(ended(1))
    assert queries.usual_seconds(state) is None
    state.apply([started(2)])
    assert queries.usual_seconds(state) == 2.0


def test_jumps_are_returned_from() -> None:
    state = state_of("attention")
    first = state.selected
    assert state.walk("user", 0)
    assert state.selected != first
    assert state.step_jump(back=True) and state.selected == first
    assert state.step_jump(back=False) and state.selected != first


def test_a_node_that_is_not_there_is_not_chosen() -> None:
    state = state_of("attention")
    before = state.selected
    assert not state.choose(NodeId(INFERENCE, "nowhere"))
    assert not state.choose(NodeId(GraphId("9/9", "dynamo"), "add"))
    assert state.selected == before


def test_the_next_violation_may_be_in_another_graph() -> None:
    state = state_of("mlp_train")
    assert state.graph_id is not None and state.graph_id.stage == "forward"
    assert navigation.step_broken(state, 1)
    assert state.graph_id.stage == "backward"
    assert state.selected is not None and queries.violations_of(state, state.selected)


def test_a_module_that_is_selected_is_forgotten_with_its_graph() -> None:
    heading = ModuleHeading("m", "m", "", 0, 0, 3, -1)
    state = running_with()
    assert state.choose(state.graph.node_id("relu_0"), heading=heading) and queries.about_module(state) is not None
    state.apply([captured(1, Graph(INFERENCE, chain(2).nodes))])
    assert state.heading is heading
    state.apply([captured(1, dynamo(1))])
    assert state.heading is None and queries.about_module(state) is None
    assert state.choose(state.graph.node_id("relu_0"), heading=heading)
    state.apply([ended(1), started(2), captured(2, dynamo(2)), ended(2)])
    assert state.heading is None
