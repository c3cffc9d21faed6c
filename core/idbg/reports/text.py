"""Report a run as text for one screen: the verdict, what was compiled, failures, violations by rule and line."""

from collections.abc import Iterator

from idbg import views
from idbg.format.amounts import counted, elapsed
from idbg.format.failures import frame_words
from idbg.format.file_names import near_place
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.verdicts import rules_words, verdict_words
from idbg.render.text import lines
from idbg.schema.decisions.dynamo import FrameGuards, Skip
from idbg.schema.decisions.inductor import CacheAnswer
from idbg.schema.programs import Failure
from idbg.schema.runs import Run
from idbg.views import breaks, violations
from idbg.views.faults import crash_lines
from idbg.views.records import amount, amount_words

# how much of each is shown, so that a run with several broken rules still fits a screen
LINES_OF_A_RULE = 5


def run_report(run: Run, *, tracebacks: bool = True) -> list[str]:
    """The lines of the report, as far as the run has come."""
    failed = [*_failure(run, tracebacks), *_swallowed(run, tracebacks)]
    return [headline(run), *contents(run), *failed, *_violations(run)]


def tracebacks(run: Run) -> list[str]:
    """The traceback of each failure of the run, each once."""
    failures = (run.failure, *(failed.failure for failed in run.frame_failures))
    return list(dict.fromkeys(each.traceback.rstrip() for each in failures if each is not None and each.traceback))


def headline(run: Run) -> str:
    """Verdict, program, target and how long it took, or the phase that it is in."""
    target = run.target
    where = f"{run.backend} · {target.device or _devices(run)} · {rules_words(target)}"
    sign = VERDICT_SIGNS[run.looks]
    if run.ended is None:
        return f"{sign} {run.program.label}   {where}   {run.phase or 'starting'}"
    return f"{sign} {verdict_words(run)}   {run.program.label}   {where}   {elapsed(run.seconds)}"


def _devices(run: Run) -> str:
    """The devices that the graphs' tensors are on, if the target named none."""
    devices = {tensor.device for graph in run.graphs.values() for node in graph.nodes for tensor in node.tensors}
    return ", ".join(sorted(devices - {""})) or "no device yet"


def counts(run: Run, *, of_frames: str = "") -> list[str]:
    """How many graphs (`of_frames`: words that follow), nodes, kernels, graph breaks and recompiles."""
    found = [
        counted(len(run.graphs), "graph") + of_frames,
        counted(sum(len(graph.nodes) for graph in run.graphs.values()), "node"),
        counted(len(run.kernels), "kernel"),
        amount_words(run, "breaks", run.times_broken, "graph break"),
    ]
    return found + ([counted(len(run.recompiles), "recompile")] if run.recompiles else [])


def _frames(run: Run) -> str:
    """ "3 frames", "4 of 5 frames" where some have no graph."""
    with_graphs = len({graph.frame for graph in run.graphs})
    rest = len(run.frames) > with_graphs
    return f"{with_graphs:,} of {counted(len(run.frames), 'frame')}" if rest else counted(with_graphs, "frame")


def decision_counts(run: Run) -> str:
    """Frames, skipped functions, guards, cache hits, and the time of all of it, in a line."""
    guards = sum(len(each.guards) for each in run.decided.last(FrameGuards).values())
    skips = f"{counted(len(run.decided.every(Skip)), 'function')} left alone"
    no_answers = "answers of caches not recorded" if "cache" in run.unrecorded else "no cache was used"
    hits = [answer.outcome for answers in run.decided.of(CacheAnswer).values() for answer in answers]
    parts = [
        counted(len(run.frames), "frame"),
        skips if "skips" not in run.unrecorded or run.decided.every(Skip) else "functions left alone not recorded",
        amount_words(run, "guards", guards, "guard"),
        f"{hits.count('hit')} of {len(hits)} found in caches" if hits else no_answers,
        f"{elapsed(run.seconds)} in all",
    ]
    return ", ".join(parts)


