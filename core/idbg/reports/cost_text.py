"""What do padding and falling back cost, in a few lines for a person?"""

from collections.abc import Iterator

from idbg.reports.check import Checked
from idbg.reports.words import count
from idbg.sizes import rounded_bytes, spelled_percent


def cost_lines(checked: Checked) -> Iterator[str]:
    """The padding's waste; the partitions, what crosses between them, and the one change that helps most."""
    waste = checked.waste
    if waste.wasted_bytes or waste.wasted_flops:
        flops = f", {spelled_percent(waste.flops_percent)} to the FLOPs" if waste.wasted_flops else ""
        added = f"{spelled_percent(waste.bytes_percent)} to the bytes ({rounded_bytes(waste.wasted_bytes)})"
        yield f"  padding adds {added}{flops}"
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
    if best := checked.best_change:
        left = f"{count(best.count, 'partition')}, {rounded_bytes(best.bytes)} that cross"
        yield f"  the one change that helps most: allow {best.label} → {left}"
