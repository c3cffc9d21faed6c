"""What the rules say of a run is the same whether its backend asked them or not."""

from dataclasses import replace

import msgspec

from idbg.render.text import text
from idbg.reports import text as run_text
from idbg.schema.runs import fold
from idbg.views import violations
from tests.harness.recorded import log


def test_a_run_whose_backend_asks_no_rules_is_held_against_them_since() -> None:
    (run,) = fold(log("attention")).runs.values()
    asked = [each for each in run.violations if each.node.graph.stage in ("forward", "backward", "inference")]
    unasked = replace(run, checked=False, violations=[], target=msgspec.structs.replace(run.target, backend="inductor"))
    assert len(violations.violations_after(unasked)) == len(asked) > 0
    told = text(violations.view(unasked))
    assert "checked after the compile: inductor checks none" in told and "layout" in told
    answered = violations.as_json(unasked)
    assert isinstance(answered, dict) and answered["asked_while_compiling"] is False
    assert len(answered["violations"]) == len(asked)
    counted = run_text.summary_json(unasked)
    assert isinstance(counted, dict) and counted["violations"] is None, "nobody asked: that is not none"


def test_a_run_that_never_ended_is_not_told_as_if_no_rule_were_broken() -> None:
    (run,) = fold(log("attention")).runs.values()
    ended = replace(run, violations=[])
    assert text(violations.view(ended)).startswith(f"no rule of {run.target.accelerator} is broken in ")
    cut = replace(ended, ended=None)
    assert cut.verdict == "waiting"
    assert text(violations.view(cut)).endswith(", the run has not ended") and violations.view(cut).verdict == "unknown"
