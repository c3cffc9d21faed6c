"""Describe the failure to search for: the graphs that may have it, and the check that recognizes it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from idbg.analysis.provenance import Provenance
from idbg.engine.capture.run import Compiling, RunCapture
from idbg.engine.compat import repros
from idbg.engine.minify.candidates import CandidateBuilder
from idbg.engine.repro.definitions import definitions_of
from idbg.engine.repro.draft import (
    Breaks,
    Candidate,
    Check,
    Dies,
    Differs,
    Draft,
    FailsCommand,
    Hangs,
    Heading,
    Raises,
    Runs,
)
from idbg.engine.repro.error_message import fragment, shortened
from idbg.engine.repro.failed_compile import NoGraph, failed_compile, function_of, how_compiled, inline, telling
from idbg.engine.repro.recipes import without_data
from idbg.engine.repro.values import sizes_of
from idbg.engine.repro.violation import VERSIONS, violation_candidate
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.errors import exception_text
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Failure, Target
from idbg.schema.repros import Signature, Sought
from idbg.schema.runs import Run
from idbg.schema.violations import Violation

_SIGNAL = re.compile(r"\bSIG[A-Z]+\b")
LEAST = 1e-3
"""Share of an output's RMS: the largest value of the error below which a candidate counts as right."""


@dataclass(frozen=True)
class SuspectGraph:
    """A graph that may have the failure, and sets of its nodes to try first, the likeliest first."""

    builder: CandidateBuilder
    suspects: tuple[frozenset[str], ...] = ()

    @property
    def nodes(self) -> frozenset[str]:
        """All nodes that a script can hold."""
        return frozenset(self.builder.flow.reads)


@dataclass(frozen=True)
class Problem:
    """A failure, and the graphs that may have it, the likeliest first; or, if the failing node is known, the `fixed`
    candidate that has it alone.
    """

    signature: Signature
    graphs: tuple[SuspectGraph, ...] = ()
    fixed: Candidate | None = None


@dataclass(frozen=True)
class CapturedRun:
    """A run: what was captured, what the program raised, and the run's record. `again`: a second run in which nothing
    was compiled, so that what it raised is not the failure to search for.
    """

    capture: RunCapture
    error: BaseException | None
    run: Run
    again: bool = False


def problem_of(
    sought: Sought, failure: Failure | None, captured: CapturedRun, target: Target, seconds: float
) -> Problem:
    """The problem of a sought failure. `seconds`: the limit of a try that is expected to hang.

    Raises NoGraph if no graph has it, ValueError with the reason if it cannot be searched for.
    """
    match sought.kind:
        case "check":
            check: Check = FailsCommand(sought.command, 0)  # the search sets the whole's exit status
            return _in_graphs(captured, target, check, Signature("check", message=" ".join(sought.command)))
        case "wrong":
            return _wrong(sought, captured, target)
        case "node":
            return _from_here(sought, captured, target)
        case "failure" if failure is not None and (signal := died_of(failure)):
            place = failure.crash.frame if failure.crash else ""
            return _in_graphs(captured, target, Dies(signal), Signature("died", type=signal), first=place)
        case "hang" | "failure" if sought.kind == "hang" or (failure is not None and failure.type == "Timeout"):
            return _in_graphs(captured, target, Hangs(seconds), Signature("hung"))
        case "failure":
            return _raised(captured, failure, target)
        case _:
            raise NoGraph(f"a {sought.kind} is the program's, and no graph's")


def of_a_violation(captured: CapturedRun, violation: Violation, rules: str) -> Problem:
    """The problem of one violation: its node alone; for a rule about graphs, its graph.

    Raises ValueError if the node cannot stand alone.
    """
    whole = violation_candidate(captured.capture, violation, rules)
    signature = whole.heading.signature or Signature("violation")
    assert isinstance(whole.draft.check, Breaks)
    if whole.draft.check.subject != "graph":
        return Problem(signature, fixed=whole)
    graph = captured.capture.frames[violation.node.graph.frame].graphs[violation.node.graph]
    template = replace(whole.draft, arguments=(), statements=(), result="", imports=frozenset())
    return Problem(signature, (SuspectGraph(CandidateBuilder(captured.capture, graph, template, whole.heading)),))


