"""Count the violations under a heading."""

from bisect import bisect_left

from idbg.constraints import Findings
from idbg.schema.violations import SEVERITIES, Severity


class Tally:
    """The violations of one graph, counted over any range of its nodes without a walk through them."""

    def __init__(self, findings: Findings) -> None:
        self._places: dict[Severity, list[int]] = {}
        for group in findings.groups:
            self._places.setdefault(group.rule.severity, []).extend(group.nodes)
        for places in self._places.values():
            places.sort()

    def within(self, first: int, last: int) -> dict[Severity, int]:
        """Severity -> violations of nodes `first` to `last` (exclusive), the severest first; none of 0."""
        counts = {}
        for severity in SEVERITIES:
            places = self._places.get(severity, ())
            count = bisect_left(places, last) - bisect_left(places, first)
            if count:
                counts[severity] = count
        return counts
