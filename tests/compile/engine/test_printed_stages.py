"""Rules that name a stage which torch only prints (joint, post_grad) are asked in a run, and stop a strict one."""

from collections.abc import Callable

import pytest

from idbg.schema.runs import Run

Runner = Callable[..., Run]

MODEL = "import torch\ndef program():\n    return torch.nn.Linear(8, 8), (torch.ones(4, 8),)"
INFERENCE = MODEL + "\n"
TRAIN = MODEL + ", lambda out: out.sum()\n"


def rule(stage: str) -> str:
    return f'[[rules]]\nkind = "dtype"\nname = "late"\nallowed = ["int8"]\nstages = ["{stage}"]\n'


@pytest.mark.slow
def test_a_post_grad_rule_is_asked_and_refuses_a_strict_run(ran: Runner):
    warned = ran(INFERENCE, backend="aot", rules=rule("post_grad"))
    assert warned.verdict == "violations"
    assert {violation.node.graph.stage for violation in warned.violations} == {"post_grad"}
    refused = ran(INFERENCE, backend="aot", rules=rule("post_grad"), strict=True)
    assert refused.failure is not None
    assert refused.failure.kind == "constraints"
    assert "late" in refused.failure.message
    assert "post_grad" in refused.failure.message


@pytest.mark.slow
def test_a_strict_run_names_the_post_grad_violations_of_forward_and_backward(ran: Runner):
    run = ran(TRAIN, backend="aot", rules=rule("post_grad"), strict=True)
    assert run.failure is not None
    assert {violation.node.graph.part for violation in run.violations} == {"forward", "backward"}


def test_a_joint_rule_is_asked_and_refuses_a_strict_run(ran: Runner):
    warned = ran(TRAIN, rules=rule("joint"))
    assert {violation.node.graph.stage for violation in warned.violations} == {"joint"}
    assert not warned.notes  # type: ignore[attr-defined]
    refused = ran(TRAIN, rules=rule("joint"), strict=True)
    assert refused.failure is not None
    assert "joint" in refused.failure.message


@pytest.mark.slow
def test_a_rule_of_no_stage_finds_nothing_twice_in_printed_graphs(ran: Runner):
    text = '[[rules]]\nkind = "dtype"\nallowed = ["int8"]\n'
    run = ran(TRAIN, backend="aot", rules=text)
    assert {violation.node.graph.stage for violation in run.violations} == {"dynamo", "forward", "backward"}


@pytest.mark.parametrize("stage", ["post_grad", "joint"])
def test_a_rule_of_a_stage_that_the_run_never_had_is_named(ran: Runner, stage: str):
    run = ran(INFERENCE, rules=rule(stage))
    assert run.verdict == "compiled"
    (note,) = run.notes  # type: ignore[attr-defined]
    assert "late" in note
    assert "were not checked" in note
