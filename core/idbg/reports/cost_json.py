"""Write what padding and falling back cost as JSON."""

from msgspec import structs

from idbg.analysis.partition import HOST, Boundary
from idbg.checking.check import AcceleratorResult
from idbg.checking.costs import Better
from idbg.schema.graphs import Part, Stage
from idbg.schema.written import Written, keys_of, written


@keys_of(Better, "change=label partitions=count crossing_bytes=bytes")
class ChangeReport(Written, frozen=True):
    """One finding that is to be allowed ("rule: what was found"), and what is left of partitions and traffic then."""


@keys_of(Boundary, "frame stage part source to nodes bytes=nbytes unsized")
class BoundaryReport(Written, frozen=True):
    """What goes from `source` to `to`: numbers of the graph's partitions from 0, null for the host."""

    frame: str
    stage: Stage
    part: Part
    source: int | None
    to: int | None


@keys_of(
    AcceleratorResult,
    "waste_percent=waste.bytes_percent wasted_bytes=waste.wasted_bytes flops_waste_percent=waste.flops_percent "
    "partitions host_nodes crossings crossing_bytes best_change boundaries",
)
class CostReport(Written, frozen=True):
    """What padding wastes, in bytes and in percent of them or of FLOPs, and what goes to and from the host."""

    partitions: int
    host_nodes: int
    crossings: int
    crossing_bytes: int
    best_change: ChangeReport | None
    boundaries: list[BoundaryReport]


def cost_report(checked: AcceleratorResult) -> CostReport:
    """The costs over all graphs that were checked; `best_change` is null where none helps."""
    return written(CostReport, checked, **costs(checked))


def costs(checked: AcceleratorResult) -> dict[str, object]:
    """What is computed of them."""
    best = checked.best_change
    partitions, crossing_bytes = checked.cost
    return {
        "partitions": partitions,
        "host_nodes": sum(len(each.host) for each in checked.partitions),
        "crossings": sum(each.crossings for each in checked.partitions),
        "crossing_bytes": crossing_bytes,
        "best_change": written(ChangeReport, best) if best else None,
        "boundaries": _boundaries(checked),
    }


def _boundaries(checked: AcceleratorResult) -> list[BoundaryReport]:
    return [
        written(
            BoundaryReport,
            boundary,
            **structs.asdict(findings.graph.id),
            source=None if boundary.source == HOST else boundary.source,
            to=None if boundary.to == HOST else boundary.to,
        )
        for findings, partitions in zip(checked.findings, checked.partitions, strict=True)
        for boundary in partitions.boundaries
    ]
