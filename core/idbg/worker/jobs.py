"""How does the worker do what it is asked: compile a program, or write and try a repro?"""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators.parse import parse
from idbg.engine import backends
from idbg.engine.capture.run import RunCapture, capturing
from idbg.engine.compat import gpu
from idbg.engine.compat.builds.scratch import private
from idbg.engine.decisions import record_all
from idbg.engine.failures import fallbacks
from idbg.engine.failures.describe import failure_of, is_refusal, report_frames
from idbg.engine.instrument.first_launches import first_launches
from idbg.engine.kerneldiff.kernel_attribution.script import launch_script
from idbg.engine.kerneldiff.kernel_attribution.search import AttributionResult
from idbg.engine.lowered import lowered
from idbg.engine.minify.forks.client import verified
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.forks.processes import memory_of_machine
from idbg.engine.minify.problem import CapturedRun, of_a_compile
from idbg.engine.minify.result import whole_script
from idbg.engine.program.environment import as_main, state_restored
from idbg.engine.program.load import Programs, registers
from idbg.engine.program.script import process_end_reported
from idbg.engine.program.target import check_device, conditions_of, options_of
from idbg.engine.repro import violation_of, violation_repro
from idbg.engine.repro.failed_compile import NoGraph
from idbg.schema import events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.code import OutputCode
from idbg.schema.errors import BadInput, IdbgError, OutputError, exception_text
from idbg.schema.events import RunEnded, SessionEvent
from idbg.schema.graphs import Part
from idbg.schema.programs import Failure, Target
from idbg.schema.runs import Run
from idbg.worker.comparing import RunComparison
from idbg.worker.crash_site import LAUNCHES
from idbg.worker.minifying import minify, whole_program
from idbg.worker.protocol import Compile, FindOwner, LowerKernel, MapErrors, Minify, Request, WriteRepro

REPRO_SECONDS = 300
_LOST = "after this error the GPU does nothing more for this process: the next run has another one"


