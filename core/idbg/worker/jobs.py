"""Do the worker's requests: compile a program, write a repro, search for a smaller one, attribute an error."""

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.engine import backends
from idbg.engine.capture.repeats import repeats_left_out
from idbg.engine.capture.run import RunCapture, capturing
from idbg.engine.compat import gpu
from idbg.engine.compat.builds.scratch import private
from idbg.engine.decisions import record_all
from idbg.engine.failures import fallbacks
from idbg.engine.failures.describe import failure_of, is_refusal, report_frames, with_partitioned_node
from idbg.engine.instrument.first_launches import first_launches
from idbg.engine.kerneldiff.kernel_attribution.script import launch_script
from idbg.engine.kerneldiff.kernel_attribution.search import AttributionResult
from idbg.engine.lowered import lowered
from idbg.engine.minify.forks.client import verified
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.forks.processes import memory_of_machine
from idbg.engine.minify.oracle import whole_script
from idbg.engine.minify.problem import CapturedRun, ends_process, of_a_compile
from idbg.engine.program.environment import as_main, state_restored
from idbg.engine.program.load import Programs, registers
from idbg.engine.program.script import process_end_reported
from idbg.engine.program.target import check_device, conditions_of, options_of
from idbg.engine.repro import violation_of, violation_repro
from idbg.engine.repro.failed_compile import NoGraph
from idbg.schema import events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.errors import BadInput, IdbgError, OutputError, exception_text
from idbg.schema.events import RunEnded, SessionEvent
from idbg.schema.programs import Failure, Target
from idbg.schema.runs import Run
from idbg.views.repros import next_step
from idbg.worker.children import children_captured
from idbg.worker.comparing import RunComparison
from idbg.worker.crash_site import LAUNCHES
from idbg.worker.kernel_editing import edit_kernel
from idbg.worker.minifying import minify, whole_program
from idbg.worker.protocol import (
    Compile,
    EditKernel,
    Ended,
    FindOwner,
    LowerKernel,
    MapErrors,
    Minify,
    Request,
    WriteRepro,
    failed,
)

REPRO_SECONDS = 300
_LOST = "after this error the GPU does nothing more for this process: the next run has another one"


