"""Does the node pane tell everything about the selected node, and go where its lines say?"""

from pathlib import Path

import pytest

from idbg.analysis.outline import ModuleHeading
from idbg.format.amounts import figure
from idbg.schema.events import GraphCaptured, RulesEdited, RunStarted
from idbg.schema.graphs import Graph, Node, Sym, TensorMeta
from idbg.schema.programs import Program, Target
from idbg.views import node as view
from idbg_tui.messages import CopyRequest, EditorRequest, KernelChosen, NodeChosen
from idbg_tui.panes.node.pane import NodePane
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from tests.harness.node_facts import facts
from tests.harness.pane_host import DYNAMO, INFERENCE, POST_GRAD, Host, follow_choices, make_state, write_model
from tests.harness.recorded import count, state_of, under
from tests.harness.rule_texts import FALL, PAD

STRICTER = """
[[rules]]
kind = "alignment"
multiple = 16
severity = "pad"
source = "https://hardware.example/alignment"
"""


@pytest.fixture
def state(tmp_path: Path) -> State:
    return make_state(write_model(tmp_path), node="mm")


def told(state: State) -> dict[str, list[str]]:
    """Label -> its lines."""
    found: dict[str, list[str]] = {}
    label = ""
    for own, text, _ in facts(state):
        label = own or label
        found.setdefault(label, []).append(text)
    return found


def test_the_node_is_told_whole(state: State) -> None:
    found = told(state)
    assert found["op"] == ["aten.mm.default · call_function · 0/0 inference"]
    assert found["value"] == ["f32[8,7]  224 B  stride 7,1  cpu"]
    assert found["from"] == ["model.py:5  y = x @ w"]
    assert found["module"] == ["layer.proj  Linear"]
    assert found["inputs"] == ["arg0_1  f32[8,10]", "arg1_1  f32[10,7]"]
    assert found["users"] == ["relu  f32[8,7]"]
    assert found["args"] == ["(arg0_1, arg1_1)"]
    assert found["kernels"][0].startswith("extern_kernels.mm · extern · wrapper line ")
    assert found["stages"] == [
        "dynamo matmul → [inference mm] → post_grad mm → extern_kernels.mm",
    ]
    assert found["also"] == ["dynamo · matmul", "post_grad (inference) · mm"]


def test_each_violation_is_told_with_what_was_found_wanted_and_where_the_rule_comes_from(state: State) -> None:
    state.apply([RulesEdited(text=STRICTER, origin="editor")])
    assert told(state)["◇ pad"] == [
        "alignment: dim 0 is 8, dim 1 is 7, wanted a multiple of 16",
        "→ pad dim 0 to 16, dim 1 to 16: +357 % bytes",
        "source https://hardware.example/alignment",
    ]


def test_a_node_is_followed_through_the_stages_and_where_it_is_no_more_the_strip_says_so() -> None:
    state = state_of("attention")
    graph = state.graph
    assert graph is not None
    for name in ("var_mean", "view_1", "ne_scalar"):
        assert state.choose(graph.node_id(name))
        found = told(state)
        (strip,) = found["stages"]
        assert strip.startswith("dynamo ") and f"[inference {state.node.name}]" in strip
        parts = strip.split(" → ")
        assert [part.split()[0].strip("[") for part in parts[:3]] == ["dynamo", "inference", "post_grad"]
        assert (parts[3] == "no kernel") == ("kernels" not in found)
        row = next(fact.row for fact in facts(state) if fact.label == "stages")
        assert row.refs.nodes[0].graph.stage == "post_grad" or "post_grad none" in strip


def test_a_module_is_a_thing_of_its_own_until_a_node_is_chosen(state: State) -> None:
    state.apply([RulesEdited(text=STRICTER, origin="editor")])
    count(state)
    graph, shown = state.graph, state.shown
    assert graph is not None and shown is not None
    last = len(graph.nodes)
    state.choose(graph.node_id("mm"), heading=ModuleHeading("layer", "layer", "Block", 0, 0, last, -1))
    found = told(state)
    assert found["module"] == ["layer · Block · 0/0 inference"]
    assert found["nodes"][0].startswith(f"{last} · ")
    pads = sum(len(state.checks.findings(graph).broken_at(index)) for index in range(last))
    assert found["◇ pad"] == [f"{pads} violations", f"alignment  {pads}, first arg0_1"]
    launched = {call.line for kernel in shown.kernels for call in kernel.calls}
    assert found["kernels"][0] == f"{len(shown.kernels)} kernels · {len(launched)} launches"
    assert {one.name for one in shown.kernels} == set(found["kernels"][1:])
    assert found["time"] == ["not measured: R times each kernel"]
    assert found["error"] == ["not compared: D compares each kernel"]
    peak = max(state.costs.profile(graph).live_bytes)
    assert f"{peak} B live while it runs; the graph's peak" in found["memory"][0]
    assert "op" not in found and "users" not in found
    state.choose(graph.node_id("mm"))
    assert facts(state)[0][0] == "op"


