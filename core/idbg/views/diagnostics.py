"""List what is wrong with a run: failures, wrong numbers, violations, breaks, recompiles.

SARIF, JUnit, Markdown, `--fail-on`, baselines and the pytest plug-in all report this one list.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from os.path import isabs, normpath, relpath
from typing import Literal

import msgspec

from idbg.analysis.decisions import breaks
from idbg.analysis.decisions.breaks import suggestions
from idbg.analysis.decisions.frames import resumed
from idbg.analysis.decisions.recompile_advice import advice_on
from idbg.analysis.decisions.recompiles import place_of as guard_place
from idbg.analysis.decisions.recompiles import timelines
from idbg.checking.check import Check
from idbg.constraints import Finding
from idbg.format import failures
from idbg.format.amounts import few
from idbg.format.file_names import short
from idbg.format.processes import end_words
from idbg.format.verdicts import raises_words, verdict_words
from idbg.schema.bench import Row, set_to
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.graphs import NodeId
from idbg.schema.processes import ProcessReport
from idbg.schema.programs import Failure
from idbg.schema.ranks import RankComparison
from idbg.schema.runs import History, Run
from idbg.schema.violations import SEVERITIES, Severity, Violation, count, problem
from idbg.views import ranks, recompiles, remarks, steps
from idbg.views.advice import sentence
from idbg.views.blame import STRUCTURE, blame_sentence, blamed_line, cause, later_calls
from idbg.views.criteria import because, form_parts

DiagnosticKind = Literal["failure", "mismatch", "change", "rank", "violation", "break", "recompile"]
Level = Literal["error", "warning", "note"]

KINDS: tuple[DiagnosticKind, ...] = (  # worst first
    "failure",
    "mismatch",
    "change",
    "rank",
    "violation",
    "break",
    "recompile",
)
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
SIGNS: dict[Level, str] = {"error": "✘", "warning": "⚠", "note": "·"}
NODES = 3  # named in a message
PROCESS = "process"
"""The rule of what a process failed in, beside the main one."""
# addresses, and numbers that are counted up by torch: another run has others
_PASSING = re.compile(r"0x[0-9a-fA-F]+|\d+")


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, or that costs, at one place of the user's; `count` is how often (of a violation: nodes).

    `rule` is the broken rule's name, torch's title of a break, the criterion that a tensor failed by, or the kind of a
    failure. `file` "" where no line of the user's is known. `detail` has the figures, `fix` is what to do about it,
    `help` the address or text that the rule rests on. `key` is the same for the same thing in another run, also where
    lines have moved.
    """

    kind: DiagnosticKind
    level: Level
    rule: str
    message: str
    program: str
    file: str = ""
    line: int = 0
    detail: str = ""
    fix: str = ""
    help: str = ""
    severity: Severity | Literal[""] = ""
    accelerator: str = ""
    nodes: tuple[NodeId, ...] = ()
    count: int = 1
    key: str = ""


def diagnostics(run: Run) -> list[Diagnostic]:
    """All of a run, as far as it has come, the worst first. A cancelled run has those that it had by then."""
    violations = of_violations(run, run.violations, run.target.accelerator)
    return _worst_first([*_wrong(run), *violations, *_breaks(run), *_recompiles(run)])


def wrong(run: Run) -> list[Diagnostic]:
    """What failed in a run, and where its numbers are wrong or changed."""
    return _worst_first([*_wrong(run)])


def _wrong(run: Run) -> Iterator[Diagnostic]:
    yield from _failures(run)
    yield from of_processes(run.processes.values(), run)
    yield from _mismatches(run)
    yield from _changes(run)


def of_history(history: History, find: Callable[[Run], list[Diagnostic]] = diagnostics) -> list[Diagnostic]:
    """All of a session's `last_runs`, of its benchmark, its processes and its ranks, each once, the worst first."""
    by_key = {found.key: found for run in last_runs(history) for found in find(run)}
    alone = [] if history.runs else of_processes(history.processes.values())
    by_key |= {found.key: found for found in (*of_benchmark(history), *alone)}
    if history.ranks is not None:
        ended = ended_ranks(history.ranks)
        named = [each for each in history.processes.values() if each.rank in ended]
        for found in of_processes(named, history.last):  # the comparison of the ranks has those
            by_key.pop(found.key, None)
        by_key |= {found.key: found for found in of_ranks(history.ranks)}
    return sorted(by_key.values(), key=badness)


def of_benchmark(history: History) -> list[Diagnostic]:
    """One for each benchmark row whose wrong numbers are the session's verdict."""
    return [_of_row(row) for row in history.wrong_rows]