class Jobs:
    """What the worker keeps between requests: the loaded program, and the last run's capture and comparison."""

    def __init__(self, emit: Callable[[SessionEvent], None]) -> None:
        self.emit = emit
        self.programs = Programs()
        self.last: RunCapture | None = None
        self.request: Compile | None = None
        self.error: BaseException | None = None
        self.comparing: RunComparison | None = None
        self.run: Run | None = None  # the last run's record
        self.on_host = False  # keep the inputs of graphs on the CPU
        self.checks = True  # whether the last run's backend checks rules

    def quiet(self) -> "Jobs":
        """Jobs of the same program that emit nothing, and may lose their device."""
        other = Jobs(lambda event: None)
        other.programs, other.on_host = self.programs, True
        return other

    def do(self, request: Request) -> Ended:
        """Do the request; whatever goes wrong is in the event that ends it."""
        began = time.monotonic()
        try:
            match request:
                case Compile():
                    return self.compile(request)
                case WriteRepro():
                    return self._write_repro(request, began)
                case Minify():
                    return events.MinifyEnded(run=request.run, minified=minify(request, self.emit, self.captured))
                case MapErrors():
                    comparing, _ = self._compared(request.run)
                    return events.ErrorsMapped(run=request.run, map=comparing.map(request.name, request.index))
                case FindOwner():
                    return self._find_owner(request)
                case LowerKernel():
                    return self._lower(request)
                case EditKernel():
                    return self._edit_kernel(request)
        except (Exception, KeyboardInterrupt) as error:  # the worker's border: no request may end the session
            return failed(request, _failure(request, error), time.monotonic() - began)

    def compile(self, request: Compile) -> RunEnded:
        """Compile and run the program once."""
        began = time.monotonic()
        self.last, self.request, self.error, self.comparing = None, request, None, None
        self.checks = True
        failure: Failure | None = None
        status = 0
        self.run = run = Run(request.run, request.program, request.target, time.time(), request.comparison)

        def tell(event: SessionEvent) -> None:
            run.apply(event)
            self.emit(event)

        def ended(
            status: int, failure: Failure | None, *, took_process: bool = False, replaced: bool = False
        ) -> RunEnded:
            if self.last is not None:
                report_frames(self.last, self.error, request.program, request.target.backend)
            lost = gpu.is_lost()
            if lost:
                tell(events.Noted(level="warning", text=_LOST))
            if status:
                tell(events.Noted(level="info", text=f"the script ended itself with status {status}"))
            run_ended = RunEnded(
                run=request.run,
                verdict="clean",
                seconds=time.monotonic() - began,
                failure=failure,
                checked=self.checks,
                exit_status=status,
                children=self.last.children() if self.last is not None else 0,
                took_process=took_process or lost,
                replaced=replaced,
            )
            run.apply(run_ended)
            return replace(run_ended, verdict=run.verdict)

        def process_ended(status: int | None) -> None:
            if self.last is not None:
                self.last.finish()
            if status is None:
                tell(
                    events.Noted(
                        level="info", text="the program is replaced by another (os.exec): the run ends with it"
                    )
                )
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            self.emit(ended((status or 0) & 0xFF, None, took_process=True, replaced=status is None))

        try:
            with process_end_reported(process_ended):
                status = self._compile(request, tell, run)
        except BaseException as error:  # the worker's border: whatever ends the program is its result
            self.error = error
            failure = failure_of(error, request.program, request.target.backend)
            failure = with_partitioned_node(failure, self.last)
        return ended(status, failure)

    def _compile(self, request: Compile, tell: Callable[[SessionEvent], None], run: Run) -> int:
        """Compile and run the program; the exit status of a script, 0 for a model. Raises what the program raises."""
        rules = parse(request.target.rules)
        backend, target = self._backend(request, rules)
        self.last = capture = RunCapture(request.run, tell, rules)
        capture.on_host = self.on_host
        capture.own_process = True
        capture.stages.folder = Path(request.session) if request.session else None
        self.checks = backend.backend.checks
        chosen = _Chosen(backend, target, capture)
        capture.lowered_by = lambda own: chosen.of(own).backend.name
        capture.lower = lambda gm, inputs, options, own: chosen.of(own).with_options(options)(gm, inputs)
        if request.comparison is not None:
            folder = Path(request.folder)
            self.comparing = RunComparison(run, request.comparison, target, chosen.of, folder, tell)
        try:
            with (
                capturing(capture),
                record_all(capture),
                repeats_left_out(capture) if request.comparison is not None else nullcontext(),
                _launches_noted(),
                children_captured(request.session if request.comparison is None else "", capture, self._silence),
                fallbacks.fallback_messages(target.backend) as fallen_back,
            ):
                chosen.watch, capture.fallback_messages = fallen_back.watch, fallen_back.found
                status = self.programs.run(
                    request.program, target, capture, self.comparing, self.comparing.later if self.comparing else None
                )
                gpu.wait()  # a kernel's error is raised here at the latest
            for text in dict.fromkeys(fallen_back.found):
                frame = next(iter(capture.frames)) if len(capture.frames) == 1 else ""
                failure = fallbacks.failure(chosen.names, text)
                tell(events.FrameFailed(run=request.run, frame=frame, failure=failure))
            if self.checks and (names := ", ".join(dict.fromkeys(capture.rules_without_graphs()))):
                text = f"rules that were not checked, as this run made no graph of the stages that they name: {names}"
                tell(events.Noted(level="warning", text=text))
            return status
        finally:
            if self.comparing is not None:
                self.comparing.end()

    def _silence(self) -> None:
        """This process is a fork of the worker: it has no session."""
        self.emit = lambda event: None

    def _backend(self, request: Compile | EditKernel, rules: Accelerator) -> tuple[backends.TargetBackend, Target]:
        """The request's backend, and its target as that takes it. Raises BadInput, and what its device raises."""
        check_device(request.target)
        backend = backends.find(request.target.backend, partial(registers, request.program))
        options, unused = options_of(request.target, backend)
        target, unused_mode = conditions_of(replace(request.target, options=options))
        for text in filter(None, (unused, unused_mode)):
            self.emit(events.Noted(level="warning", text=text))
        repros = Path(request.folder) if isinstance(request, Compile) else Path()
        strict = target.strict and isinstance(request, Compile)
        return backends.TargetBackend(backend, rules, strict, dict(options), repros=repros, rules=target.rules), target

    def _edit_kernel(self, request: EditKernel) -> events.KernelEdited:
        """Run the program with an edited kernel."""
        backend, target = self._backend(request, Accelerator(name="none"))
        capture = RunCapture(request.run, lambda event: None, backend.accelerator)
        edit = edit_kernel(request, target, self.programs, capture, _Chosen(backend, target, capture).of, self.emit)
        return events.KernelEdited(run=request.run, edit=edit)

    def captured(self, request: Minify) -> CapturedRun:
        """The run to search. If this process does not have it (the run ended the one that had), capture the program
        again; nothing is compiled if that ended the process, as only graphs are needed.
        """
        holder, kills = self, False
        if self.last is None or self.last.run != request.run or self.run is None:
            holder = self.quiet()
            ends = request.failure is not None and ends_process(request.failure)
            kills = ends or request.sought.kind == "hang"
            target = (
                replace(request.target, backend="eager", options={}, own_backend=False) if kills else request.target
            )
            comparison = None if kills else request.comparison
            with _at_most(request.budget.seconds if kills else 0.0):
                holder.compile(Compile(request.run, request.program, target, request.folder, comparison))
            if isinstance(holder.error, KeyboardInterrupt):
                raise holder.error
            if isinstance(holder.error, _TimeIsUp):
                raise BadInput(
                    f"the program has not ended in {request.budget.seconds:g} s with nothing compiled (--seconds)",
                    hint="no compiler makes it hang: fix the program",
                )
        if holder.last is None or holder.run is None:
            failure = holder.run.failure if holder.run else None
            raise BadInput(
                f"the program cannot be run again: {failure.message if failure else 'why is not known'}",
                hint="run it, and fix what it says",
            )
        return CapturedRun(holder.last, holder.error, holder.run, again=kills)

    def is_spent(self, request: Compile | EditKernel) -> bool:
        """Whether the request needs a new process, as another program has run in this one."""
        return self.programs.is_spent(request.program, request.target.device)

    def _write_repro(self, request: WriteRepro, began: float) -> events.ReproEnded:
        """Write the repro and run it once in a fresh process. Of a failure that its graph does not show, it is the
        whole program, if that shows it.
        """
        scripts = self._scripts(request)
        path = next(scripts)
        result = _run(path)
        if result.verdict != "same":
            with suppress(ValueError, IdbgError):  # what is written already is the repro
                whole = next(scripts, path)
                if whole != path and (again := _run(whole)).verdict == "same":
                    shutil.rmtree(path.parent)
                    path, result = whole, again
        passes = None
        if result.verdict == "passes":
            shutil.rmtree(path.parent)
            what = "graph" if request.node is None else "node"
            message = f"the script of the {what} alone was run in a fresh process, and nothing fails in it"
            passes = Failure(kind="input", message=message, hint=next_step(request.node is not None))
        return events.ReproEnded(
            run=request.run,
            path="" if passes else str(path),
            failure=passes,
            reproduced=result.verdict == "same",
            status=result.code,
            output=result.printed,
            seconds=time.monotonic() - began,
        )

    def _find_owner(self, request: FindOwner) -> events.OwnerEnded:
        """Attribute a launch's error, for which the program runs again; write a script that shows it, and run it."""
        comparing, compiled = self._compared(request.run)
        with as_main(compiled.program), state_restored():
            found = comparing.owner(request.launch)
        self.emit(events.OwnerJudged(run=request.run, owner=found.verdict))
        return events.OwnerEnded(run=request.run, owner=_with_script(found, Path(request.folder)))

    def _lower(self, request: LowerKernel) -> events.KernelLowered:
        """Read what a kernel of the last run was lowered to."""
        kernel = request.kernel
        if self.last is None or self.last.run != request.run:
            raise BadInput(f"the worker no longer holds run {request.run}", hint="run it again, then ask")
        return events.KernelLowered(
            run=request.run, frame=kernel.frame, part=kernel.part, name=kernel.name, lowered=lowered(kernel)
        )

    def _compared(self, run: int) -> tuple[RunComparison, Compile]:
        """The comparison of the last run, and its request. Raises BadInput if that is another run."""
        if self.comparing is None or self.comparing.run.number != run or self.request is None:
            raise BadInput(f"the worker holds no comparison of run {run}", hint="compare it again (D)")
        return self.comparing, self.request

    def _write(self, request: WriteRepro) -> Path:
        return next(self._scripts(request))

    def _scripts(self, request: WriteRepro) -> Iterator[Path]:
        """Write the scripts that may show it, the smallest first."""
        if self.last is None or self.request is None or self.last.run != request.run:
            raise BadInput(f"the worker no longer holds run {request.run}", hint="run it again, then ask for the repro")
        target, folder = self.request.target, Path(request.folder)
        rules = request.rules or target.rules
        if request.node is not None:
            violation = violation_of(self.last, request.node, request.rule, rules)
            yield violation_repro(self.last, violation, rules=rules, folder=folder)
            return
        if self.error is not None and is_refusal(self.error):
            refused = next(violation for violation in self.last.violations if violation.severity == "reject")
            yield violation_repro(self.last, refused, rules=target.rules, folder=folder)
            return
        assert self.run is not None
        swallowed = [failed for failed in self.run.frame_failures if failed.failure.kind != "constraints"]
        if self.error is None and swallowed and all(each.error is None for each in self.last.compiles.values()):
            raise BadInput(
                f"frame {swallowed[0].frame} failed before a backend had its graph: the program is the smallest repro",
                hint="run it without torch._dynamo.config.suppress_errors, and without the except that hides it",
            )
        captured = CapturedRun(self.last, self.error, self.run)
        try:
            yield whole_script(of_a_compile(captured, replace(target, rules=rules)), folder)
        except NoGraph:
            if self.error is None:
                raise
        if self.error is not None:
            yield whole_program(captured, self.request, folder)