def test_a_module_has_what_crosses_its_border_and_its_modules(state: State) -> None:
    graph = state.graph
    assert graph is not None
    first = [node.name for node in graph.nodes].index("relu")
    heading = ModuleHeading("layer", "layer", "", 0, first, first + 1, -1)
    state.choose(graph.node_id("relu"), heading=heading)
    found = told(state)
    assert found["reads"] == ["mm  f32[8,7] · 224 B"]
    assert found["returns"] == ["relu  f32[8,7] · 224 B"]
    rows = {fact.label or fact.text: fact.row for fact in facts(state)}
    assert [node.name for node in rows["reads"].refs.nodes] == ["mm"] and rows["reads"].opens == "node"


def test_a_module_that_is_alike_has_each_node_that_differs_beside_that_of_the_model(state: State) -> None:
    graph = state.graph
    assert graph is not None
    at = {node.name: index for index, node in enumerate(graph.nodes)}
    here, model = at["relu"], at["mm"]
    alike = ModuleHeading("b", "b", "", 0, here, here + 1, -1, "a", model=model, differing=(here,), alike=1)
    state.choose(graph.node_id("relu"), heading=alike)
    found = told(state)
    assert found["alike"] == ["1 module, each the same operators as a, but for these nodes"]
    assert found["differ"] == ["relu  f32[8,7] stride (7, 1); mm in a: f32[8,7] stride (7, 1)"]


def test_a_module_adds_up_the_times_and_errors_of_its_kernels() -> None:
    state = state_of("planted")
    graph = state.graph
    assert graph is not None and state.shown is not None
    whole = ModuleHeading("net", "net", "", 0, 0, len(graph.nodes), -1)
    state.choose(graph.node_id(graph.nodes[0].name), heading=whole)
    about = queries.about_module(state)
    assert about is not None and about.report is not None
    worst = max(each.error.error or 0 for each in about.launches if each.error is not None)
    assert f"{figure(worst)} of a kernel's RMS" in told(state)["error"][0]


def test_a_symbolic_size_has_its_hint_and_range(state: State) -> None:
    state.choose(state.shown.graphs[DYNAMO].node_id("l_x_"))
    found = told(state)
    assert found["sizes"] == ["s0 · is 10 here · guards allow 2 <= s0 <= 64"]
    assert found["value"] == ["f32[8,s0]  320 B at the hints  stride 1*s0,1  cpu"]


def test_a_size_without_a_hint_gives_no_bytes() -> None:
    unknown = TensorMeta("float32", (Sym("u0"),), (1,), "cpu")
    assert view.value_words(unknown) == "f32[u0]  size not known  stride 1  cpu"


def test_a_node_without_tensors_and_users_says_so(state: State) -> None:
    state.choose(state.graph.node_id("output"))
    found = told(state)
    assert found["value"] == ["no tensor is known for it"]
    assert found["users"] == ["none"]


async def pressed(state: State, *keys: str) -> Host:
    app = Host(NodePane(), state, follow_choices)
    async with app.run_test(size=(70, 12)) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
    return app


async def test_enter_on_an_input_goes_there_as_a_jump(state: State) -> None:
    app = await pressed(state, *"jjjjjjj", "enter")
    assert [(message.node.name, message.jump) for message in app.of(NodeChosen)] == [("arg1_1", True)]


async def test_enter_on_another_stage_a_kernel_and_the_users_line_goes_there(state: State) -> None:
    app = await pressed(state, "G", "enter")
    assert [message.node.graph for message in app.of(NodeChosen)] == [POST_GRAD]
    app = await pressed(make_state(state.node.file, node="mm"), "G", "k", "k", "enter")
    assert [message.name for message in app.of(KernelChosen)] == ["extern_kernels.mm"]
    app = await pressed(make_state(state.node.file, node="mm"), "j", "j", "enter")
    assert [message.line for message in app.of(EditorRequest)] == [5]


async def test_a_recheck_keeps_the_cursor_and_another_node_starts_at_its_top(state: State) -> None:
    pane = NodePane()
    app = Host(pane, state)
    async with app.run_test(size=(70, 8)) as pilot:
        await pilot.pause()
        await pilot.press("j", "j", "j")
        on = pane.lines.chosen
        assert on is not None and pane.lines.cursor == 3
        state.apply([RulesEdited(text=STRICTER, origin="editor")])
        pane.show(state)
        await pilot.pause()
        lines = pane.query_one(Lines)
        assert pane.lines.chosen is not None and pane.lines.chosen.key == on.key and lines.cursor > 3
        assert "◇" in pane.heading().plain
        state.choose(state.shown.graphs[INFERENCE].node_id("relu"))
        pane.show(state)
        await pilot.pause()
        assert lines.cursor == 0


async def test_a_long_text_is_wrapped_and_lost_nowhere(state: State) -> None:
    pane = NodePane()
    app = Host(pane, state)
    async with app.run_test(size=(36, 30)) as pilot:
        await pilot.pause()
        lines = pane.query_one(Lines)
        shown = "".join(lines.render_line(y).text[12:].rstrip() + " " for y in range(lines.row_count))
        assert "aten.mm.default · call_function · 0/0 inference" in " ".join(shown.split())


