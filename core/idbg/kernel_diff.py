"""Compare a model's compiled run with a reference, from a user's own Python: the engine's comparison with a report that
prints itself.
"""

from dataclasses import replace

from idbg.engine.kerneldiff import api
from idbg.reports.diff import ReadableReport


class KernelDiff(api.KernelDiff):
    __doc__ = api.KernelDiff.__doc__

    def compare(self) -> ReadableReport:
        """Run every side and compare. Raises BadInput for settings that make no sense; the report has what a side
        raises.
        """
        result = self.on_result
        if result is None:
            return ReadableReport.of(super().compare())
        readable = replace(self, on_result=lambda report: result(ReadableReport.of(report)))
        return ReadableReport.of(readable.begin().run())
