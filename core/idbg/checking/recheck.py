"""Check captured graphs against other rules, without compiling again."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as with_fields

from idbg.accelerators.parse import parse
from idbg.constraints import Checker, Constraint
from idbg.schema.graphs import Stage
from idbg.schema.runs import Run

ONLY_PRINTED: tuple[Stage, ...] = ("joint", "post_grad")  # no backend of ours is handed these graphs


def rules_for_stage(stage: Stage, rules: Sequence[Constraint]) -> Sequence[Constraint]:
    """The rules that a graph of this stage is held against as it is compiled.

    A backend is given Dynamo's and ATen's graphs. Those that torch only prints on the way are held against the rules
    that name their stage, and no others, which would find the same again.
    """
    return [rule for rule in rules if stage in rule.stages] if stage in ONLY_PRINTED else rules


def can_recheck(run: Run) -> bool:
    """Whether the run can be checked against other rules: its backend checks rules, and none of these stopped it."""
    return run.checked and bool(run.graphs) and not run.stopped and not run.target.strict


def recheck(run: Run, rules: str) -> Run:
    """The run as it would be, had these rules (TOML) been in force. Raises AcceleratorError for no valid rules."""
    accelerator = parse(rules)
    violations = [
        violation
        for graph in run.graphs.values()
        for violation in Checker(graph).check(rules_for_stage(graph.id.stage, accelerator.rules)).violations()
    ]
    ended = "clean" if run.ended == "violations" else run.ended
    return replace(run, target=with_fields(run.target, rules=rules), violations=violations, ended=ended)