def undisclosed(problem: Problem) -> Problem:
    """The problem with candidates that have none of the program's values, only their rounded statistics."""
    for graph in problem.graphs:
        graph.builder.keep_data = False
    if problem.fixed is None:
        return problem
    draft = without_data(problem.fixed.draft, problem.fixed.tensors())
    return replace(problem, fixed=replace(problem.fixed, draft=draft, tensors=dict))


def died_of(failure: Failure) -> str:
    """The signal that killed the worker ("SIGSEGV"); "" if none did."""
    if failure.kind != "worker":
        return ""
    found = _SIGNAL.search(failure.crash.cause if failure.crash else failure.message)
    return found[0] if found else ""


def ends_process(failure: Failure) -> bool:
    """Whether the failure ends its process or makes its device unusable: it must not be run again to be captured."""
    return bool(died_of(failure)) or failure.type in ("Timeout", "AcceleratorError") or "CUDA error" in failure.message


def of_a_compile(captured: CapturedRun, target: Target) -> Problem:
    """The problem of a failed compile, with the one graph that failed.

    Raises NoGraph if only the program itself shows it; ValueError if the failure is the program's own, or it is not
    known which graph failed.
    """
    failed = failed_compile(captured.capture, captured.error, target)
    return _of_an_error(captured, target, failed.error, [failed.graph])


def _raised(captured: CapturedRun, failure: Failure | None, target: Target) -> Problem:
    """The problem of an exception, raised by a compile or by compiled code."""
    graphs = list(_dynamo_graphs(captured.capture))
    if captured.again and failure is not None and failure.type:
        _, _, message = failure.message.rpartition(f"{failure.type}: ")
        return _raising(captured, target, Raises(failure.type, ""), message, graphs)
    try:
        return of_a_compile(captured, target)
    except ValueError:
        if captured.error is None or not graphs:
            raise NoGraph("no graph of Dynamo's has it") from None
        return _of_an_error(captured, target, captured.error, graphs)


def _of_an_error(captured: CapturedRun, target: Target, error: BaseException, graphs: Sequence[Graph]) -> Problem:
    link = telling(error)
    return _raising(
        captured, target, Raises(type(link).__name__, "", function=function_of(link)), exception_text(link), graphs
    )


def _raising(captured: CapturedRun, target: Target, check: Raises, text: str, graphs: Sequence[Graph]) -> Problem:
    """The problem of an exception of this type, with this message."""
    message = shortened(text)
    check = replace(check, fragment=fragment(message))
    signature = Signature("compile", type=check.error, message=check.fragment)
    title = f"{check.error}: {message[0] if message else ''}".rstrip(": ")
    return _problem(captured, target, check, signature, graphs, title, message[1:])


def _wrong(sought: Sought, captured: CapturedRun, target: Target) -> Problem:
    """The problem of a wrong result; the graph of the accused kernel comes first."""
    report = captured.run.diff
    failed = [] if report is None else [diff for diff in (*report.outputs, *report.gradients) if diff.failed]
    accused = None
    if report is not None:
        accused = report.culprit if sought.launch is None else report.kernels[sought.launch]
    if not failed and sought.launch is None:
        raise ValueError("the last run has no result that is wrong: compare it first (d)")
    check = how_wrong(failed)
    graphs = list(_dynamo_graphs(captured.capture, accused.frame if accused else ""))
    worst = failed[0].name if failed else accused.name if accused else ""
    title = f"compiled, {worst} is wrong ({_WRONG[check.wrong]})"
    problem = _problem(captured, target, check, Signature("wrong", message=check.wrong), graphs, title, ())
    if accused is None or accused.graph is None or report is None:
        return problem
    return replace(problem, graphs=tuple(_suspected(problem.graphs, captured.run, report, sought.launch)))


_WRONG = {
    "values": "values",
    "nan": "NaN or infinities that eager has not",
    "lost": "not the NaN or infinities that eager has",
    "form": "dtype, shape or structure",
}


