"""What fails, in which graphs may it be, and by what is the same failure known again?"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from idbg import __version__
from idbg.analysis.provenance import Provenance
from idbg.engine.capture.run import Compiling, RunCapture
from idbg.engine.compat import repros
from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.candidates import CandidateBuilder
from idbg.engine.repro.definitions import definitions_of
from idbg.engine.repro.draft import Breaks, Check, Dies, Differs, Draft, FailsCommand, Hangs, Heading, Raises, Runs
from idbg.engine.repro.error_message import fragment, shortened
from idbg.engine.repro.failed_compile import NoGraph, failed_compile, function_of, how_compiled, inline, telling
from idbg.engine.repro.recipes import without_data
from idbg.engine.repro.values import sizes_of
from idbg.engine.repro.violation import written_violation
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.errors import exception_text
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Failure, Target
from idbg.schema.repros import Signature, Sought
from idbg.schema.runs import Run
from idbg.schema.violations import Violation

_SIGNAL = re.compile(r"\bSIG[A-Z]+\b")
LEAST = 1e-3
"""Of an output's RMS: an error that is smaller is not taken for one that was a tenth of this or more."""


@dataclass(frozen=True)
class SuspectGraph:
    """One graph in which the failure may be, and sets of its nodes that are suspected, the likeliest first."""

    cutting: CandidateBuilder
    suspects: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True)
class Problem:
    """What is looked for, in graphs of which the likeliest is first; or, where the node is known, the `fixed` candidate
    that has it alone.
    """

    signature: Signature
    subjects: tuple[SuspectGraph, ...] = ()
    fixed: Candidate | None = None


@dataclass(frozen=True)
class CapturedRun:
    """What a run left behind: what was captured, what the program raised, and the run as its events tell it. `again`:
    it is another run, in which nothing was compiled: what that raised is not what is looked for.
    """

    capture: RunCapture
    error: BaseException | None
    run: Run
    again: bool = False


def problem_of(sought: Sought, failure: Failure | None, seen: CapturedRun, target: Target, seconds: float) -> Problem:
    """The problem that a sought failure poses. `seconds`: how long a try may take that is to hang.

    Raises NoGraph where no graph has it, ValueError with the reason where it cannot be looked for.
    """
    match sought.kind:
        case "check":
            check: Check = FailsCommand(sought.command, 0)  # the whole's status is asked before anything else
            return _in_graphs(seen, target, check, Signature("check", message=" ".join(sought.command)))
        case "wrong":
            return _wrong(sought, seen, target)
        case "node":
            return _from_here(sought, seen, target)
        case "failure" if failure is not None and (signal := died_of(failure)):
            place = failure.crash.frame if failure.crash else ""
            return _in_graphs(seen, target, Dies(signal), Signature("died", type=signal), first=place)
        case "hang" | "failure" if sought.kind == "hang" or (failure is not None and failure.type == "Timeout"):
            return _in_graphs(seen, target, Hangs(seconds), Signature("hung"))
        case "failure":
            return _raised(seen, failure, target)
        case _:
            raise NoGraph(f"a {sought.kind} is the program's, and no graph's")


def of_a_violation(seen: CapturedRun, violation: Violation, rules: str) -> Problem:
    """The problem of one violation: its node is known; of a rule about graphs, how little of its graph breaks it.

    Raises ValueError where the node cannot stand alone.
    """
    written = written_violation(seen.capture, violation, rules)
    signature = written.heading.signature or Signature("violation")
    assert isinstance(written.draft.check, Breaks)
    if written.draft.check.subject != "graph":
        return Problem(signature, fixed=Candidate(written.draft, written.heading, lambda: written.tensors))
    graph = seen.capture.frames[violation.node.graph.frame].graphs[violation.node.graph]
    template = replace(written.draft, arguments=(), statements=(), result="", imports=frozenset())
    return Problem(signature, (SuspectGraph(CandidateBuilder(seen.capture, graph, template, written.heading)),))


def undisclosed(problem: Problem) -> Problem:
    """The problem with candidates that have none of the program's values, but for what their statistics tell."""
    for subject in problem.subjects:
        subject.cutting.keep_data = False
    if problem.fixed is None:
        return problem
    draft = without_data(problem.fixed.draft, problem.fixed.tensors())
    return replace(problem, fixed=replace(problem.fixed, draft=draft, tensors=dict))