def of_processes(processes: Iterable[ProcessReport], run: Run | None = None) -> list[Diagnostic]:
    """One for each of these processes, of a `run`, that failed: by a signal, with an exit status or in its log; and for
    each whose numbers are wrong.
    """
    return [_of_process(process, run) for process in processes if process.verdict in ("failed", "wrong")]


def _of_process(process: ProcessReport, run: Run | None) -> Diagnostic:
    name = _PASSING.sub("", process.name) if process.rank is None else process.name
    words = end_words(process.ended) if process.is_wrong else process.said or process.verdict
    why = f": {process.ended.failure}" if process.ended is not None and process.ended.failure else ""
    is_wrong = process.verdict == "wrong"
    verb = "was " if words.startswith("killed") else "" if process.is_wrong or words == "failed" else "compiles: "
    return Diagnostic(
        kind="mismatch" if is_wrong else "failure",
        level="error",
        rule=PROCESS,
        message=f"the process {process.name} {verb}{words}{why}",
        program=run.program.label if run is not None else "",
        file=run.program.path if run is not None and run.program.path.endswith(".py") else "",
        key=_key("mismatch" if is_wrong else "failure", PROCESS, name, words),
    )


def _of_row(row: Row) -> Diagnostic:
    where = [row.device, row.dtype, f"batch {row.batch}" if row.batch else "", set_to(row)]
    conditions = f" ({', '.join(filter(None, where))})" if any(where) else ""
    why = f": {row.diff_note}" if row.diff_note else ""
    return Diagnostic(
        kind="mismatch",
        level="error",
        rule="benchmark",
        message=f"the numbers of {row.backend}{conditions} differ from eager's{why}",
        program=row.program,
        file=row.file if row.file.endswith(".py") else "",
        key=_key("mismatch", "benchmark", row.program, row.backend, *where),
    )


def of_ranks(found: RankComparison) -> list[Diagnostic]:
    """One for each thing in which the ranks of a job differ; what stopped the job comes first."""
    levels: dict[str, Level] = {"error": "error", "warning": "warning"}
    listed = [
        Diagnostic(
            kind="rank",
            level=levels.get(ranks.level(each), "note"),
            rule=each.kind,
            message=ranks.sentence(each),
            program=found.program,
            file=each.place[0],
            line=each.place[1],
            count=len(each.sides[0].ranks),
            key=_key("rank", each.kind, found.program, each.frame, str(each.nth), each.what, short(each.place[0])),
        )
        for each in found.differences
    ]
    return _worst_first(listed)


def ended_ranks(found: RankComparison) -> set[int]:
    """The ranks whose end is a finding of the comparison."""
    sides = (side for each in found.differences if each.kind == "ended" for side in each.sides)
    return {rank for side in sides for rank in side.ranks}


