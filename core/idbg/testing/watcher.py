"""Watch what a test compiles, and fail the test if it does not meet the test's conditions.

The fixture `idbg` is a `Watcher`. A failure names every place, and the folder of a session with all details.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from idbg.accelerators.parse import parse
from idbg.accelerators.registry import NO_RULES, rules_for
from idbg.format.amounts import counted
from idbg.format.file_names import from_here
from idbg.reports.baseline import kind_of, line
from idbg.reports.fail_kinds import findings_of
from idbg.schema import events
from idbg.schema.diff import Comparison
from idbg.schema.errors import OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.programs import NO_ACCELERATOR, Failure, Program, Target
from idbg.schema.runs import Run
from idbg.testing.recording import Recording
from idbg.views.diagnostics import Diagnostic, diagnostics

if TYPE_CHECKING:
    from idbg.engine.kerneldiff.request import Backend
    from idbg.engine.watching import Watched

EVERYTHING = ("failure", "mismatch", "reject", "break", "recompile")
MOST = 20  # places in a message
NOTHING = (
    "nothing was compiled while it was watched, so nothing is known of it; what was compiled before is not compiled "
    "again: call torch._dynamo.reset() first, or say must_compile=False"
)


class Found(AssertionError):
    """A test's condition is not met. `diagnostics` are the findings; `session` is the folder with all details."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = (), session: Path | None = None) -> None:
        super().__init__(message)
        self.diagnostics, self.session = tuple(diagnostics), session


