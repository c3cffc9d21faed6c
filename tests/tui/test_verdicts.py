"""Is what an edit changed known, also for the graph that a recompile brings?"""

from idbg.accelerators.parse import parse
from idbg.constraints import Constraint
from idbg_tui.state.costs import AT_ONCE
from idbg_tui.state.rule_checks import Tally, Verdicts, first_broken, totals
from tests.harness.recorded import chain


def rules(multiple: int = 1, deny: str = "tanh") -> tuple[Constraint, ...]:
    text = f'[[rules]]\nkind = "alignment"\nmultiple = {multiple}\nseverity = "pad"\n'
    return parse(text + f'[[rules]]\nkind = "unsupported_ops"\ndeny = ["{deny}"]\n').rules


def test_an_edit_says_what_appeared_and_what_went() -> None:
    graph, verdicts = chain(5), Verdicts()
    verdicts.set_rules(rules())
    assert len(verdicts.of(graph)) == 0
    verdicts.set_rules(rules(multiple=16))
    assert [group.count for group in verdicts.change(graph).appeared] == [5]
    verdicts.set_rules(rules(deny="relu"))
    change = verdicts.change(graph)
    assert [(group.rule.name, group.count) for group in change.appeared] == [("unsupported_ops", 5)]
    assert [(group.rule.name, group.count) for group in change.went] == [("alignment", 5)]


def test_the_first_rules_change_nothing() -> None:
    verdicts = Verdicts()
    verdicts.set_rules(rules(multiple=16))
    assert verdicts.change(chain(3)).appeared == []


def test_quick_edits_are_one_change() -> None:
    graph, verdicts = chain(5), Verdicts()
    verdicts.set_rules(rules())
    verdicts.set_rules(rules(multiple=16))
    verdicts.set_rules(rules(multiple=32), again=True)
    assert [group.count for group in verdicts.change(graph).appeared] == [5]


def test_the_first_edit_is_one_however_soon_it_comes() -> None:
    verdicts = Verdicts()
    verdicts.set_rules(rules())
    verdicts.set_rules(rules(multiple=16), again=True)
    assert [group.count for group in verdicts.change(chain(5)).appeared] == [5]


def test_an_edit_that_changes_no_rule_leaves_the_last_change_told() -> None:
    graph, verdicts = chain(5), Verdicts()
    verdicts.set_rules(rules())
    verdicts.set_rules(rules(multiple=16))
    verdicts.set_rules(rules(multiple=16))
    assert [group.count for group in verdicts.change(graph).appeared] == [5]


def test_a_recompiled_graph_keeps_its_marks() -> None:
    verdicts = Verdicts()
    verdicts.set_rules(rules())
    verdicts.of(chain(5))
    verdicts.set_rules(rules(deny="relu"))
    again = chain(5)
    assert len(verdicts.of(again)) == 5
    assert [group.count for group in verdicts.change(again).appeared] == [5]


def test_a_recompiled_graph_is_checked_itself() -> None:
    verdicts = Verdicts()
    verdicts.set_rules(rules(deny="relu"))
    assert len(verdicts.of(chain(5))) == 5
    assert len(verdicts.of(chain(3))) == 3


def test_a_range_of_nodes_is_tallied_by_severity() -> None:
    graph, verdicts = chain(10), Verdicts()
    verdicts.set_rules(rules(multiple=16, deny="relu"))
    tally = Tally(verdicts.of(graph))
    assert list(tally.within(2, 5).items()) == [("reject", 3), ("pad", 3)]
    assert tally.within(5, 5) == {}


def test_totals_are_over_all_graphs_the_severest_first() -> None:
    verdicts = Verdicts()
    verdicts.set_rules(rules(multiple=16, deny="relu"))
    found = verdicts.of(chain(4))
    assert list(totals([found, found]).items()) == [("reject", 8), ("pad", 8)]
    assert first_broken(found.graph, found) == "relu_0"


def test_rules_about_a_whole_graph_wait_on_a_large_one_before_and_after_an_edit() -> None:
    peak = parse('[[rules]]\nkind = "peak_memory"\nmax_bytes = 1\n').rules
    small, large, verdicts = chain(5), chain(AT_ONCE + 1), Verdicts()
    verdicts.set_rules(peak)
    assert len(verdicts.of(small)) == 1 and len(verdicts.of(large)) == 0
    verdicts.set_rules(rules())
    assert verdicts.change(large).went == [] and verdicts.late(large) == []
    assert [group.count for group in verdicts.change(small).went] == [1]
    verdicts.set_rules(peak)
    assert verdicts.weighed(large) and not verdicts.weighed(large)
    assert len(verdicts.of(large)) == 1 and [group.count for group in verdicts.change(large).appeared] == [1]
