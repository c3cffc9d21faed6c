"""Write the verdict of a run, or of a session, in a few words."""

from collections import Counter
from collections.abc import Iterable

from idbg.format.amounts import counted, few
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.processes import end_words
from idbg.schema.diff import DiffReport
from idbg.schema.graphs import Stage
from idbg.schema.processes import ProcessEnd, ProcessReport
from idbg.schema.programs import FALLBACK, Target, Verdict
from idbg.schema.runs import History, Run
from idbg.schema.summaries import NO_RUN, SessionSummary
from idbg.schema.violations import Violation, count

STAGE_NAMES: dict[Stage, str] = {
    "dynamo": "dynamo",
    "joint": "joint",
    "forward": "forward",
    "backward": "backward",
    "inference": "inference",
    "post_grad": "post-grad",
}
"""Every stage as a sentence names it, in the order in which they come."""
_NAMED = 3  # backends
_PROCESS_WORDS: dict[Verdict, str] = {"wrong": "wrong numbers", "empty": "nothing was compiled"}


def verdict_words(run: Run) -> str:
    """The run's verdict as it is known now: "no rule broken", "17 violations (dynamo)", "nothing was compiled"; and
    what its comparison could not judge.
    """
    missing = run.diff.not_judged if run.diff is not None else ""
    return _verdict_words(run) + (f", {VERDICT_SIGNS['empty']} {missing} not judged" if missing else "")


def _verdict_words(run: Run) -> str:
    if run.verdict not in ("waiting", run.own_verdict):
        return _of_processes(run.processes.values(), run.verdict)
    match run.verdict:
        case "violations":
            broken = violation_words(run.violations)
            return f"stopped by the rules: {broken}" if run.stopped else broken
        case "wrong":
            return _wrong(run)
        case "empty":
            return "no graph is in the trace" if run.program.is_trace else "nothing was compiled"
        case "failed" if run.failure is None:
            return _failed(run)
        case "compiled" if run.children and not run.graphs:
            return f"compiled in {counted(run.children, 'other process')}"
        case "compiled" if run.diff is not None and run.diff.not_comparable:
            return f"numbers not comparable, {'no rule broken' if run.checked_rules else 'no rules checked'}"
        case "compiled":
            return "no rule broken" if run.checked_rules else "compiled, no rules checked"
        case "clean" if not run.checked_rules:  # as of a check, which asks them since
            return "numbers agree, no rules checked"
        case "waiting":
            return "not finished" if run.ended is None else "cancelled"
        case word:
            return word


def raises_words(report: DiffReport) -> str:
    """Which side raises and which returns a value; "" where both do the same."""
    if (side := report.raises_alone) is None:
        return ""
    other = report.test if side is report.sides[0] else report.reference
    return f"{side.name} raises, {other} returns a value"


def violation_words(violations: Iterable[Violation]) -> str:
    """How many, and in the graphs of which stages: "37 violations (dynamo 37, inference 20)".

    Stages show the same program: what is broken at one is mostly broken at the next too, and is counted once.
    """
    found = list(violations)
    stages = Counter(violation.node.graph.stage for violation in found)
    parts = [(name, stages[stage]) for stage, name in STAGE_NAMES.items() if stages[stage]]
    where = ", ".join(name if len(parts) == 1 else f"{name} {number:,}" for name, number in parts)
    return counted(count(found), "violation") + (f" ({where})" if where else "")


def session_words(history: History) -> str:
    """What came of the session: the numbers that a benchmark found wrong, its last run's verdict, or that of an earlier
    run whose numbers are wrong still.
    """
    if wrong := history.wrong_rows:
        return f"benchmark: {few(dict.fromkeys(row.backend for row in wrong), _NAMED)} with wrong numbers"
    run = history.deciding_run
    if run is None:
        if history.processes and not history.rows:
            return _of_processes(history.processes.values(), history.verdict)
        return f"benchmark: {counted(len(history.rows), 'row')}" if history.rows else NO_RUN
    return verdict_words(run) if run is history.last else f"run {run.number}: {verdict_words(run)}"


def process_outcome(end: ProcessEnd | None, verdict: Verdict, said: str) -> tuple[Verdict, str]:
    """The verdict of a process, and its words: that of its log, unless it ended as no process should."""
    is_wrong = end is not None and end.is_wrong
    return ("failed", end_words(end)) if is_wrong and verdict != "failed" else (verdict, said)


def _of_processes(processes: Iterable[ProcessReport], verdict: Verdict) -> str:
    """ "child-7: killed by SIGKILL", "2 of 8 ranks: failed", "2 ranks: no rule broken": those that have the verdict."""
    every = list(processes)
    found = [each for each in every if each.verdict == verdict]
    noun = "rank" if all(each.rank is not None for each in every) else "process"
    whole = counted(len(every), noun)
    if verdict == "waiting":
        return whole
    words = {each.said for each in found}
    said = words.pop() if len(words) == 1 else ""
    name = found[0].name if len(found) == 1 else f"{len(found):,} of {whole}"
    return f"{whole if len(found) == len(every) > 1 else name}: {said or _PROCESS_WORDS.get(verdict, verdict)}"


def summary_words(session: SessionSummary) -> str:
    """What came of a session in a list, and what is to be known before it is believed."""
    if session.result == NO_RUN:
        return "damaged" if session.damaged else "live" if session.live else NO_RUN
    if session.damaged:
        return f"{session.result}; damaged"
    if session.live:
        return f"live: {session.result}"
    unknown = session.ended or session.verdict == "waiting"
    return session.result if unknown else f"{session.result}, never ended"


def rules_words(target: Target) -> str:
    """Under which rules it compiles: "tpu (strict)"."""
    mode = "strict" if target.strict else "warn"
    return f"{target.accelerator} ({mode})" if target.has_rules else "no accelerator"


def _failed(run: Run) -> str:
    failures = [failed for failed in run.frame_failures if failed.failure.kind != "constraints"]
    if failures:
        fell_back = all(failed.failure.type == FALLBACK for failed in failures)
        became = "ran in eager" if fell_back else "did not compile"
        return f"{counted(len({failed.frame for failed in failures}), 'frame')} {became}"
    if run.diff is not None and (words := raises_words(run.diff)):
        return words
    side = next((side.name for side in run.diff.sides if side.failure is not None), "") if run.diff else ""
    if run.exit_status and not side:
        return f"the script ended itself with status {run.exit_status}"
    return f"{side} failed" if side else "failed"


def _wrong(run: Run) -> str:
    if run.diff is None:
        return "numbers are wrong"
    tensors = [each for each in (*run.diff.outputs, *run.diff.gradients) if each.is_tensor]
    failed = sum(tensor.failed for tensor in tensors)
    wrong = f"{failed:,} of {counted(len(tensors), 'tensor')} wrong" if failed else ""
    return ", ".join(filter(None, (wrong, effects_words(run.diff)))) or "numbers are wrong"


def effects_words(report: DiffReport) -> str:
    """What fails and is no tensor: "2 side effects not as in eager", or that random operators do; "" of none."""
    effects = sum(each.is_side_effect for each in report.outputs)
    sentence = f"{counted(effects, 'side effect')} not as in {report.reference}" if effects else ""
    return "random operators wrong" if report.only_draws_fail else sentence
