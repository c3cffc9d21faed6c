"""What do padding and falling back cost, in a few lines for a person?"""

from collections.abc import Iterator

from idbg.analysis.sizes import rounded_bytes
from idbg.checking.check import Checked
from idbg.checking.costs import growth
from idbg.reports.words import count


def cost_lines(checked: Checked) -> Iterator[str]:
    """The padding's waste; the partitions, what crosses between them, and the one change that helps most."""
    waste = checked.waste
    if waste.wasted_bytes or waste.wasted_flops:
        flops = f", {growth(waste.flops_percent)} FLOPs" if waste.wasted_flops else ""
        yield f"  padding: {growth(waste.bytes_percent)} bytes ({rounded_bytes(waste.wasted_bytes)}){flops}"
    host = sum(len(each.host) for each in checked.partitions)
    if not host:
        return
    parts, nbytes = checked.cost
    crossings = sum(each.crossings for each in checked.partitions)
    unsized = sum(boundary.unsized for each in checked.partitions for boundary in each.boundaries)
    where = count(parts, "partition") + " on the accelerator" if parts else "nothing is left on the accelerator"
    yield (
        f"  {where}, {count(host, 'node')} on the host; crossing between them: {count(crossings, 'value')}, "
        f"{rounded_bytes(nbytes)}{f' and {unsized} of unknown size' if unsized else ''}"
    )
    changes = [
        f"{one.words}, {rounded_bytes(one.bytes)} cross" if one.host else one.words for one in checked.best_changes
    ]
    if changes:
        yield f"  the one change that helps most: {'; '.join(changes)}"
