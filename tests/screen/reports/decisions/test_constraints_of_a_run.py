"""What the rules say of a run is the same whether its backend asked them or not."""

from dataclasses import replace

import msgspec

from idbg.reports.decisions import constraints
from idbg.schema.runs import fold
from tests.harness.recorded import log


def test_a_run_whose_backend_asks_no_rules_is_held_against_them_since() -> None:
    (run,) = fold(log("attention")).runs.values()
    asked = [each for each in run.violations if each.node.graph.stage in ("forward", "backward", "inference")]
    unasked = replace(run, checked=False, violations=[], target=msgspec.structs.replace(run.target, backend="inductor"))
    assert len(constraints.asked_since(unasked)) == len(asked) > 0
    told = "\n".join(constraints.text(unasked))
    assert "inductor asks no rules while it compiles" in told and "layout" in told
    answered = constraints.as_json(unasked)
    assert isinstance(answered, dict) and answered["asked_while_compiling"] is False
    assert len(answered["violations"]) == len(asked)


def test_a_run_that_never_ended_is_not_told_as_if_no_rule_were_broken() -> None:
    (run,) = fold(log("attention")).runs.values()
    ended = replace(run, violations=[])
    assert list(constraints.text(ended)) == [f"{run.target.accelerator}: no rule is broken"]
    cut = replace(ended, ended=None)
    assert cut.verdict == "waiting"
    assert "in what was captured: the run never ended" in next(iter(constraints.text(cut)))
