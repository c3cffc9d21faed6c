"""Is the cost of breaking a rule said in words, with numbers that were counted?"""

from idbg.checking import costs
from idbg.schema import events
from idbg.views import rule_findings
from idbg.views.cost_words import NO_CHANGE
from idbg.views.tree import Row, Table
from idbg_tui.state import queries
from idbg_tui.state.state import State
from tests.harness.recorded import state_of, under
from tests.harness.rule_texts import FALL, PAD, PEAK


def said(state: State) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in cost_rows(state):
        found.setdefault(row.key[1], []).append(row.text.removeprefix("→ "))  # type: ignore[index]
    return found


def cost_rows(state: State) -> list[Row]:
    """The rows of `rule_findings` about costs."""
    (table,) = rule_findings.view(queries.checked(state), fixed=False).body
    assert isinstance(table, Table)
    return [row for rule in table.rows for row in rule.below if row.key[0] == "cost"]  # type: ignore[index]


def test_a_pad_rule_says_what_it_adds_to_bytes_and_flops() -> None:
    state = under("resnet", PAD)
    waste = costs.waste(state.checks.findings(queries.level(state)[0]))
    (words,) = said(state)["alignment"]
    assert waste.bytes_percent < 1000 < waste.flops_percent
    assert words.startswith(f"pads: +{waste.bytes_percent:.0f} % bytes (")
    assert words.endswith(f", {1 + waste.flops_percent / 100:.0f}x FLOPs")


def test_two_pad_rules_say_their_own_cost_and_what_they_cost_together() -> None:
    found = said(under("resnet", PAD + PAD.replace("24", "12").replace("[[rules]]", '[[rules]]\nname = "twelves"')))
    assert set(found) == {"alignment", "twelves"}
    assert len(found["twelves"]) == 1 and found["twelves"] != found["alignment"][:1]
    # what is a multiple of 24 is one of 12
    assert found["alignment"][1] == found["alignment"][0].replace("pads", "all 2 pad rules together")


def test_a_fallback_rule_says_partitions_boundaries_bytes_and_the_best_change() -> None:
    state = under("resnet", FALL)
    now = costs.partitions(state.checks.findings(queries.level(state)[0]))
    crosses = f"{now.bytes / 2**20:.1f} MiB cross"
    first, best = said(state)["no relu"]
    assert first == f"runs on the host: {now.count} partitions, {len(now.boundaries)} boundaries, {crosses}"
    assert now.count > 1
    assert best == "allowing 'relu is denied' (no relu): nothing falls back"


def test_the_cost_of_several_fallback_rules_is_said_once() -> None:
    other = FALL.replace("no relu", "no mean").replace('"relu"', '"mean"')
    found = said(under("resnet", FALL + other))
    assert found["no relu"][0].startswith("runs on the host: ")
    assert found["no mean"] == ["runs on the host too: counted above"]


def test_a_level_of_several_graphs_says_in_which_one_a_change_helps() -> None:
    words = said(under("mlp_train", FALL.replace('"relu"', '"erf", "mul"')))["no relu"]
    assert words[0].startswith("runs on the host: ")
    assert words[1].endswith((" in forward", " in backward"))


def test_until_it_is_counted_no_number_is_said() -> None:
    state = state_of("resnet")
    state.apply([events.RulesEdited(text=FALL + PAD, origin="editor")])
    words = [one for found in said(state).values() for one in found]
    assert len(words) == 3 and all("counting" in one and not any(map(str.isdigit, one)) for one in words)


def test_the_peak_is_named_where_it_is_the_largest() -> None:
    state = under("mlp_train", PEAK)
    (cost,) = cost_rows(state)
    (node,) = cost.refs.nodes
    assert node.graph.stage == "backward"
    assert f"the peak is at {node.name} in backward: " in cost.text and "M lists them" in cost.text


def test_what_only_the_graphs_inputs_break_cuts_nothing() -> None:
    inputs = '[[rules]]\nkind = "rank"\nmax = 3\nroles = ["inputs"]\nseverity = "fallback"\n'
    assert said(under("resnet", inputs))["rank"] == ["runs on the host: no call, only what the graph is given"]


def test_what_leaving_a_rule_out_would_merge_is_said_after_the_best_finding() -> None:
    words = said(under("resnet", FALL.replace('"relu"', '"relu", "mean"')))["no relu"][1]
    allowed, without = words.split("; ")
    assert allowed == "allowing 'relu is denied' (no relu) leaves 2 partitions, 100 KiB cross"
    assert without == "without rule no relu: nothing falls back"


def test_where_no_single_change_helps_that_is_said() -> None:
    twice = FALL + FALL.replace("no relu", "no relu either")
    assert said(under("resnet", twice))["no relu"][1] == NO_CHANGE