def summary_json(run: Run) -> dict[str, object]:
    """The same numbers for a program, with the verdict; null where they are not recorded."""
    return {
        "verdict": run.verdict,
        "numbers": run.numbers,
        "seconds": run.seconds,
        "frames": len(run.frames),
        "graphs": len(run.graphs),
        "nodes": sum(len(graph.nodes) for graph in run.graphs.values()),
        "kernels": len(run.kernels),
        "breaks": amount(run, "breaks", run.times_broken),
        "recompiles": amount(run, "recompiles", len(run.recompiles)),
        "skips": amount(run, "skips", len(run.decided.every(Skip))),
        "guards": amount(run, "guards", sum(len(each.guards) for each in run.decided.last(FrameGuards).values())),
        "violations": run.violation_count,
    }


def contents(run: Run) -> Iterator[str]:
    """How much of what was compiled, and where graphs broke."""
    if run.graphs:
        yield "  " + ", ".join(counts(run, of_frames=f" of {_frames(run)}"))
    if run.exit_status:
        yield f"  the script ended itself with status {run.exit_status}"
    if run.backwards_idle:
        frames = f"{counted(len(run.backwards_idle), 'frame')} ({', '.join(run.backwards_idle[:LINES_OF_A_RULE])})"
        yield f"  the program never ran the backward of {frames}: idbg had it compiled, torch alone would not have"
    for name, words in views.in_short(run):
        yield f"  {words}: idbg analyze --type {name} says which and why"
    for graph_break in run.breaks[:LINES_OF_A_RULE]:
        yield f"  {breaks.sentence(graph_break)}"
    if len(run.breaks) > LINES_OF_A_RULE:
        yield f"  … and {counted(len(run.breaks) - LINES_OF_A_RULE, 'graph break')} more"


def _failure(run: Run, tracebacks: bool) -> Iterator[str]:
    """The failure's message, unless it only lists the violations that follow, and the repro that was written of it."""
    if run.failure is None:
        return
    if run.failure.repro:
        yield f"  stopped by strict mode; repro: {run.failure.repro}"
    if run.failure.kind == "constraints" and run.violations:
        return
    yield ""
    yield from _why(run.failure)
    if run.failure.kind in ("torch", "backend") and run.graphs:
        yield f"  idbg-tui {run.program.label} shows the graphs up to there, and writes a repro"
        yield f"  idbg minify {run.program.label} looks for the smallest script that fails so"
    if tracebacks:
        yield from _traceback(run.failure)


def _swallowed(run: Run, tracebacks: bool) -> Iterator[str]:
    """Each frame that failed although the program went on, unless the run's failure or the violations say so."""
    shown = run.failure.message if run.failure else ""
    for failed in run.frame_failures:
        if failed.failure.kind == "constraints" and failed.failure.repro and run.failure is None:
            frame = failed.frame or "?"
            yield f"  strict mode stopped frame {frame}, and the program went on; repro: {failed.failure.repro}"
        if failed.failure.kind == "constraints" or failed.failure.message == shown:
            continue
        yield ""
        yield f"{frame_words(failed.frame, failed.failure, went_on=failed.went_on)}:"
        yield from (
            "  " + line for line in (*_why(failed.failure), *(_traceback(failed.failure) if tracebacks else ()))
        )


def _why(failure: Failure) -> Iterator[str]:
    where = near_place(failure.file, failure.line)
    yield f"{failure.message}{f' ({where})' if where else ''}"
    yield from (f"  {line}" for line in (crash_lines(failure.crash) if failure.crash else ()))
    if failure.hint:
        yield f"  {failure.hint}"


def _traceback(failure: Failure) -> Iterator[str]:
    return ("  " + line for line in failure.traceback.rstrip().splitlines())


def _violations(run: Run) -> list[str]:
    """The broken rules with the lines that break them, after an empty line."""
    return ["", *lines(violations.by_rule_only(run), LINES_OF_A_RULE)] if run.violations else []
