"""What every backend does with a compiled frame: capture, check, then lower or refuse."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from torch.fx import GraphModule

from idbg.accelerators.model import Accelerator
from idbg.checking.check import ONLY_PRINTED
from idbg.engine.capture.frame import FrameCapture
from idbg.engine.capture.run import OWN_WORK, Compiling, RunCapture, capturing, current, phase
from idbg.engine.compat import caches, exceptions, fx, lowering, registrations, tracing
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.failures.owners import is_own
from idbg.engine.repro import violation_repro
from idbg.schema import events
from idbg.schema.errors import ConstraintViolation, OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, Part
from idbg.schema.violations import Violation
from idbg.traces.records import Problem

_log = logging.getLogger(__name__)

PARTS: tuple[Part, ...] = ("forward", "backward", "inference")  # as lowering.aot_autograd takes their compilers


class Backend(Protocol):
    """How one backend lowers a graph. `checks`: its graphs are checked against the accelerator's rules."""

    name: str
    checks: bool

    def compile(self, job: "Job") -> Compiled:
        """The callable that runs `job.gm`."""
        ...


@dataclass
class Job:
    """One frame that a backend compiles."""

    gm: GraphModule
    inputs: list[object]
    real_inputs: list[object]
    options: dict[str, object]
    checks: bool
    strict: bool
    accelerator: Accelerator
    capture: RunCapture
    frame: FrameCapture
    violations: list[Violation] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Whether strict mode will refuse this frame: tracing goes on, so that every violation is reported."""
        return bool(self._rejected())

    @property
    def lowers(self) -> bool:
        """Whether its graphs are still lowered: not after a graph that the backend would be given is refused.
        Violations of the post-grad stage are only known for what is lowered, and the rest is lowered too, so that all
        are reported.
        """
        return all(violation.node.graph.stage in ONLY_PRINTED for violation in self._rejected())

    def _rejected(self) -> list[Violation]:
        return [violation for violation in self.violations if self.strict and violation.severity == "reject"]

    def check_dynamo(self) -> None:
        """Capture Dynamo's graph and check it; printed graphs are checked as they are read."""
        if self.checks:
            self.frame.check = self.check
        graph = self.frame.dynamo(self.gm)
        self.capture.save_graph(graph.id, self.gm, self.real_inputs)
        if self.checks:
            self.check(graph)

    def check(self, graph: Graph) -> None:
        """Check a graph against the rules."""
        self.violations += self.capture.check(graph)

    def through_aot(self, lower: Callable[[Part, GraphModule, Sequence[object]], Compiled]) -> Compiled:
        """The callable that runs the frame, with each ATen graph lowered by `lower`, without decompositions."""
        lowerings = [self.lowering(part, partial(lower, part)) for part in PARTS]
        return lowering.aot_autograd(*lowerings)(self.gm, self.inputs)

    def lowering(self, part: Part, lower: Compiler) -> Compiler:
        """`lower`, an ATen compiler, with the graph captured and checked first."""

        def compiler(gm: GraphModule, inputs: Sequence[object], **kwargs: object) -> Compiled:
            with phase(self.capture, OWN_WORK):
                graph = self.frame.part(gm, part)
                self.capture.save_graph(graph.id, gm, [] if part == "backward" else self.real_inputs)
                if self.checks:
                    self.check(graph)
            try:
                lowered = lower(gm, inputs, **kwargs) if self.lowers else lowering.boxed(gm.forward)
            except Exception as error:  # a backward may be compiled long after its frame
                self.capture.compiles[self.frame.frame].fail(error)
                raise
            finally:
                with phase(self.capture, OWN_WORK):
                    self.frame.part_done(part)
            if part != "backward":
                return lowered
            self.frame.backward_ran = False
            return lowering.on_first_call(lowered, self.frame.backward_called)

        return compiler


@dataclass(eq=False)
class TargetBackend:
    """One backend with its rules: a session lowers through it, and a user's own torch.compile can be given it.

    Outside of a session it collects its findings in `violations`, and logs them if it does not refuse.
    """

    backend: Backend
    accelerator: Accelerator
    strict: bool
    options: dict[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)  # of torch.compile, for a backend of the program's
    repros: Path = Path("debug_artifacts/repros")
    rules: str = ""
    capture: RunCapture | None = None

    @property
    def __name__(self) -> str:
        """What torch calls the backend in its messages."""
        return f"idbg {self.backend.name}"

    def with_options(self, options: dict[str, object]) -> "TargetBackend":
        """The same backend with these options of torch.compile in place of its own."""
        return replace(self, options=options)

    def __call__(self, gm: GraphModule, inputs: list[object], **_: object) -> Compiled:
        if (capture := current()) is not None:
            return self._compile(capture, gm, inputs)
        if self.capture is None:
            self.capture = RunCapture(0, _logged, self.accelerator)
        known = len(self.violations)
        with capturing(self.capture) as capture:
            compiled = self._compile(capture, gm, inputs)
        for violation in self.violations[known:]:
            _log.warning("%s", violation)
        return compiled

    def __repr__(self) -> str:
        return self.__name__

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The findings outside of a session, over all compiles."""
        return tuple(self.capture.violations) if self.capture else ()

    def is_argument(self, violation: Violation) -> bool:
        """Whether an argument of a graph breaks the rule, and not a computed value."""
        frame = self.capture.frames.get(violation.node.graph.frame) if self.capture else None
        graph = frame.graphs.get(violation.node.graph) if frame else None
        return graph is not None and not graph.by_name[violation.node.name].op.startswith("call")

    def _compile(self, capture: RunCapture, gm: GraphModule, inputs: list[object]) -> Compiled:
        frame = capture.frame(tracing.current_frame())
        job = Job(
            gm,
            inputs,
            fx.real_inputs(gm),
            self.options,
            self.backend.checks,
            self.strict,
            self.accelerator,
            capture,
            frame,
        )
        compiling = capture.compiles[frame.frame] = Compiling(self.options, self.arguments)
        capture.settings_read(compiling)
        try:
            with tracing.observed(), caches.graph_cache_bypassed(lambda: registrations.outside_the_key(is_own)):
                with phase(capture, OWN_WORK):
                    job.check_dynamo()
                compiled = self.backend.compile(job)
        except BaseException as error:  # a backend may raise anything; all of it is passed on to torch
            if exceptions.is_restart(error):
                capture.restarted(tracing.current_frame())
                raise
            compiling.fail(error)
            capture.outcomes.errors[tracing.current_frame()] = error  # the program may catch it, and say nothing
            if not isinstance(error, Exception):  # such as SystemExit, which torch records nothing of
                capture.outcomes.problems[tracing.current_frame()] = Problem(type(error).__name__, str(error))
            raise
        finally:
            with phase(capture, OWN_WORK):
                frame.finish()
                capture.stages.frame_done(frame)
        if job.refused:
            refusal = ConstraintViolation(job.violations, accelerator=self.accelerator.name, repro=self._repro(job))
            capture.outcomes.errors[tracing.current_frame()] = refusal
            raise refusal
        return compiled

    def _repro(self, job: Job) -> str:
        violation = next(each for each in job.violations if each.severity == "reject")
        try:
            return str(violation_repro(job.capture, violation, rules=self.rules, folder=self.repros))
        except (OutputError, ValueError, TypeError, RuntimeError, LookupError) as error:
            _log.warning("no repro was written: %s", error)  # the violations matter more
            return ""


def _logged(event: SessionEvent) -> None:
    """Log an event outside of a session, if it is a note to the user."""
    if isinstance(event, events.Noted):
        _log.log(logging.getLevelNamesMapping()[event.level.upper()], event.text)