async def test_without_a_node_the_pane_says_what_would_fill_it() -> None:
    pane = NodePane()
    app = Host(pane, State())
    async with app.run_test(size=(80, 8)) as pilot:
        await pilot.pause()
        assert "no node is selected" in pane.query_one(Lines).render_line(0).text
        await pilot.press("j", "y")
        assert app.of(CopyRequest) == [] and app.of(NodeChosen) == []


async def test_y_copies_the_fact_under_the_cursor_and_Y_all_of_them(state: State) -> None:
    app = await pressed(state, "y", "Y")
    one, everything = (message.text for message in app.of(CopyRequest))
    assert one == "aten.mm.default · call_function · 0/0 inference"
    assert everything.lstrip().startswith("op         aten.mm.default") and len(everything.split("\n")) > 4


async def test_a_text_is_found_in_the_facts(state: State) -> None:
    app = await pressed(state, "slash", *"inputs", "enter", "enter")
    assert [message.node.name for message in app.of(NodeChosen)] == ["arg0_1"]


async def test_while_it_compiles_nobody_is_told_to_compile() -> None:
    state, pane = State(), NodePane()
    state.apply([RunStarted(run=1, program=Program("m.py"), target=Target())])
    async with Host(pane, state).run_test(size=(90, 8)) as pilot:
        await pilot.pause()
        said = pane.query_one(Lines).render_line(0).text
    assert said.startswith(" no node is selected: nothing captured yet")
    assert "r compiles" not in said


def costed(name: str, node: str, rules: str) -> dict[str, list[str]]:
    state = under(name, rules)
    assert state.graph is not None and state.choose(state.graph.node_id(node))
    return told(state)


def test_a_padded_node_tells_its_shape_and_what_it_wastes() -> None:
    found = costed("resnet", "addmm", PAD)
    assert found["padded"] == ["f32[1,1008]"]
    assert found["wastes"][0].startswith("+0.8 % bytes (32 B), +") and found["wastes"][0].endswith("of this node")
    assert "padded" not in costed("resnet", "addmm", PAD.replace("24", "8"))


def test_a_node_tells_its_partition_and_what_crosses() -> None:
    found = costed("resnet", "add_1", FALL)
    assert found["runs"][0].startswith("in partition 1 of 18 · ") and found["runs"][0].endswith("convolution to add_1")
    assert found["crosses"] == ["its value, 3.1 MiB, goes to the host"]
    found = costed("resnet", "relu", FALL)
    assert found["runs"] == ["on the host, beside 18 partitions"]
    assert found["crosses"] == ["add_1  3.1 MiB from partition 1", "its value, 3.1 MiB, goes to partition 2"]


def test_enter_on_what_crosses_goes_to_it() -> None:
    state = under("resnet", FALL)
    assert state.graph is not None and state.choose(state.graph.node_id("relu"))
    crossing = next(row for label, _, row in facts(state) if label == "crosses")
    assert crossing.refs.nodes == (state.graph.node_id("add_1"),) and crossing.opens == "node"


def test_a_node_tells_the_memory_in_use_while_it_runs_and_where_the_peak_is() -> None:
    state = under("resnet", PAD)
    assert queries.peak(state) is not None and state.graph is not None
    profile = queries.peak(state)[1]
    assert costed("resnet", "addmm", PAD)["memory"][0].endswith(f"; peak 50.8 MiB at {profile.peak_at}")
    assert costed("resnet", profile.peak_at, PAD)["memory"] == [
        "50.8 MiB live while it runs: the peak (M lists what is alive)"
    ]


def test_memory_that_was_not_counted_is_not_told(state: State) -> None:
    assert "memory" not in told(state)


def test_the_severest_violation_is_told_first_and_a_source_with_its_version(state: State) -> None:
    reject = '[[rules]]\nkind = "dtype"\nallowed = ["int8"]\nsource = "https://x.example/d"\nversion = "SDK 2.1"\n'
    state.apply([RulesEdited(text=STRICTER + reject, origin="editor")])
    found = facts(state)
    assert [label for label, _, _ in found if label[:1] in ("✘", "◇")] == ["✘ reject", "◇ pad"]
    text, source = next((text, row) for _, text, row in found if text.startswith("source"))
    assert text == "source https://x.example/d  SDK 2.1" and source.copied == "https://x.example/d"


def test_a_node_whose_value_torch_did_not_keep_says_so() -> None:
    node = Node(name="x", op="call_function", target="aten.nonzero.default", unknown=True)
    graph = Graph(INFERENCE, (node,))
    state = State(live=False)
    program, target = Program("m.py"), Target(rules=STRICTER)
    state.apply([RunStarted(run=1, program=program, target=target), GraphCaptured(run=1, graph=graph)])
    found = told(state)
    assert found["value"] == ["torch kept no value for it: no rule could judge all of its tensors"]
    assert found["? unknown"]