class Jobs:
    """What this worker holds between requests: the loaded program, and the last run's capture for repros."""

    def __init__(self, emit: Callable[[SessionEvent], None]) -> None:
        self.emit = emit
        self.programs = Programs()
        self.last: RunCapture | None = None
        self.request: Compile | None = None
        self.error: BaseException | None = None
        self.comparing: RunComparison | None = None
        self.run: Run | None = None  # the last, as its events tell it
        self.on_host = False  # whether what graphs are called with is kept on the CPU
        self.checks = True  # whether the last run's backend asks rules

    def quiet(self) -> "Jobs":
        """One that tells nobody what it does, of the same program, and may lose its device."""
        other = Jobs(lambda event: None)
        other.programs, other.on_host = self.programs, True
        return other

    def do(self, request: Request) -> SessionEvent:
        """What the request comes to: the event that ends it."""
        match request:
            case Compile():
                return self.compile(request)
            case WriteRepro():
                return self.write_repro(request)
            case Minify():
                return minify(request, self)
            case MapErrors():
                return self.map_errors(request)
            case FindOwner():
                return self.find_owner(request)
            case LowerKernel():
                return self.lower(request)

    def compile(self, request: Compile) -> RunEnded:
        """Compile and run the program once. Whatever goes wrong in it is told in the event."""
        began = time.monotonic()
        self.last, self.request, self.error, self.comparing = None, request, None, None
        self.checks = True
        failure: Failure | None = None
        status = 0
        self.run = run = Run(request.run, request.program, request.target, time.time(), request.comparison)

        def tell(event: SessionEvent) -> None:
            run.apply(event)
            self.emit(event)

        def ended(status: int, failure: Failure | None, took_process: bool = False) -> RunEnded:
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
                took_process=took_process or lost,
            )
            run.apply(run_ended)
            return replace(run_ended, verdict=run.verdict)

        def process_ended(status: int) -> None:
            if self.last is not None:
                self.last.finish()
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            self.emit(ended(status & 0xFF, None, took_process=True))

        try:
            with process_end_reported(process_ended):
                status = self._compile(request, tell, run.codes)
        except BaseException as error:  # the worker's border: whatever ends the program is its result, told as data
            self.error = error
            failure = failure_of(error, request.program, request.target.backend)
        return ended(status, failure)

    def _compile(
        self, request: Compile, tell: Callable[[SessionEvent], None], codes: Mapping[tuple[str, Part], OutputCode]
    ) -> int:
        """Compile and run the program, and give the exit status of a script; 0 of a model. Raises what the program
        does.
        """
        check_device(request.target)
        asked_backend = backends.find(request.target.backend, partial(registers, request.program))
        options, unused = options_of(request.target, asked_backend)
        target, unused_mode = conditions_of(replace(request.target, options=options))
        for text in filter(None, (unused, unused_mode)):
            self.emit(events.Noted(level="warning", text=text))
        rules = parse(target.rules)
        self.last = capture = RunCapture(request.run, tell, rules)
        capture.on_host = self.on_host
        backend = backends.TargetBackend(
            asked_backend,
            rules,
            target.strict,
            dict(options),
            repros=Path(request.folder),
            rules=target.rules,
        )
        self.checks = backend.backend.checks
        chosen = _Chosen(backend, target, capture)
        capture.lower = lambda gm, inputs, options, own: chosen.of(own).with_options(options)(gm, inputs)
        if request.comparison is not None:
            folder = Path(request.folder)
            self.comparing = RunComparison(request.run, request.comparison, target, chosen.of, folder, tell, codes)
        try:
            with (
                capturing(capture),
                record_all(capture),
                _launches_noted(),
                fallbacks.fallback_messages(target.backend) as told,
            ):
                status = self.programs.run(request.program, target, capture, self.comparing)
                gpu.wait()  # a kernel that failed tells of it here, if nobody waited for it
            for text in told:
                frame = next(iter(capture.frames)) if len(capture.frames) == 1 else ""
                failure = fallbacks.failure(target.backend, text)
                tell(events.FrameFailed(run=request.run, frame=frame, failure=failure))
            if asked_backend.checks and (names := ", ".join(dict.fromkeys(capture.rules_without_graphs()))):
                text = f"rules that were not asked, as this run made no graph of the stages that they name: {names}"
                tell(events.Noted(level="warning", text=text))
            return status
        finally:
            if self.comparing is not None:
                self.comparing.end()

    def is_spent(self, request: Compile) -> bool:
        """Whether the request needs a process in which no other program has run."""
        return self.programs.is_spent(request.program, request.target.device)

    def write_repro(self, request: WriteRepro) -> events.ReproEnded:
        """Write the repro and run it once in a fresh process."""
        began = time.monotonic()
        try:
            path = self._write(request)
            tried = _tried(path)
        except (Exception, KeyboardInterrupt) as error:  # the worker's border: no repro may end the session
            seconds = time.monotonic() - began
            return events.ReproEnded(run=request.run, path="", failure=_no_repro(error), seconds=seconds)
        return events.ReproEnded(
            run=request.run,
            path=str(path),
            reproduced=tried.verdict == "same",
            status=tried.code,
            output=tried.printed,
            seconds=time.monotonic() - began,
        )

    def map_errors(self, request: MapErrors) -> events.ErrorsMapped:
        """Map the error over a slice of what was compared last."""
        try:
            if self.comparing is None or self.comparing.run != request.run:
                raise BadInput("the last run was not compared", hint="compare it first")
            return events.ErrorsMapped(run=request.run, map=self.comparing.map(request.name, request.index))
        except (IdbgError, RuntimeError, KeyboardInterrupt) as error:
            failure = error.failure() if isinstance(error, IdbgError) else Failure(kind="torch", message=str(error))
            return events.ErrorsMapped(run=request.run, failure=failure)

    def find_owner(self, request: FindOwner) -> events.OwnerEnded:
        """Whose the error of a launch is: the program runs again; a script that shows it is written, and tried once."""
        try:
            if self.comparing is None or self.comparing.run != request.run or self.request is None:
                raise BadInput(f"the worker no longer holds run {request.run}", hint="compare its kernels again (D)")
            with as_main(self.request.program), state_restored():
                found = self.comparing.owner(request.launch)
            self.emit(events.OwnerJudged(run=request.run, owner=found.verdict))
            return events.OwnerEnded(run=request.run, owner=_with_script(found, Path(request.folder)))
        except (Exception, KeyboardInterrupt) as error:  # the worker's border: no replay may end the session
            return events.OwnerEnded(run=request.run, failure=_no_owner(error))

    def lower(self, request: LowerKernel) -> events.KernelLowered:
        """What a kernel of the last run was lowered to."""
        kernel = request.kernel
        told = events.KernelLowered(run=request.run, frame=kernel.frame, part=kernel.part, name=kernel.name)
        try:
            if self.last is None or self.last.run != request.run:
                raise BadInput(f"the worker no longer holds run {request.run}", hint="run it again, then ask")
            return replace(told, lowered=lowered(kernel))
        except (IdbgError, OSError, KeyboardInterrupt) as error:
            failure = error.failure() if isinstance(error, IdbgError) else Failure(kind="idbg", message=str(error))
            return replace(told, failure=failure)

    def _write(self, request: WriteRepro) -> Path:
        if self.last is None or self.request is None or self.last.run != request.run:
            raise BadInput(f"the worker no longer holds run {request.run}", hint="run it again, then ask for the repro")
        target, folder = self.request.target, Path(request.folder)
        rules = request.rules or target.rules
        if request.node is not None:
            violation = violation_of(self.last, request.node, request.rule, rules)
            return violation_repro(self.last, violation, rules=rules, folder=folder)
        if self.error is not None and is_refusal(self.error):
            refused = next(violation for violation in self.last.violations if violation.severity == "reject")
            return violation_repro(self.last, refused, rules=target.rules, folder=folder)
        assert self.run is not None
        swallowed = [failed for failed in self.run.frame_failures if failed.failure.kind != "constraints"]
        if self.error is None and swallowed and all(each.error is None for each in self.last.compiles.values()):
            raise BadInput(
                f"frame {swallowed[0].frame} failed before a backend had its graph: the program is the smallest repro",
                hint="run it without torch._dynamo.config.suppress_errors, and without the except that hides it",
            )
        seen = CapturedRun(self.last, self.error, self.run)
        try:
            return whole_script(of_a_compile(seen, replace(target, rules=rules)), folder)
        except NoGraph:
            return whole_program(seen, self.request, folder)


