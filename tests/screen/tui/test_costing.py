"""Are memory, padding and partitions counted for the shown graphs, kept apart, and thrown away when they are stale?"""

import threading

from idbg.accelerators.parse import parse
from idbg.analysis.liveness import MemoryProfile, memory_profile
from idbg.analysis.partition import HOST
from idbg.checking.rule_costs import CostAnswer, CostQuestion, RuleCosts, cost_answers
from idbg.constraints import Checker, Findings
from idbg.schema import events
from idbg_tui.state import queries
from idbg_tui.state.cost_thread import CostThread
from idbg_tui.state.costs import KnownCosts
from tests.harness.recorded import big, chain, count, state_of, under
from tests.harness.rule_texts import FALL, PAD, PEAK


def asked(rules: str, nodes: int = 4) -> CostQuestion:
    return CostQuestion(Checker(chain(nodes)).check(parse(rules).rules), {})


def test_memory_is_told_first_and_the_best_change_last() -> None:
    told = list(cost_answers(asked(FALL)))
    assert isinstance(told[0], MemoryProfile)
    assert [one.complete for one in told if isinstance(one, RuleCosts)] == [False, True]


def test_where_nothing_falls_back_there_are_no_partitions() -> None:
    last = list(cost_answers(asked(PAD)))[-1]
    assert isinstance(last, RuleCosts) and last.partitions is None and last.complete


def test_the_peak_is_that_of_the_graph_that_needs_the_most() -> None:
    state = under("mlp_train", PAD)
    assert queries.peak(state) is not None
    graph, profile = queries.peak(state)
    assert graph.id.stage == "backward"
    assert profile.peak_bytes == max(memory_profile(other).peak_bytes for other in queries.level(state))


def test_each_pad_rule_is_priced_alone_and_all_together() -> None:
    twice = PAD + PAD.replace('severity = "pad"', 'severity = "pad"\nname = "more"').replace("24", "64")
    rule_costs = [one for _, one in queries.rule_costs(under("attention", twice)) or ()]
    assert rule_costs
    for one in rule_costs:
        assert set(one.waste) == {"alignment", "more"}
        assert one.waste["alignment"].wasted_bytes < one.waste["more"].wasted_bytes <= one.padding.wasted_bytes


def test_a_change_of_the_rules_makes_the_price_unknown_and_leaves_the_memory() -> None:
    state = under("resnet", FALL)
    assert queries.rule_costs(state) is not None and queries.peak(state) is not None
    state.apply([events.RulesEdited(text=PAD, origin="editor")])
    assert queries.rule_costs(state) is None and queries.peak(state) is not None
    count(state)
    assert queries.rule_costs(state) is not None and not queries.cost_questions(state)


def test_an_answer_about_rules_that_are_no_longer_in_force_is_not_shown() -> None:
    state = state_of("resnet")
    (old,) = queries.cost_questions(state)
    state.apply([events.RulesEdited(text=FALL, origin="editor")])
    for answer in cost_answers(old):
        state.take_cost(old.findings, answer)
    assert queries.rule_costs(state) is None and queries.peak(state) is not None


def test_every_call_is_in_one_partition_or_on_the_host() -> None:
    state = under("resnet", FALL)
    ((findings, rule_costs),) = queries.rule_costs(state) or []
    calls = {node.name for node in findings.graph.nodes if node.op.startswith("call")}
    assert set(rule_costs.side_of) == calls
    hosted = {name for name, side in rule_costs.side_of.items() if side == HOST}
    assert len(hosted) == 17 and rule_costs.crossing & hosted and rule_costs.crossing - hosted


def test_a_rule_about_a_large_graph_is_asked_once_its_memory_was_counted() -> None:
    state = big(PEAK)
    assert queries.counts(state) == {}
    (question,) = queries.cost_questions(state)
    assert [rule.kind for rule in question.postponed] == ["peak_memory"]
    answer, *more = cost_answers(question)
    assert not more
    rules = state.versions.rules
    state.take_cost(question.findings, answer)
    assert queries.counts(state) == {"reject": 1} and state.versions.rules > rules
    count(state)
    assert queries.rule_costs(state) is not None and not queries.cost_questions(state)


def test_a_rule_about_a_graph_is_asked_at_once_when_it_is_edited_in_later() -> None:
    state = big(PAD)
    count(state)
    state.apply([events.RulesEdited(text=PEAK, origin="editor")])
    assert queries.counts(state) == {"reject": 1}


def test_a_thread_answers_the_last_questions() -> None:
    told: list[tuple[Findings, CostAnswer]] = []
    done = threading.Event()
    first, last = asked(FALL, 3000), asked(FALL)

    def tell(findings: Findings, answer: CostAnswer) -> None:
        told.append((findings, answer))
        if findings is last.findings and isinstance(answer, RuleCosts) and answer.complete:
            done.set()

    counter = CostThread(tell)
    counter.start([first])
    counter.start([last])
    assert done.wait(60)
    done.clear()
    counter.start([CostQuestion(last.findings, {})])  # after it was idle, too
    assert done.wait(60)
    assert not any(isinstance(one, RuleCosts) and one.complete for findings, one in told if findings is first.findings)


def test_what_is_known_of_one_graph_is_not_taken_for_another_with_its_name() -> None:
    costs, question = KnownCosts(), asked(FALL)
    for answer in cost_answers(question):
        costs.take(question.findings, answer)
    assert costs.profile(question.findings.graph) is not None and not costs.lacks(question.findings)
    other = asked(FALL)
    assert costs.profile(other.findings.graph) is None and costs.of_rules(other.findings) is None
