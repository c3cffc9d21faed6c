"""Write what padding and falling back cost as JSON."""

import msgspec
from msgspec import structs

from idbg.analysis.partition import HOST
from idbg.checking.check import AcceleratorResult
from idbg.schema.graphs import Part, Stage
from idbg.schema.strict_json import like


class ChangeReport(msgspec.Struct, frozen=True):
    """One finding that is to be allowed ("rule: what was found"), and what is left of partitions and traffic then."""

    change: str
    partitions: int
    crossing_bytes: int


class BoundaryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What goes from `source` to `to`: numbers of the graph's partitions from 0, null for the host."""

    frame: str
    stage: Stage
    part: Part
    source: int | None
    to: int | None
    nodes: tuple[str, ...]
    bytes: int
    unsized: int


class CostReport(msgspec.Struct, frozen=True, kw_only=True):
    """What padding wastes, in bytes and in percent of them or of FLOPs, and what goes to and from the host."""

    waste_percent: float
    wasted_bytes: int
    flops_waste_percent: float
    partitions: int
    host_nodes: int
    crossings: int
    crossing_bytes: int
    best_change: ChangeReport | None
    boundaries: list[BoundaryReport]


def cost_report(checked: AcceleratorResult) -> CostReport:
    """The costs over all graphs that were checked; `best_change` is null where none helps."""
    best = checked.best_change
    partitions, crossing_bytes = checked.cost
    return like(
        CostReport,
        checked.waste,
        waste_percent=checked.waste.bytes_percent,
        flops_waste_percent=checked.waste.flops_percent,
        partitions=partitions,
        host_nodes=sum(len(each.host) for each in checked.partitions),
        crossings=sum(each.crossings for each in checked.partitions),
        crossing_bytes=crossing_bytes,
        best_change=ChangeReport(best.label, best.count, best.bytes) if best else None,
        boundaries=_boundaries(checked),
    )


def _boundaries(checked: AcceleratorResult) -> list[BoundaryReport]:
    return [
        like(
            BoundaryReport,
            boundary,
            **structs.asdict(findings.graph.id),
            source=None if boundary.source == HOST else boundary.source,
            to=None if boundary.to == HOST else boundary.to,
            bytes=boundary.nbytes,
        )
        for findings, partitions in zip(checked.findings, checked.partitions, strict=True)
        for boundary in partitions.boundaries
    ]
