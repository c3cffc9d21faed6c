"""What other rules say of captured graphs is what they would have said as these were compiled."""

import pytest
from msgspec.structs import replace

from idbg.accelerators.parse import parse
from idbg.checking.check import can_recheck, recheck, rules_for_stage
from idbg.schema.errors import AcceleratorError
from idbg.schema.programs import Failure
from idbg.schema.runs import Run, fold
from tests.harness.recorded import RECORDINGS, log

FLOAT16 = '[[rules]]\nkind = "dtype"\nallowed = ["float16"]\n'


def runs(name: str) -> list[Run]:
    return list(fold(log(name)).runs.values())


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.jsonl")))
def test_the_same_rules_find_what_the_worker_found(name: str) -> None:
    for run in runs(name):
        again = recheck(run, run.target.rules)
        assert sorted(map(repr, again.violations)) == sorted(map(repr, run.violations))
        assert again.verdict == run.verdict


def test_other_rules_give_another_verdict_and_leave_the_run_as_it_is() -> None:
    [run] = runs("mlp_train")
    assert recheck(run, "").verdict == "compiled"
    found = recheck(run, FLOAT16)
    assert found.verdict == "violations"
    assert {each.rule for each in found.violations} == {"dtype"}
    assert found.target.rules == FLOAT16
    assert run.verdict == "violations"
    assert {each.rule for each in run.violations} == {"layout"}


def test_a_run_of_which_not_every_graph_was_seen_is_to_be_compiled_again() -> None:
    [run] = runs("mlp_train")
    assert can_recheck(run)
    run.target = replace(run.target, strict=True)
    assert not can_recheck(run)
    run.target, run.failure = replace(run.target, strict=False), Failure("constraints", "stopped")
    assert not can_recheck(run)
    run.failure, run.checked = None, False
    assert not can_recheck(run)


def test_graphs_that_are_only_printed_are_asked_by_rules_that_name_them() -> None:
    rules = parse(f'{FLOAT16}stages = ["post_grad"]\n{FLOAT16}name = "everywhere"\n').rules
    assert [rule.name for rule in rules_for_stage("post_grad", rules)] == ["dtype"]
    assert rules_for_stage("inference", rules) == rules


def test_rules_that_are_none_are_refused() -> None:
    with pytest.raises(AcceleratorError):
        recheck(runs("mlp_train")[0], "[[rules]]\nkind = 3\n")
