"""Write a check of several accelerators as JSON. docs/json-schema.md documents the keys.

Every key is always there, as in the JSON of a run.
"""

from idbg.checking.check import FIXABLE, AcceleratorResult, Check
from idbg.checking.relax import Relaxation
from idbg.reports.cost_json import CostReport, costs
from idbg.reports.json import ViolationReport
from idbg.schema.graphs import Graph
from idbg.schema.written import Written, keys_of, written

SCHEMA = "idbg.check/1"


@keys_of(Graph, "frame=id.frame stage=id.stage part=id.part nodes")
class CheckedGraphReport(Written, frozen=True):
    """One graph that was held against the rules, and how many nodes it has."""

    nodes: int


@keys_of(Relaxation, "rule=rule.name severity=rule.severity change=words off count")
class RelaxationReport(Written, frozen=True):
    """`change` says how the rule's keys change; with `off` only switching it off helps. `count` violations go."""

    off: bool


@keys_of(
    AcceleratorResult,
    "name description=accelerator.description verdict rejects fallbacks pads tiles slow unknown peak_bytes unsized "
    "relaxations not_asked violations",
)
class AcceleratorReport(CostReport, frozen=True):
    """What one accelerator takes of the program: how many violations of each severity, and what they cost."""

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


@keys_of(
    Check,
    "schema program=run.program device=run.target.device dynamic=run.target.dynamic stage=level error=failure "
    "seconds=run.seconds breaks=run.breaks graphs accelerators",
)
class CheckReport(Written, frozen=True):
    """The whole check: `error` says why graphs are missing, `stage` is the requested level."""

    schema: str
    graphs: list[CheckedGraphReport]
    accelerators: list[AcceleratorReport]


def check_report(check: Check) -> CheckReport:
    """The check as `encode` writes it, with the accelerators in the order of the check."""
    return written(
        CheckReport,
        check,
        schema=SCHEMA,
        graphs=[written(CheckedGraphReport, graph, nodes=len(graph.nodes)) for graph in check.graphs],
        accelerators=[_accelerator(checked, check) for checked in check.accelerators],
    )


def _accelerator(checked: AcceleratorResult, check: Check) -> AcceleratorReport:
    counts = checked.by_severity
    return written(
        AcceleratorReport,
        checked,
        rejects=counts["reject"],
        fallbacks=counts["fallback"],
        pads=counts["pad"],
        tiles=counts["tile"],
        slow=counts["slow"],
        unknown=counts["unknown"],
        **costs(checked),
        peak_bytes=check.peak_bytes,
        unsized=check.unsized,
        relaxations=[
            written(RelaxationReport, each, off=each.relaxed is None) for each in checked.relaxations(*FIXABLE)
        ],
        not_asked=[rule.name for rule in checked.inapplicable_rules],
        violations=[written(ViolationReport, each) for findings in checked.findings for each in findings.violations()],
    )
