"""What was compiled, and what stood in its way, in a few lines?"""

from collections.abc import Iterable

from idbg.format.amounts import counted, elapsed
from idbg.reports.text import run_report
from idbg.schema.runs import Run


def text(run: Run) -> Iterable[str]:
    """The run's report, and what the compiler decided of it in numbers."""
    yield from run_report(run)
    decided = run.decided
    guards = sum(len(each.guards) for each in decided.guards.values())
    hits = [answer.outcome for answers in decided.caches.values() for answer in answers]
    yield "  " + ", ".join(
        [
            counted(len(run.frames), "frame"),
            f"{counted(len(decided.skips), 'function')} left alone",
            counted(guards, "guard"),
            f"{hits.count('hit')} of {len(hits)} found in caches" if hits else "no cache was asked",
            f"{elapsed(run.seconds)} in all",
        ]
    )


def as_json(run: Run) -> object:
    """The same numbers."""
    return {
        "verdict": run.verdict,
        "numbers": run.numbers,
        "seconds": run.seconds,
        "frames": len(run.frames),
        "graphs": len(run.graphs),
        "nodes": sum(len(graph.nodes) for graph in run.graphs.values()),
        "kernels": len(run.kernels),
        "breaks": run.times_broken,
        "recompiles": len(run.recompiles),
        "skips": len(run.decided.skips),
        "guards": sum(len(each.guards) for each in run.decided.guards.values()),
        "violations": len(run.violations) if run.asked_rules else None,
    }