class WatchResult:
    """The result of one watch. `run` has what was captured so far; None while nothing was."""

    def __init__(self, recording: Recording, number: int) -> None:
        self._recording, self._number = recording, number

    @property
    def run(self) -> Run | None:
        return self._recording.history.runs.get(self._number)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The findings, the worst first."""
        return diagnostics(self.run) if self.run is not None else []


class Watcher:
    """Watches what one test compiles. Each block or call is a run of the test's session, which is stored if one fails.

    An `accelerator` is a preset's name or a TOML file. Kinds to fail on are those of --fail-on: failure, mismatch,
    change, violation, reject, fallback, pad, break, recompile.
    """

    def __init__(self, program: Program, output: Path, name: str = "", *, live: bool = False) -> None:
        self.program = program
        self.recording = Recording(program, output, name, live=live)
        self._runs = 0

    @contextmanager
    def watched(
        self, *, accelerator: str = "", fail_on: Sequence[str] = EVERYTHING, must_compile: bool = True
    ) -> Iterator[WatchResult]:
        """Fail if what is compiled meanwhile, by any torch.compile for any backend, has one of these findings.

        With an `accelerator`, its rules are checked on Dynamo's graphs and ATen's. It also fails if nothing is
        compiled, unless `must_compile` is false. Raises BadInput for an unknown kind or accelerator.
        """
        __tracebackhide__ = True
        from idbg.engine.watching import watching

        kinds = findings_of(fail_on)
        with self._run(accelerator) as (capture, result), watching(capture):
            yield result
        self._judge(result, kinds, must_compile=must_compile)

    @contextmanager
    def captured(self, *, accelerator: str = "") -> Iterator[None]:
        """Capture what is compiled meanwhile, without a judgement."""
        from idbg.engine.watching import watching

        with self._run(accelerator, notes=False) as (capture, _), watching(capture):
            yield

    def assert_accepts(
        self, function: Callable[..., Any], *args: Any, accelerator: str, at_worst: str = "fallback", **kwargs: Any
    ) -> None:
        """Fail if the accelerator does not accept this call of the function: as it is, padded, or with fallbacks.

        `at_worst` "pad" allows no fallbacks, "accept" no padding either. Backward graphs are checked too if gradients
        are recorded.
        """
        __tracebackhide__ = True
        fail_on = {"fallback": ("reject",), "pad": ("fallback",), "accept": ("pad",)}
        if at_worst not in fail_on:
            raise ValueError(f"at_worst is {at_worst!r}; it is one of {', '.join(fail_on)}")
        self._apart(function, [(args, kwargs)], "mock", fail_on[at_worst], accelerator)

    def assert_no_breaks(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Fail if this call of the function has a graph break."""
        __tracebackhide__ = True
        self._apart(function, [(args, kwargs)], "eager", ("break",))

    def assert_no_recompiles(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], *, dynamic: bool | None = None
    ) -> None:
        """Fail if one of these calls, each a tuple of arguments, recompiles what an earlier one has compiled.

        `dynamic` is torch.compile's.
        """
        __tracebackhide__ = True
        self._apart(function, [(call, {}) for call in calls], "eager", ("recompile",), dynamic=dynamic)

    def assert_same_numbers(
        self,
        function: Callable[..., Any],
        *args: Any,
        backend: "Backend" = "inductor",
        reference: "Backend" = "eager",
        loss: Callable[..., Any] | None = None,
        backward: bool = False,
        atol: float | None = None,
        rtol: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Fail if the backend's results for this call differ from eager's (or "float64"'s, or another backend's).

        A backend is a name, or a callable as torch.compile takes it. Without tolerances a result is wrong if it is
        further from float64 than eager's own rounding explains. Gradients are compared with a `loss` of the output, or
        `backward`. `idbg.KernelDiff` documents each argument. Like it, this resets what Dynamo has compiled.
        """
        __tracebackhide__ = True
        from idbg.engine.kerneldiff.api import ModelDiff
        from idbg.engine.kerneldiff.request import name_of
        from idbg.engine.watching import compared

        how = Comparison(reference=name_of(reference), backward=backward, atol=atol, rtol=rtol)
        diff = ModelDiff(
            function,
            args,
            kwargs,
            loss=loss,
            backward=backward,
            reference=reference,
            test=backend,
            atol=atol,
            rtol=rtol,
        )
        with self._run("", how, name_of(backend)) as (capture, result):
            compared(capture, diff)
        self._judge(result, findings_of(("failure", "mismatch")))

    def _apart(
        self,
        function: Callable[..., Any],
        calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
        backend: str,
        fail_on: Sequence[str],
        accelerator: str = "",
        dynamic: bool | None = None,
    ) -> None:
        """Compile and call the function where nothing else captures it, and judge."""
        __tracebackhide__ = True
        from idbg.engine.watching import Apart

        apart = Apart(function, backend, dynamic)
        try:
            with self._run(accelerator) as (capture, result):
                for args, kwargs in calls:
                    apart.call(capture, *args, **kwargs)
        finally:
            apart.end()
        self._judge(result, findings_of(("failure", *fail_on)))

    @contextmanager
    def _run(
        self, accelerator: str, comparison: Comparison | None = None, backend: str = "", *, notes: bool = True
    ) -> "Iterator[tuple[Watched, WatchResult]]":
        """One run of the session. An exception of the block is recorded as the run's failure, and raised."""
        from idbg.engine.watching import Watched, ended

        text = rules_for(Target(accelerator=accelerator))[0] if accelerator else NO_RULES
        target = Target(backend=backend, accelerator=accelerator or NO_ACCELERATOR, rules=text)
        began = time.monotonic()
        self._runs += 1
        events_of_run = _Run(self.recording, self._runs, self.program, target, comparison)
        capture = Watched(self._runs, events_of_run.emit, parse(text) if accelerator else None)
        capture.backend_called = events_of_run.begin
        error: BaseException | None = None
        try:
            yield capture, WatchResult(self.recording, self._runs)
        except BaseException as raised:  # passed on to pytest
            error = raised
            raise
        finally:
            # a skip is no failure, and is a BaseException; a Found names its own findings
            is_failure = isinstance(error, Exception) and not isinstance(error, Found)
            failure = ended(capture, error if is_failure else None, self.program)
            if error is not None and not isinstance(error, Exception) and events_of_run.has_begun:
                failure = Failure(
                    kind="cancelled", message=f"the test ended before it was over: {type(error).__name__}"
                )
            if notes or not events_of_run.is_empty:  # a test that compiles nothing may fail: that is no session
                events_of_run.end(failure, time.monotonic() - began, checked=bool(accelerator))
            if is_failure and error is not None and notes:
                error.add_note(self.kept())

    def _judge(self, result: WatchResult, kinds: frozenset[str], *, must_compile: bool = True) -> None:
        __tracebackhide__ = True
        found = [each for each in result.diagnostics if kind_of(each) in kinds and each.rule != "empty"]
        nothing = must_compile and (result.run is None or not result.run.graphs)
        if not found and not nothing:
            return
        lines = [f"{kind_of(each)}: {line(each)}" for each in found[:MOST]]
        lines += [f"and {counted(len(found) - MOST, 'finding')} more"] * (len(found) > MOST)
        lines += [NOTHING] * nothing
        raise Found("\n".join((*lines, self.kept())), found, self.recording.folder)

    def kept(self) -> str:
        """Store the session; returns where it is, or why it is not stored."""
        try:
            folder = from_here(str(self.recording.keep()))
        except OutputError as error:
            return f"idbg: the session is not kept: {error.in_one_line}"
        return f"idbg: session: {folder}   (idbg-tui {folder})"

    def close(self) -> None:
        """The test is over."""
        self.recording.close()


class _Run:
    """The events of one run. They are held back until it is known for which backend it is."""

    def __init__(
        self, recording: Recording, number: int, program: Program, target: Target, comparison: Comparison | None
    ) -> None:
        self.recording, self.number, self.comparison = recording, number, comparison
        self.program, self.target = program, target
        self._waiting: list[SessionEvent] | None = []

    @property
    def has_begun(self) -> bool:
        """Whether something was compiled."""
        return self._waiting is None

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened: nothing was compiled, and Dynamo did not run."""
        return self._waiting is not None and not self._waiting

    def emit(self, event: SessionEvent) -> None:
        with self.recording.lock:
            if self._waiting is not None:
                self._waiting.append(event)
            else:
                self.recording.emit(event)

    def begin(self, backend: str) -> None:
        """Start the run for this backend; a later backend is noted."""
        with self.recording.lock:
            if self._waiting is None:
                text = f"what is compiled from here on is also given to the backend {backend}"
                self.recording.emit(events.Noted(level="info", text=text))
                return
            waiting, self._waiting = self._waiting, None
            target = self.target if self.target.backend else msgspec.structs.replace(self.target, backend=backend)
            started = events.RunStarted(
                run=self.number, program=self.program, target=target, comparison=self.comparison
            )
            for event in (started, *waiting):
                self.recording.emit(event)

    def end(self, failure: Any, seconds: float, *, checked: bool) -> None:
        """End the run; a run in which nothing happened is not recorded."""
        if self.is_empty and failure is None and self.comparison is None:
            return
        if self._waiting is not None:
            self.begin(self.target.backend or "none")
        run = self.recording.history.runs[self.number]
        ended_event = events.RunEnded(
            run=self.number, verdict="clean", seconds=seconds, failure=failure, checked=checked
        )
        run.apply(ended_event)  # its verdict is that of its worst stage
        self.recording.emit(msgspec.structs.replace(ended_event, verdict=run.verdict))