def how_wrong(failed: Sequence[TensorDiff]) -> Differs:
    """The check that recognizes the wrong results of a comparison."""
    for diff in failed:
        counts = [each for each in (diff.nan, diff.posinf, diff.neginf) if each is not None]
        if any(each.disagree for each in counts):
            more = sum(each.test for each in counts) > sum(each.reference for each in counts)
            return Differs("nan" if more else "lost")
        if diff.reference is not None and diff.test is not None and diff.reference.shape != diff.test.shape:
            return Differs("form")
        if diff.reference is not None and diff.test is not None and diff.reference.dtype != diff.test.dtype:
            return Differs("form")
    return Differs("values", least=min(LEAST, max(map(_relative, failed), default=LEAST) / 10))


def _relative(diff: TensorDiff) -> float:
    """The relative error, as the script measures it."""
    return diff.relative_rmse or LEAST


def _suspected(
    graphs: Sequence[SuspectGraph], run: Run, report: DiffReport, launch: int | None
) -> Iterator[SuspectGraph]:
    """The graphs, with the nodes that the accused kernels compute as suspects."""
    provenance = Provenance(run)
    kernels = [report.kernels[launch]] if launch is not None else [one for one in report.kernels if one.bad]
    for graph in graphs:
        dynamo = graph.builder.graph.id
        sets = []
        for kernel in kernels:
            if kernel.graph is not None and kernel.graph.frame == dynamo.frame:
                nodes = [NodeId(kernel.graph, name) for name in kernel.nodes]
                sets.append(graph.nodes & {one.name for node in nodes for one in provenance.counterparts(node, dynamo)})
        yield replace(graph, suspects=tuple(filter(None, sets)))


def _from_here(sought: Sought, captured: CapturedRun, target: Target) -> Problem:
    """The problem of a node and the nodes that feed it; nothing is known to be wrong with them."""
    if sought.node is None:
        raise ValueError("no node was given")
    frame = captured.capture.frames.get(sought.node.graph.frame)
    graph = frame.graphs.get(sought.node.graph) if frame else None
    if graph is None or sought.node.name not in graph.by_name:
        raise ValueError(f"the worker holds no node {sought.node.name} of the {sought.node.graph} graph: run it again")
    node = graph.by_name[sought.node.name]
    title = f"{node.name} ({node.target}) of the {graph.id.stage} graph, and what feeds it"
    if not node.op.startswith("call"):
        raise ValueError(f"{node.name} is an argument of the graph: nothing feeds it")
    problem = _problem(captured, target, Runs(), Signature("none"), [graph], title, ())
    builder = problem.graphs[0].builder
    builder.heading = replace(builder.heading, source=f"{node.file}:{node.line}" if node.file else "")
    return replace(problem, fixed=builder.candidate(builder.flow.feeding(node.name), [node.name]))


def _in_graphs(captured: CapturedRun, target: Target, check: Check, signature: Signature, first: str = "") -> Problem:
    graphs = list(_dynamo_graphs(captured.capture, first))
    return _problem(captured, target, check, signature, graphs, str(signature), ())


def _dynamo_graphs(capture: RunCapture, first: str = "") -> Iterator[Graph]:
    """Dynamo's graphs; that of the frame `first` comes first."""
    for frame in sorted(capture.frames, key=lambda name: name != first):
        graph = capture.frames[frame].graphs.get(GraphId(frame, "dynamo"))
        if graph is not None and graph.id in capture.saved_graphs:
            yield graph


def _problem(
    captured: CapturedRun,
    target: Target,
    check: Check,
    signature: Signature,
    graphs: Sequence[Graph],
    title: str,
    message: Sequence[str],
) -> Problem:
    if not graphs:
        raise NoGraph("the program has no graph of Dynamo's")
    suspects = []
    for graph in graphs:
        compiling = captured.capture.compiles.get(graph.id.frame) or Compiling()
        sizes = sizes_of(captured.capture, graph)
        has_sizes = any(node.name in sizes and not node.tensors for node in graph.nodes)
        try:
            how, note, imports = how_compiled(target, compiling, has_sizes=has_sizes)
            travels = definitions_of(captured.capture, graph, compiling, target.backend)
        except ValueError as error:
            if not isinstance(check, Raises | FailsCommand):
                raise
            raise NoGraph(f"{error}: the program itself shows it") from error  # its file has all that it needs
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
            VERSIONS,
            tuple(message),
            f"{first.file}:{first.line}" if first else "",
            note,
            signature,
        )
        suspects.append(SuspectGraph(CandidateBuilder(captured.capture, graph, template, heading)))
    return Problem(signature, tuple(suspects))
