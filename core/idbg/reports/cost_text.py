"""What do padding and falling back cost, in a few lines for a person?"""

from collections.abc import Iterator

from idbg.checking.check import AcceleratorResult
from idbg.checking.costs import growth
from idbg.format.amounts import counted, size


def cost_lines(checked: AcceleratorResult) -> Iterator[str]:
    """The padding's waste; the partitions, what crosses between them, and the one change that helps most."""
    waste = checked.waste
    if waste.wasted_bytes or waste.wasted_flops:
        flops = f", {growth(waste.flops_percent)} FLOPs" if waste.wasted_flops else ""
        yield f"  padding: {growth(waste.bytes_percent)} bytes ({size(waste.wasted_bytes)}){flops}"
    host = sum(len(each.host) for each in checked.partitions)
    if not host:
        return
    parts, nbytes = checked.cost
    crossings = sum(each.crossings for each in checked.partitions)
    unsized = sum(boundary.unsized for each in checked.partitions for boundary in each.boundaries)
    where = counted(parts, "partition") + " on the accelerator" if parts else "nothing is left on the accelerator"
    yield (
        f"  {where}, {counted(host, 'node')} on the host; crossing between them: {counted(crossings, 'value')}, "
        f"{size(nbytes)}{f' and {unsized} of unknown size' if unsized else ''}"
    )
    changes = [f"{one.words}, {size(one.bytes)} cross" if one.host else one.words for one in checked.best_changes]
    if changes:
        yield f"  the one change that helps most: {'; '.join(changes)}"
