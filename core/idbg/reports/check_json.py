"""Write a check of several accelerators as JSON. docs/json-schema.md documents the keys.

Every key is always there, as in the JSON of a run.
"""

import msgspec

from idbg.checking.check import FIXABLE, AcceleratorResult, Check, Treatment
from idbg.reports.cost_json import CostReport, cost_report
from idbg.reports.json import ViolationReport, violation_report
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.graphs import Part, Stage
from idbg.schema.programs import Failure, Program
from idbg.schema.strict_json import like
from idbg.schema.violations import Severity

SCHEMA = "idbg.check/1"


class CheckedGraphReport(msgspec.Struct, frozen=True):
    """One graph that was held against the rules, and how many nodes it has."""

    frame: str
    stage: Stage
    part: Part
    nodes: int


class RelaxationReport(msgspec.Struct, frozen=True):
    """`change` says how the rule's keys change; with `off` only switching it off helps. `count` violations go."""

    rule: str
    severity: Severity
    change: str
    off: bool
    count: int


class AcceleratorReport(CostReport, frozen=True, kw_only=True):
    """What one accelerator takes of the program: how many violations of each severity, and what they cost."""

    name: str
    description: str
    verdict: Treatment
    rejects: int
    fallbacks: int
    pads: int
    tiles: int
    slow: int
    unknown: int
    peak_bytes: int | None
    unsized: int
    relaxations: list[RelaxationReport]
    not_asked: list[str]
    violations: list[ViolationReport]


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole check: `error` says why graphs are missing, `stage` is the requested level."""

    schema: str = SCHEMA
    program: Program
    device: str
    dynamic: bool | None
    stage: str
    error: Failure | None
    seconds: float
    breaks: list[GraphBreak]
    graphs: list[CheckedGraphReport]
    accelerators: list[AcceleratorReport]


def check_report(check: Check) -> CheckReport:
    """The check as `encode` writes it, with the accelerators in the order of the check."""
    return like(
        CheckReport,
        check.run,
        device=check.run.target.device,
        dynamic=check.run.target.dynamic,
        stage=check.level,
        error=check.failure,
        graphs=[like(CheckedGraphReport, graph.id, nodes=len(graph.nodes)) for graph in check.graphs],
        accelerators=[_accelerator(checked, check) for checked in check.accelerators],
    )


def _accelerator(checked: AcceleratorResult, check: Check) -> AcceleratorReport:
    counts = checked.by_severity
    return like(
        AcceleratorReport,
        checked,
        description=checked.accelerator.description,
        rejects=counts["reject"],
        fallbacks=counts["fallback"],
        pads=counts["pad"],
        tiles=counts["tile"],
        slow=counts["slow"],
        unknown=counts["unknown"],
        **msgspec.structs.asdict(cost_report(checked)),
        peak_bytes=check.peak_bytes,
        unsized=check.unsized,
        relaxations=[
            RelaxationReport(each.rule.name, each.rule.severity, each.words, each.relaxed is None, each.count)
            for each in checked.relaxations(*FIXABLE)
        ],
        not_asked=[rule.name for rule in checked.inapplicable_rules],
        violations=[violation_report(each) for findings in checked.findings for each in findings.violations()],
    )
