"""Are violations grouped by rule and by the user's line, severest first, with what is new and what is gone?"""

from idbg.accelerators.parse import parse
from idbg_tui.panes.violations.pane import ViolationLines
from idbg_tui.panes.violations.rows import MOST, CodeLine, Gone, Rest, RuleHeading, violation_list
from idbg_tui.state import queries
from idbg_tui.state.rule_checks import RuleChecks
from tests.harness.recorded import chain, state_of

RELU = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["relu"]\n'
PAD = '[[rules]]\nkind = "alignment"\nmultiple = 16\nseverity = "pad"\n'


def checked(*texts: str, count: int = 4) -> RuleChecks:
    checks = RuleChecks()
    for text in texts:
        checks.set_rules(parse(text).rules)
    return checks


def test_the_severest_rule_comes_first_whatever_its_place_in_the_file() -> None:
    graph, checks = chain(4), checked(PAD + RELU)
    items = violation_list([(checks.findings(graph), checks.change(graph))])
    assert [item.rule.name for item in items if isinstance(item, RuleHeading)] == ["unsupported_ops", "alignment"]


def test_nodes_of_one_line_are_one_row() -> None:
    state = state_of("resnet")
    items = violation_list(
        [(state.checks.findings(graph), state.checks.change(graph)) for graph in queries.level(state)]
    )
    lines = [item for item in items if isinstance(item, CodeLine) and item.rule.name == "unsupported_ops"]
    assert sum(len(line.nodes) for line in lines) == 20
    assert len({(line.file, line.line) for line in lines}) == len(lines) < 20


def test_the_heading_says_what_all_its_lines_share_and_a_line_the_rest() -> None:
    graph, checks = chain(4), checked(RELU)
    heading, *lines = violation_list([(checks.findings(graph), checks.change(graph))])
    assert isinstance(heading, RuleHeading) and "relu is denied" in heading.text
    assert all(isinstance(line, CodeLine) and line.text == "" and line.code for line in lines)


def test_what_appeared_is_new_and_what_went_is_listed_as_gone() -> None:
    graph, checks = chain(4), checked(PAD, RELU)
    checks.findings(graph)
    items = violation_list([(checks.findings(graph), checks.change(graph))])
    new = [item for item in items if isinstance(item, CodeLine)]
    gone = [item for item in items if isinstance(item, Gone)]
    assert new and all(line.new for line in new)
    assert [(item.rule.name, item.count) for item in gone] == [("alignment", 4)]
    assert items[-1] is gone[0] and gone[0].places == ("model.py:1", "model.py:2", "model.py:3", "model.py:4")


def test_a_rule_that_everything_breaks_is_cut_and_says_so() -> None:
    graph, checks = chain(MOST + 500), checked(RELU)
    items = violation_list([(checks.findings(graph), checks.change(graph))])
    rest = items[-1]
    assert isinstance(rest, Rest) and rest.count == 500
    assert isinstance(items[0], RuleHeading) and items[0].count == MOST + 500


def test_keys_stay_the_same_over_a_check_and_are_unique() -> None:
    state = state_of("attention")
    found = [(state.checks.findings(graph), state.checks.change(graph)) for graph in queries.level(state)]
    first, second = ([ViolationLines().key(item) for item in violation_list(found)] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(first)


def test_of_thousands_that_went_the_first_places_are_told() -> None:
    graph, checks = chain(MOST + 500), checked(RELU, PAD.replace("16", "4"))
    checks.findings(graph)
    items = violation_list([(checks.findings(graph), checks.change(graph))])
    (gone,) = items
    assert isinstance(gone, Gone) and gone.count == MOST + 500 and not gone.all_places and len(gone.places) == MOST
