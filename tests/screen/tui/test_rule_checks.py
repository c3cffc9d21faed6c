"""Is what an edit changed known, also for the graph that a recompile brings?"""

from idbg.accelerators.parse import parse
from idbg.checking.tally import Tally
from idbg.constraints import Constraint
from idbg_tui.state.costs import AT_ONCE
from idbg_tui.state.rule_checks import RuleChecks, first_broken, totals
from tests.harness.recorded import chain


def rules(multiple: int = 1, deny: str = "tanh") -> tuple[Constraint, ...]:
    text = f'[[rules]]\nkind = "alignment"\nmultiple = {multiple}\nseverity = "pad"\n'
    return parse(text + f'[[rules]]\nkind = "unsupported_ops"\ndeny = ["{deny}"]\n').rules


def test_an_edit_says_what_appeared_and_what_went() -> None:
    graph, checks = chain(5), RuleChecks()
    checks.set_rules(rules())
    assert len(checks.findings(graph)) == 0
    checks.set_rules(rules(multiple=16))
    assert [group.count for group in checks.change(graph).appeared] == [5]
    checks.set_rules(rules(deny="relu"))
    change = checks.change(graph)
    assert [(group.rule.name, group.count) for group in change.appeared] == [("unsupported_ops", 5)]
    assert [(group.rule.name, group.count) for group in change.went] == [("alignment", 5)]


def test_the_first_rules_change_nothing() -> None:
    checks = RuleChecks()
    checks.set_rules(rules(multiple=16))
    assert checks.change(chain(3)).appeared == []


def test_quick_edits_are_one_change() -> None:
    graph, checks = chain(5), RuleChecks()
    checks.set_rules(rules())
    checks.set_rules(rules(multiple=16))
    checks.set_rules(rules(multiple=32), again=True)
    assert [group.count for group in checks.change(graph).appeared] == [5]


def test_the_first_edit_is_one_however_soon_it_comes() -> None:
    checks = RuleChecks()
    checks.set_rules(rules())
    checks.set_rules(rules(multiple=16), again=True)
    assert [group.count for group in checks.change(chain(5)).appeared] == [5]


def test_an_edit_that_changes_no_rule_leaves_the_last_change_told() -> None:
    graph, checks = chain(5), RuleChecks()
    checks.set_rules(rules())
    checks.set_rules(rules(multiple=16))
    checks.set_rules(rules(multiple=16))
    assert [group.count for group in checks.change(graph).appeared] == [5]


def test_a_recompiled_graph_keeps_its_marks() -> None:
    checks = RuleChecks()
    checks.set_rules(rules())
    checks.findings(chain(5))
    checks.set_rules(rules(deny="relu"))
    again = chain(5)
    assert len(checks.findings(again)) == 5
    assert [group.count for group in checks.change(again).appeared] == [5]


def test_a_recompiled_graph_is_checked_itself() -> None:
    checks = RuleChecks()
    checks.set_rules(rules(deny="relu"))
    assert len(checks.findings(chain(5))) == 5
    assert len(checks.findings(chain(3))) == 3


def test_a_range_of_nodes_is_tallied_by_severity() -> None:
    graph, checks = chain(10), RuleChecks()
    checks.set_rules(rules(multiple=16, deny="relu"))
    tally = Tally(checks.findings(graph))
    assert list(tally.within(2, 5).items()) == [("reject", 3), ("pad", 3)]
    assert tally.within(5, 5) == {}


def test_totals_are_over_all_graphs_the_severest_first() -> None:
    checks = RuleChecks()
    checks.set_rules(rules(multiple=16, deny="relu"))
    found = checks.findings(chain(4))
    assert list(totals([found, found]).items()) == [("reject", 8), ("pad", 8)]
    assert first_broken(found.graph, found) == "relu_0"


def test_rules_about_a_whole_graph_wait_on_a_large_one_before_and_after_an_edit() -> None:
    peak = parse('[[rules]]\nkind = "peak_memory"\nmax_bytes = 1\n').rules
    small, large, checks = chain(5), chain(AT_ONCE + 1), RuleChecks()
    checks.set_rules(peak)
    assert len(checks.findings(small)) == 1 and len(checks.findings(large)) == 0
    checks.set_rules(rules())
    assert checks.change(large).went == [] and checks.postponed(large) == []
    assert [group.count for group in checks.change(small).went] == [1]
    checks.set_rules(peak)
    assert checks.include_graph_rules(large) and not checks.include_graph_rules(large)
    assert len(checks.findings(large)) == 1 and [group.count for group in checks.change(large).appeared] == [1]