class _Chosen:
    """The backend of each compile: the target's, or that of the program's own torch.compile if nobody chose one."""

    def __init__(self, backend: backends.TargetBackend, target: Target, capture: RunCapture) -> None:
        self._backend, self._target, self._capture = backend, target, capture
        self._called: dict[str, bool] = {}  # whether it is the program's own

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
        if any(self._called.values()):
            self._capture.emit(events.BackendsCalled(run=self._capture.run, backends=tuple(self._called)))
        if is_own and (unused := [*self._target.options, *filter(None, [self._target.mode])]):
            text = f"{name} is the program's own backend, and takes nothing of the target: not {', '.join(unused)}"
            self._capture.emit(events.Noted(level="warning", text=text))


def _launches_noted() -> AbstractContextManager[None]:
    """What each launch is given first, written where the host finds it if this process dies."""
    folder = private.folder
    return first_launches(folder / LAUNCHES) if folder is not None and folder.is_dir() else nullcontext()


def _no_repro(error: BaseException) -> Failure:
    if isinstance(error, IdbgError):
        return error.failure()
    if isinstance(error, KeyboardInterrupt):
        return Failure(kind="cancelled", message="cancelled", hint="ask for the repro again")
    return Failure(kind="idbg", type=type(error).__name__, message=f"no repro can be written: {error}")


def _with_script(found: AttributionResult, folder: Path) -> KernelAttribution:
    """The verdict with a script of its launch, which was tried; or why there is none."""
    try:
        path = launch_script(found, folder)
    except (ValueError, OutputError) as error:
        return replace(found.verdict, no_script=exception_text(error))
    try:
        tried = _tried(path)
    except IdbgError as error:
        return replace(found.verdict, script=str(path), printed=exception_text(error))
    return replace(found.verdict, script=str(path), status=tried.code, printed=tried.printed)


def _no_owner(error: BaseException) -> Failure:
    if isinstance(error, IdbgError):
        return error.failure()
    if isinstance(error, KeyboardInterrupt):
        return Failure(kind="cancelled", message="cancelled", hint="ask again whose error it is")
    message = f"whose error it is could not be found out: {exception_text(error)}"
    return Failure(kind="idbg", type=type(error).__name__, message=message)


def _tried(path: Path) -> TryResult:
    """How the repro ended in a fresh process. Raises OutputError where it takes over REPRO_SECONDS."""
    tried = verified(path, seconds=REPRO_SECONDS, memory=memory_of_machine())
    if tried.hung:
        raise OutputError(
            f"{path} was written, but ran over {REPRO_SECONDS} s", hint="run it yourself: python " + str(path)
        )
    return tried
