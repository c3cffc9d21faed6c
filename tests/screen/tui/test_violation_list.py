"""Violations are grouped by rule and by the user's line, the severest first, with what is new and what is gone."""

import dataclasses

from msgspec.structs import replace

from idbg.accelerators.parse import parse
from idbg.views import rule_findings, violations
from idbg.views.rule_findings import MOST, Checked
from idbg.views.tree import Row, Section, Table
from idbg_tui.state import queries
from idbg_tui.state.rule_checks import RuleChecks
from tests.harness.recorded import chain, state_of

RELU = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["relu"]\n'
PAD = '[[rules]]\nkind = "alignment"\nmultiple = 16\nseverity = "pad"\n'


def listed(*texts: str, count: int = 4) -> Section:
    """What is listed of a chain after each of the rules was in force."""
    graph, checks = chain(count), RuleChecks()
    for text in texts:
        checks.set_rules(parse(text).rules)
        checks.findings(graph)
    return rule_findings.view([Checked(checks.findings(graph), checks.change(graph))])


def rules_of(section: Section) -> list[Row]:
    return [row for block in section.body if isinstance(block, Table) for row in block.rows]


def lines_of(rule: Row) -> list[Row]:
    return [row for row in rule.below if row.key[0] == "line"]  # type: ignore[index]


def gone_of(section: Section) -> list[str]:
    return [block.text for block in section.body if isinstance(block, Row)]


def test_the_severest_rule_comes_first_whatever_its_place_in_the_file() -> None:
    found = listed(PAD + RELU)
    assert [rule.key for rule in rules_of(found)] == [("rule", "unsupported_ops"), ("rule", "alignment")]
    assert (found.count, found.verdict) == (8, "error")


def test_nodes_of_one_line_are_one_row() -> None:
    (rule,) = rules_of(rule_findings.view(queries.checked(state_of("resnet"))))
    lines = lines_of(rule)
    assert sum(len(line.refs.nodes) for line in lines) == 20
    assert len({(line.refs.file, line.refs.line) for line in lines}) == len(lines) < 20


def test_the_heading_says_what_all_its_lines_share_and_a_line_its_code() -> None:
    (rule,) = rules_of(listed(RELU))
    assert "relu is denied" in rule.text
    assert lines_of(rule)[0].text == "model.py:1  x = relu(x)  # 0"


def test_bytes_that_a_fix_adds_have_a_column_of_their_own() -> None:
    section = listed(PAD)
    (rule,) = rules_of(section)
    (table,) = section.body
    assert isinstance(table, Table) and [column.head for column in table.columns] == [
        "which nodes",
        "adds bytes",
        "severity",
        "count",
    ]
    assert [cell.value for cell in lines_of(rule)[0].cells] == ["relu_0", 7.0, "", 1]
    assert "bytes" not in lines_of(rule)[0].text


def test_bytes_that_a_fix_adds_are_there_whatever_else_the_rule_advises() -> None:
    """They were read out of the sentence, of which a rule's own advice is the end."""
    (rule,) = rules_of(listed(PAD.replace("16", "16384") + 'fix = "see page 3"\n'))
    line = lines_of(rule)[0]
    adds = line.cells[1].value
    assert isinstance(adds, float) and adds > 1000
    assert "see page 3" in rule.text + line.text and "bytes" not in rule.text + line.text


def test_x_on_a_rule_is_about_its_first_row() -> None:
    (rule,) = rules_of(rule_findings.view(queries.checked(state_of("resnet"))))
    assert rule.repro is not None and rule.repro == lines_of(rule)[0].repro


def test_what_appeared_is_new_and_what_went_is_listed_as_gone() -> None:
    section = listed(PAD, RELU)
    (rule,) = rules_of(section)
    assert "+4 new" in rule.text and all(line.text.startswith("● ") for line in lines_of(rule))
    (gone,) = gone_of(section)
    assert "gone: 4 alignment" in gone and gone.endswith("model.py:1, model.py:2, model.py:3 +1")


def test_a_rule_that_everything_breaks_is_cut_and_says_so() -> None:
    (rule,) = rules_of(listed(RELU, count=MOST + 500))
    assert rule.below[-1].text == "and 500 more nodes: v walks through them"
    assert rule.cells[-1].value == MOST + 500


def test_keys_stay_the_same_over_a_check_and_are_unique() -> None:
    state = state_of("attention")
    first, second = (
        [row.key for rule in rules_of(rule_findings.view(queries.checked(state))) for row in (rule, *rule.below)]
        for _ in range(2)
    )
    assert first == second
    assert len(set(first)) == len(first)


def test_of_thousands_that_went_the_first_places_are_named() -> None:
    (gone,) = gone_of(listed(RELU, PAD.replace("16", "4"), count=MOST + 500))
    assert f"gone: {MOST + 500:,} unsupported_ops" in gone and gone.endswith("model.py:3 and others")


def test_the_rows_of_a_rule_are_the_same_in_the_pane_and_in_a_report() -> None:
    """They were grouped twice, in another order and with other columns."""
    state = state_of("resnet")
    run = state.shown
    assert run is not None
    of_stage = [replace(each, again=False) for each in run.violations if each.node.graph.stage == "inference"]
    live = rule_findings.view(queries.checked(state))
    reported = violations.view(dataclasses.replace(run, violations=of_stage))
    tables = [next(block for block in made.body if isinstance(block, Table)) for made in (live, reported)]
    of_live, of_report = ([(row, *lines_of(row)) for row in table.rows] for table in tables)
    assert tables[0].columns == tables[1].columns
    assert [[(row.text, row.cells, row.refs) for row in rule] for rule in of_live] == [
        [(row.text, row.cells, row.refs) for row in rule] for rule in of_report
    ]


def test_violations_that_an_earlier_stage_has_too_are_listed_alone() -> None:
    run = state_of("resnet").shown
    assert run is not None
    again = [each for each in run.violations if each.again]
    section = violations.view(dataclasses.replace(run, violations=again))
    assert again and section.count == 0 and rules_of(section)


def test_each_of_several_findings_of_a_line_has_a_row_below_it() -> None:
    (rule,) = rules_of(rule_findings.view(queries.checked(state_of("attention"))))
    line = lines_of(rule)[0]
    assert line.text.endswith(" +1") and [row.cells[-1].value for row in line.below] == [3, 1]
    assert line.cells[-1].value == 4