def changes(now: Sequence[Diagnostic], before: Sequence[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """What is there now and was not before, and what was and is not any more: by their keys."""
    known, still = {each.key for each in before}, {each.key for each in now}
    return [each for each in now if each.key not in known], [each for each in before if each.key not in still]


def last_runs(history: History) -> list[Run]:
    """The last run of each program for each target, in the order in which they were made: those before are past. What
    was compared stands beside what was not, and a run that was cancelled replaces none.
    """
    last: dict[str, Run] = {}
    comparisons = {run.number for run in history.comparisons()}
    for run in history.runs.values():
        if run.compared and run.verdict != "waiting" and run.number not in comparisons:
            continue  # compared again since, perhaps in another way
        request = (run.program, msgspec.structs.replace(run.target, rules=""), run.comparison)
        key = repr(request)  # which has tables, that cannot be hashed
        if run.verdict != "waiting" or key not in last:
            last[key] = run
    return sorted(last.values(), key=lambda run: run.number)


def of_check(check: Check) -> list[Diagnostic]:
    """What each accelerator of a check finds, and what of the run is wrong beside that; the worst first."""
    found = [*_failures(check.run), *of_processes(check.run.processes.values(), check.run)]
    found += [*_breaks(check.run), *_recompiles(check.run)]
    for result in check.accelerators:
        violations = (violation for findings in result.findings for violation in findings.violations())
        found += of_violations(check.run, violations, result.name)
    return _worst_first(found)


def of_violations(run: Run, violations: Iterable[Violation], accelerator: str) -> Iterator[Diagnostic]:
    """One for each rule, line and finding, with the nodes that it is about."""
    alike: dict[tuple[object, ...], list[Violation]] = {}
    for each in violations:
        alike.setdefault((each.rule, each.severity, each.file, each.line, each.found, each.wanted), []).append(each)
    for group in alike.values():
        if not (number := count(group)):
            continue  # an earlier stage has them
        first = group[0]
        nodes = tuple(each.node for each in group)
        names = few(dict.fromkeys(node.name for node in nodes), NODES)
        yield _keyed(
            run,
            Diagnostic(
                kind="violation",
                level=_LEVELS[first.severity],
                rule=first.rule,
                message=f"{problem(first.found, first.wanted)} ({names})",
                program=run.program.label,
                file=first.file,
                line=first.line,
                fix=Finding.of(first).advice,
                help=first.source,
                severity=first.severity,
                accelerator=accelerator,
                nodes=nodes,
                count=number,
            ),
            first.found,
            first.wanted,
            accelerator,
            first.severity,
        )


_LEVELS: dict[Severity, Level] = {
    "reject": "error",
    "fallback": "warning",
    "pad": "warning",
    "tile": "warning",
    "slow": "warning",
    "unknown": "note",
}


def _failures(run: Run) -> Iterator[Diagnostic]:
    """What failed, each once: the run, frames that the program went on without, sides of a comparison. That strict
    rules stopped a compile is shown by its violations, and a cancelled run has not failed.
    """
    sides = [side.failure for side in run.diff.sides] if run.diff else []
    compared = run.diff.failure if run.diff else None
    by_message: dict[str, Failure] = {}
    for failure in (run.failure, *(each.failure for each in run.frame_failures), *sides, compared):
        if failure is not None and failure.kind not in ("cancelled", "constraints"):
            by_message.setdefault(failure.message, failure)
    alone = run.diff.raises_alone if run.diff else None
    for failure in by_message.values():
        file, line = failures.place_of(failure)
        message, rule = str(failures.headline(failure)), str(failure.kind)
        if run.diff is not None and alone is not None and failure is alone.failure:
            rule, facts = "raises", (raises_words(run.diff), failure.first_line, blame_sentence(run.diff))
            message = "; ".join(filter(None, facts))
        yield _keyed(run, _error(run, "failure", rule, message, file, line, failure.hint), message)
    if run.verdict == "empty":
        yield _keyed(run, _error(run, "failure", "empty", verdict_words(run), run.program.path, 0, ""))
    if run.exit_status and run.failure is None:
        message = f"the script ended itself with status {run.exit_status}"
        yield _keyed(run, _error(run, "failure", "exit", message, run.program.path, 0, ""), str(run.exit_status))


def _mismatches(run: Run) -> Iterator[Diagnostic]:
    """Each tensor that failed, at the line that is to blame, where one is known."""
    if run.diff is None:
        return
    file, line = blamed_line(run.diff)
    tensors = [("output", each) for each in run.diff.outputs] + [("gradient", each) for each in run.diff.gradients]
    for noun, tensor in sorted(tensors, key=lambda each: not form_parts(each[1])):
        if tensor.failed:
            kinds = form_parts(tensor)
            rule = next(iter((*kinds, *tensor.failed_by)), "mismatch")
            called = f"{noun} {tensor.name}" if "draws" not in tensor.failed_by else tensor.name
            name, of = f"{called} of {run.diff.test}", f"differs from {run.diff.reference}'s"
            is_of_numbers = bool(set(tensor.failed_by) - STRUCTURE)
            maker = cause(run.diff) if is_of_numbers else ""
            message = f"{maker} makes {name} wrong" if maker else f"{name} {of}"
            message += "" if is_of_numbers else f": {_why(tensor)}"
            if kinds and is_of_numbers:
                message = f"{name} has {'; '.join(kinds.values())}{f': {maker}' if maker else ''}"
            if later := _later_call(run.diff, tensor):
                message += f": {later}"
            at = (file, line) if file and not later else _compared_function(run, tensor.name)
            found = _error(run, "mismatch", rule, message, *at, "")
            found = msgspec.structs.replace(found, detail=f"{of}: {_why(tensor)}" if is_of_numbers else "")
            yield _keyed(run, found, noun, tensor.name, run.diff.test)
    if run.diff.steps is not None and run.diff.steps.verdict in ("failed", "error"):
        message = steps.sentence(run.diff.steps, run.diff.test)
        found = _error(run, "mismatch", "training", message, file or run.program.path, line, "")
        yield _keyed(run, found, "training", run.diff.test)


def _later_call(report: DiffReport, tensor: TensorDiff) -> str:
    """Which later call gave it, and what changed before that; "" of a tensor of a first call."""
    name, _, number = tensor.name.partition(": ")[0].rpartition(" call ")
    return next((each for each in later_calls(report) if each.startswith(f"call {number} of {name} ")), "")


def _compared_function(run: Run, tensor: str) -> tuple[str, int]:
    """Where the function begins that gave this tensor: of a script's several, the one that "NAME: out" names, or the
    only one that no tensor names. The file alone where that is not one.
    """
    assert run.diff is not None
    names = {each.name.partition(": ")[0] for each in (*run.diff.outputs, *run.diff.gradients) if ": " in each.name}
    name, colon, _ = tensor.partition(": ")
    name = name.rpartition(" call ")[0] or name
    begins = {(one.function, one.file, one.line): None for one in run.frames.values() if not resumed(one.function)}
    places = [(file, line) for function, file, line in begins if colon and function == name]
    places = places or [(file, line) for function, file, line in begins if function not in names]
    return places[0] if len(places) == 1 and places[0][0] else (run.program.path, 0)


def _changes(run: Run) -> Iterator[Diagnostic]:
    """The stage that changed the numbers, within the rounding of the program's dtypes."""
    stage = run.diff.changed_stage if run.diff is not None else None
    if stage is None or run.diff is None or stage.made_by is None:
        return
    found = Diagnostic(
        kind="change",
        level="warning",
        rule=stage.stage,
        message=blame_sentence(run.diff),
        program=run.program.label,
        file=stage.file or run.program.path,
        line=stage.line,
    )
    yield _keyed(run, found, stage.stage, stage.made_by.name, run.diff.test)


def _why(tensor: TensorDiff) -> str:
    return because(tensor) or remarks.tensor_note(tensor) or ", ".join(tensor.failed_by) or "it failed"


def _breaks(run: Run) -> Iterator[Diagnostic]:
    for place in breaks.places(run):
        tips = list(suggestions(place.first))
        found = Diagnostic(
            kind="break",
            level="warning",
            rule=place.first.kind or "graph break",
            message=place.words,
            program=run.program.label,
            file=place.file,
            line=place.line,
            fix=sentence(tips[0], run.trials) if tips else (place.first.hints or ("",))[0].partition("\n")[0],
            help=place.first.page,
            count=place.count,
        )
        yield _keyed(run, found, place.words)


def _recompiles(run: Run) -> Iterator[Diagnostic]:
    """One for each function and guard that it was compiled again for, with how often."""
    for timeline in timelines(run):
        rows = [row for row in timeline.recompiles if not row.refused and (row.failed or row.reason)]
        guards = [(row.failed[0].source, row.failed[0].what) if row.failed else ("", "") for row in rows]
        for guard, times in Counter(guards).items():
            row = rows[guards.index(guard)]
            failed = row.failed[0] if row.failed else None
            file, line = guard_place(run, failed) if failed else ("", 0)
            tips = advice_on(failed, timeline, run) if failed and not row.is_broken else []
            found = Diagnostic(
                kind="recompile",
                level="warning",
                rule="recompile",
                message=f"{timeline.function} is compiled again: {recompiles.why(row)}",
                program=run.program.label,
                file=file or timeline.file,
                line=line or timeline.line,
                fix=sentence(tips[0], run.trials) if tips else "",
                count=times,
            )
            yield _keyed(run, found, timeline.function, *guard)


def _error(run: Run, kind: DiagnosticKind, rule: str, message: str, file: str, line: int, fix: str) -> Diagnostic:
    return Diagnostic(
        kind=kind, level="error", rule=rule, message=message, program=run.program.label, file=file, line=line, fix=fix
    )


def _keyed(run: Run, found: Diagnostic, *same: str) -> Diagnostic:
    """With a key of its kind, rule, program and file, and of what else stays the same while the program does."""
    parts = [found.kind, found.rule, _stable_program(run), stable_file(run, found.file), *same]
    kept = [part if found.kind == "violation" else _PASSING.sub("#", part) for part in parts]
    return msgspec.structs.replace(found, key=_key(*kept))


def _key(kind: str, *same: str) -> str:
    digest = hashlib.sha256("\0".join((kind, *same)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{kind}-{digest}"


def stable_file(run: Run, file: str) -> str:
    """The file as another checkout has it too: relative to where the program was started, if it lies below."""
    if not isabs(file) or not run.program.cwd:
        return file
    relative = relpath(file, run.program.cwd)
    return short(file) if relative.startswith("..") else relative


def _stable_program(run: Run) -> str:
    """The program as it is named from where it was started."""
    program = run.program
    path = program.path if program.module else stable_file(run, normpath(program.path))
    return msgspec.structs.replace(program, path=path).label


def _worst_first(found: list[Diagnostic]) -> list[Diagnostic]:
    """Sorted, and each with a key of its own: what is the same at another line is the second of its kind, and so on."""
    seen: Counter[str] = Counter()
    unique = []
    for each in sorted(found, key=lambda each: (each.file, each.line)):
        seen[each.key] += 1
        nth = seen[each.key]
        unique.append(each if nth == 1 else msgspec.structs.replace(each, key=f"{each.key}.{nth}"))
    return sorted(unique, key=badness)


def badness(found: Diagnostic) -> tuple[int, int, int, int]:
    """The worst has the least."""
    severity = SEVERITIES.index(found.severity) if found.severity else 0
    return LEVELS.index(found.level), KINDS.index(found.kind), severity, -found.count
