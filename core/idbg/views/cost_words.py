"""Describe what padding and falling back cost, in a few lines."""

from collections.abc import Iterator, Sequence

from idbg.analysis.partition import Partitions
from idbg.checking import costs
from idbg.checking.check import AcceleratorResult
from idbg.checking.costs import Better, Waste, growth
from idbg.constraints import Checker
from idbg.format.amounts import and_unsized, counted, size

NO_CHANGE = "no finding allowed alone, and no rule left out alone, leaves fewer partitions"


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
    if checked.best_changes:
        yield f"  the one change that helps most: {'; '.join(map(change_words, checked.best_changes))}"


def change_words(change: Better) -> str:
    """What one change would leave: "allowing 'mm is denied' (host ops) leaves 1 partition, 2.0 KiB cross"."""
    return change.words + (f", {size(change.bytes)} cross" if change.bytes else "")


def pad_words(waste: Waste) -> str:
    """The cost of a rule of severity pad; "" where it has none that is counted."""
    return f"pads: {waste_words(waste)}" if waste.wasted_bytes or waste.wasted_flops else ""


def host_words(parted: Sequence[Partitions]) -> str:
    """The cost of a rule of severity fallback."""
    return f"runs on the host: {partition_words(parted)}"


def waste_words(waste: Waste) -> str:
    """What padding adds: "+12 % bytes (1.2 MiB), +8 % FLOPs"; FLOPs where they were counted."""
    bytes_words = f"{growth(waste.bytes_percent)} bytes ({size(waste.wasted_bytes)})"
    return bytes_words + (f", {growth(waste.flops_percent)} FLOPs" if waste.flops else "")


def partition_words(parted: Sequence[Partitions]) -> str:
    """How several graphs are cut, all together: "5 partitions, 20 boundaries, 61 MiB cross"."""
    if not any(partitions.host for partitions in parted):
        return "no call, only what the graph is given"
    count = sum(partitions.count for partitions in parted)
    parts = counted(count, "partition") if count else "nothing is left on the accelerator"
    boundaries = [boundary for partitions in parted for boundary in partitions.boundaries]
    if not boundaries:
        return parts
    crosses = and_unsized(sum(one.nbytes for one in boundaries), sum(one.unsized for one in boundaries))
    return f"{parts}, {counted(len(boundaries), 'boundary')}, {crosses} cross"


def rule_cost(checked: AcceleratorResult, name: str) -> str:
    """What breaking one rule costs in these graphs, as if it were the only one: the padding, or what runs on the host;
    "" of a rule that costs nothing that is counted.
    """
    rule = next((each for each in checked.accelerator.rules if each.name == name), None)
    if rule is None or rule.severity not in ("pad", "fallback"):
        return ""
    alone = [Checker(findings.graph).check([rule]) for findings in checked.findings]
    if rule.severity == "fallback":
        return host_words([costs.partitions(findings) for findings in alone])
    return pad_words(sum(map(costs.waste, alone), Waste()))