class _Chosen:
    """Chooses the backend of each compile: the target's, or the program's own if the user chose none."""

    def __init__(self, backend: backends.TargetBackend, target: Target, capture: RunCapture) -> None:
        self._backend, self._target, self._capture = backend, target, capture
        self._called: dict[str, bool] = {}  # whether it is the program's own
        self.watch: Callable[[str], None] = lambda backend: None  # called before a backend is, the first time

    @property
    def names(self) -> str:
        """The backends that compiled so far."""
        return " and ".join(self._called)

    def of(self, own: Mapping[str, object]) -> backends.TargetBackend:
        """The backend where torch.compile has these arguments, {} if they name none of the program's own."""
        chosen = self._backend
        if own and self._target.own_backend:
            inner = backends.of_program(own, checks=chosen.backend.checks)
            chosen = replaced(chosen, backend=inner, arguments=own)
        self._tell(chosen.backend.name, is_own=chosen is not self._backend)
        return chosen

    def _tell(self, name: str, *, is_own: bool) -> None:
        if name in self._called:
            return
        self._called[name] = is_own
        self.watch(name)
        if any(self._called.values()):
            self._capture.emit(events.BackendsCalled(run=self._capture.run, backends=tuple(self._called)))
        if is_own and (unused := [*self._target.options, *filter(None, [self._target.mode])]):
            text = f"{name} is the program's own backend, and takes nothing of the target: not {', '.join(unused)}"
            self._capture.emit(events.Noted(level="warning", text=text))