def died_of(failure: Failure) -> str:
    """The signal that killed the worker ("SIGSEGV"); "" where none did."""
    if failure.kind != "worker":
        return ""
    found = _SIGNAL.search(failure.crash.cause if failure.crash else failure.message)
    return found[0] if found else ""


def ends_process(failure: Failure) -> bool:
    """Whether what failed takes its process, or the device of that, with it: it must not be run to be captured."""
    return bool(died_of(failure)) or failure.type in ("Timeout", "AcceleratorError") or "CUDA error" in failure.message


def of_a_compile(seen: CapturedRun, target: Target) -> Problem:
    """The problem of a compile that failed, with the one graph that did.

    Raises NoGraph where the program itself shows it and no graph does; ValueError where the failure is the program's
    own, or it is not known which graph failed.
    """
    failed = failed_compile(seen.capture, seen.error, target)
    return _of_an_error(seen, target, failed.error, [failed.graph])


def _raised(seen: CapturedRun, failure: Failure | None, target: Target) -> Problem:
    """What was raised while something was compiled, or as compiled code ran."""
    graphs = list(_dynamo_graphs(seen.capture))
    if seen.again and failure is not None and failure.type:
        _, _, said_alone = failure.message.rpartition(f"{failure.type}: ")
        return _raising(seen, target, Raises(failure.type, ""), said_alone, graphs)
    try:
        return of_a_compile(seen, target)
    except ValueError:
        if seen.error is None or not graphs:
            raise NoGraph("no graph of Dynamo's has it") from None
        return _of_an_error(seen, target, seen.error, graphs)


def _of_an_error(seen: CapturedRun, target: Target, error: BaseException, graphs: Sequence[Graph]) -> Problem:
    link = telling(error)
    return _raising(
        seen, target, Raises(type(link).__name__, "", function=function_of(link)), exception_text(link), graphs
    )


def _raising(seen: CapturedRun, target: Target, check: Raises, text: str, graphs: Sequence[Graph]) -> Problem:
    """The problem of an exception of this type, with this message."""
    message = shortened(text)
    check = replace(check, fragment=fragment(message))
    signature = Signature("compile", type=check.error, message=check.fragment)
    title = f"{check.error}: {message[0] if message else ''}".rstrip(": ")
    return _problem(seen, target, check, signature, graphs, title, message[1:])


def _wrong(sought: Sought, seen: CapturedRun, target: Target) -> Problem:
    """A result that is wrong: in the graphs of the run, first in that of the accused kernel."""
    report = seen.run.diff
    failed = [] if report is None else [diff for diff in (*report.outputs, *report.gradients) if diff.failed]
    accused = None
    if report is not None:
        accused = report.culprit if sought.launch is None else report.kernels[sought.launch]
    if not failed and sought.launch is None:
        raise ValueError("the last run has no result that is wrong: compare it first (d)")
    check = how_wrong(failed)
    graphs = list(_dynamo_graphs(seen.capture, accused.frame if accused else ""))
    worst = failed[0].name if failed else accused.name if accused else ""
    title = f"compiled, {worst} is wrong ({_WRONG[check.wrong]})"
    problem = _problem(seen, target, check, Signature("wrong", message=check.wrong), graphs, title, ())
    if accused is None or accused.graph is None or report is None:
        return problem
    return replace(problem, subjects=tuple(_suspected(problem.subjects, seen.run, report, sought.launch)))


_WRONG = {"values": "values", "nan": "NaN or infinities that eager has not", "form": "dtype, shape or structure"}


def how_wrong(failed: Sequence[TensorDiff]) -> Differs:
    """The check by which the wrong results of a comparison are known again."""
    for diff in failed:
        if any(counts is not None and counts.disagree for counts in (diff.nan, diff.posinf, diff.neginf)):
            return Differs("nan")
        if diff.reference is not None and diff.test is not None and diff.reference.shape != diff.test.shape:
            return Differs("form")
        if diff.reference is not None and diff.test is not None and diff.reference.dtype != diff.test.dtype:
            return Differs("form")
    return Differs("values", least=min(LEAST, max(map(_relative, failed), default=LEAST) / 10))


def _relative(diff: TensorDiff) -> float:
    """How large an error is, as far as records tell: |d| over the largest value at the worst element."""
    if diff.max_rel is None or diff.max_abs is None or not diff.max_abs > 0:
        return LEAST
    largest = abs(float(diff.worst.reference)) if diff.worst and isinstance(diff.worst.reference, (int, float)) else 0.0
    return diff.max_abs / max(largest, diff.max_abs)


