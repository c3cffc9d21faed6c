"""A program compiled in this process, and the smallest scripts of its failures."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.diff import Comparison
from idbg.schema.repros import Budget, Minified, Sought
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, Minify
from tests.harness.repro_bench import ANY_DTYPE, Bench

WHOLE = Budget()


class Minifying(Bench):
    """`comparison`: what the run is held against."""

    def __init__(
        self,
        folder: Path,
        text: str,
        comparison: Comparison | None = None,
        rules: str = ANY_DTYPE,
        **target: Any,
    ) -> None:
        self.comparison = comparison
        super().__init__(folder, text, rules, **target)

    def compiled(self, request: Compile) -> events.RunEnded:
        return self.jobs.compile(replace(request, comparison=self.comparison))

    def ended_as(
        self, sought: Sought, jobs: Jobs | None = None, budget: Budget = WHOLE, keep_data: bool = True
    ) -> events.MinifyEnded:
        """What the search came to, also where it could not begin. `jobs`: another worker's."""
        compiled = self.jobs.request
        assert compiled is not None
        asked = Minify(
            run=1,
            program=compiled.program,
            target=compiled.target,
            folder=compiled.folder,
            sought=sought,
            failure=self.ended.failure,
            comparison=self.comparison,
            budget=budget,
            keep_data=keep_data,
        )
        ended = (jobs or self.jobs).do(asked)
        assert isinstance(ended, events.MinifyEnded)
        return ended

    def minified(self, sought: Sought, jobs: Jobs | None = None, budget: Budget = WHOLE) -> Minified:
        """What the search came to."""
        ended = self.ended_as(sought, jobs, budget)
        assert ended.failure is None, ended.failure
        assert ended.minified is not None
        return ended.minified

    @property
    def progress(self) -> list[events.MinifyProgressed]:
        return [event for event in self.told if isinstance(event, events.MinifyProgressed)]