def _launches_noted() -> AbstractContextManager[None]:
    """Write the arguments of each kernel's first launch where the host finds them if this process dies."""
    folder = private.folder
    return first_launches(folder / LAUNCHES) if folder is not None and folder.is_dir() else nullcontext()


_PROBLEMS: dict[type[Request], str] = {
    WriteRepro: "no repro can be written",
    Minify: "nothing can be made smaller",
    MapErrors: "the error cannot be mapped",
    FindOwner: "whose error it is could not be found out",
    LowerKernel: "what the kernel was lowered to cannot be read",
    EditKernel: "the edited kernel could not be tried",
}


def _failure(request: Request, error: BaseException) -> Failure:
    if isinstance(error, IdbgError):
        return error.failure()
    if isinstance(error, KeyboardInterrupt):
        return Failure(kind="cancelled", message="cancelled", hint="ask again")
    message = f"{_PROBLEMS[type(request)]}: {exception_text(error)}"
    hint = next_step(request.node is not None) if isinstance(request, WriteRepro) else ""
    return Failure(kind="idbg", type=type(error).__name__, message=message, hint=hint)


def _with_script(found: AttributionResult, folder: Path) -> KernelAttribution:
    """The verdict with a script of its launch, and what that prints; or the reason why there is none."""
    try:
        path = launch_script(found, folder)
    except (ValueError, OutputError) as error:
        return replace(found.verdict, no_script=exception_text(error))
    try:
        result = _run(path)
    except IdbgError as error:
        return replace(found.verdict, script=str(path), printed=exception_text(error))
    return replace(found.verdict, script=str(path), status=result.code, printed=result.printed)


def _run(path: Path) -> TryResult:
    """Run the repro in a fresh process. Raises OutputError if it takes over REPRO_SECONDS."""
    result = verified(path, seconds=REPRO_SECONDS, memory=memory_of_machine())
    if result.hung:
        raise OutputError(
            f"{path} was written, but ran over {REPRO_SECONDS} s", hint="run it yourself: python " + str(path)
        )
    return result


class _TimeIsUp(BaseException):
    """A BaseException, so that the program does not catch it."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _TimeIsUp in the main thread after this time; 0: no limit."""

    def over(number: int, frame: object) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