def _suspected(
    subjects: Sequence[SuspectGraph], run: Run, report: DiffReport, launch: int | None
) -> Iterator[SuspectGraph]:
    """The subjects with what the accused kernels compute, as nodes of Dynamo's graphs."""
    provenance = Provenance(run)
    kernels = [report.kernels[launch]] if launch is not None else [one for one in report.kernels if one.bad]
    for subject in subjects:
        graph = subject.cutting.graph.id
        sets = []
        for kernel in kernels:
            if kernel.graph is not None and kernel.graph.frame == graph.frame:
                nodes = [NodeId(kernel.graph, name) for name in kernel.nodes]
                above = {one.name for node in nodes for one in provenance.counterparts(node, graph)}
                sets.append(frozenset(above & subject.cutting.flow.reads.keys()))
        yield replace(subject, suspects=tuple(one for one in sets if one))


def _from_here(sought: Sought, seen: CapturedRun, target: Target) -> Problem:
    """The nodes that feed one node: nothing is known to be wrong with them."""
    if sought.node is None:
        raise ValueError("no node was given")
    frame = seen.capture.frames.get(sought.node.graph.frame)
    graph = frame.graphs.get(sought.node.graph) if frame else None
    if graph is None or sought.node.name not in graph.by_name:
        raise ValueError(f"the worker holds no node {sought.node.name} of the {sought.node.graph} graph: run it again")
    node = graph.by_name[sought.node.name]
    title = f"{node.name} ({node.target}) of the {graph.id.stage} graph, and what feeds it"
    if not node.op.startswith("call"):
        raise ValueError(f"{node.name} is an argument of the graph: nothing feeds it")
    problem = _problem(seen, target, Runs(), Signature("none"), [graph], title, ())
    cutting = problem.subjects[0].cutting
    cutting.heading = replace(cutting.heading, source=f"{node.file}:{node.line}" if node.file else "")
    return replace(problem, fixed=cutting.candidate(cutting.flow.feeding(node.name), [node.name]))


def _in_graphs(seen: CapturedRun, target: Target, check: Check, signature: Signature, first: str = "") -> Problem:
    graphs = list(_dynamo_graphs(seen.capture, first))
    return _problem(seen, target, check, signature, graphs, str(signature), ())


def _dynamo_graphs(capture: RunCapture, first: str = "") -> Iterator[Graph]:
    """Dynamo's graphs, that of the frame `first` before the others."""
    for frame in sorted(capture.frames, key=lambda name: name != first):
        graph = capture.frames[frame].graphs.get(GraphId(frame, "dynamo"))
        if graph is not None and graph.id in capture.saved_graphs:
            yield graph


def _problem(
    seen: CapturedRun,
    target: Target,
    check: Check,
    signature: Signature,
    graphs: Sequence[Graph],
    title: str,
    message: Sequence[str],
) -> Problem:
    if not graphs:
        raise NoGraph("the program has no graph of Dynamo's")
    subjects = []
    for graph in graphs:
        compiling = seen.capture.compiles.get(graph.id.frame) or Compiling()
        sizes = sizes_of(seen.capture, graph)
        has_sizes = any(node.name in sizes and not node.tensors for node in graph.nodes)
        how, note, imports = how_compiled(target, compiling, has_sizes=has_sizes)
        travels = definitions_of(seen.capture, graph, compiling, target.backend)
        note = " ".join(filter(None, (note, *travels.notes)))
        template = Draft(
            check,
            (),
            (),
            "",
            how,
            imports=frozenset(imports) | travels.imports,
            definitions=travels.sources,
            settings=(*compiling.settings, *travels.settings, *repros.globals_changed()),
            modes=compiling.modes,
            rules=inline(target.rules) if "RULES" in how else "",
        )
        first = next((node for node in graph.nodes if node.file), None)
        heading = Heading(
            title,
            f"idbg {__version__} and torch {torch.__version__}",
            tuple(message),
            f"{first.file}:{first.line}" if first else "",
            note,
            signature,
        )
        subjects.append(SuspectGraph(CandidateBuilder(seen.capture, graph, template, heading)))
    return Problem(signature, tuple(subjects))
