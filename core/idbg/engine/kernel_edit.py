"""Run a compiled program with one kernel built from an edited source: compare what it computes, and time it.

The program is compiled again as the run compiled it, and its wrapper's kernel is replaced by the edited one and put
back: both run in the same process, on the same inputs, in the same compiled code.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from msgspec.structs import replace

from idbg.analysis.kernel_definition import build_error, function_of, redefined, without_warnings
from idbg.analysis.significance import mann_whitney
from idbg.engine.bench.kernels import TimedRuns, work_seen
from idbg.engine.bench.latency import WINDOW, settle
from idbg.engine.bench.launches import Launches, LaunchSite
from idbg.engine.bench.resources import OtherProcesses
from idbg.engine.bench.work import Work
from idbg.engine.bench.workload import call_of
from idbg.engine.compat import comparing, exceptions, kernels
from idbg.engine.instrument.wrapper_code import output_code
from idbg.engine.kerneldiff.comparison import ComparisonRun
from idbg.engine.kerneldiff.kernels.watch import Watch
from idbg.engine.kerneldiff.request import ComparisonRequest
from idbg.engine.kerneldiff.sides.run import Side, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.allowance import GIVEN_K
from idbg.engine.program.load import Model, Workload
from idbg.schema.bench import Latency
from idbg.schema.code import Kernel
from idbg.schema.diff import KernelError
from idbg.schema.errors import BadInput
from idbg.schema.kernel_edits import EDITED, ORIGINAL, EditTimes, KernelEdit, TimeChange
from idbg.schema.programs import Failure

RUNS, LEAST = 40, 8  # timed calls with each of both kernels
MOST_SECONDS, WARMUP_SECONDS = 20.0, 5.0
KEPT = 20_000  # characters of a compiler's output

COMPILE, BUILD, RUN, COMPARE, TIME = (
    "compiling the program",
    "building the edited kernel",
    "running the program with it",
    "comparing with the original and float64",
    "timing both",
)


class BuildError(Exception):
    """The edited source does not build: `line` of it (1-based) is where, 0 where it is in no line of it."""

    def __init__(self, function: str, text: str, error: Exception) -> None:
        super().__init__(str(error))
        output = exceptions.compiler_output(error)
        problem, self.line = build_error(function, text, output)
        where = f"line {self.line}: " if self.line else ""
        self.failure = Failure(
            kind="input",
            type=type(error).__name__,
            message=f"it does not build: {where}{problem}",
            hint="fix the source, and try it again",
            traceback=without_warnings(output)[:KEPT],
            line=self.line,
        )


@dataclass(frozen=True)
class EditedKernel:
    """A kernel of a run, and the version to try in its place. `random_as_eager`: the run drew random numbers as a
    comparison does, which changes kernels. `step` is called with each step as it begins.
    """

    kernel: Kernel
    edit: KernelEdit
    random_as_eager: bool
    step: Callable[[str], None]

    def tried(
        self, workload: Workload, compile: Callable[[Model], Model], request: ComparisonRequest
    ) -> KernelEdit | None:
        """The version, with what it did in this workload; None where that does not have the kernel.

        Raises BadInput where the program compiles to another source of it, or the kernel cannot be replaced.
        """
        subject = Subject(workload, input_gradients=request.backward)
        comparison = ComparisonRun(request, subject)
        program = _CompiledProgram(self.kernel)
        torch.compiler.reset()
        self.step(COMPILE)
        with comparing.observe_uncached_graphs(program.loaded, program.launches.cannot_read):
            call = compile(subject.model)
            original = self._side(ORIGINAL, program, comparison, call)
            if original.values is None:
                return replace(self.edit, failure=_of_original(original))
            if (place := program.place()) is None:
                return None
            self.step(BUILD)
            began = time.perf_counter()
            try:
                edited = self._built(place)
            except BuildError as error:
                return replace(self.edit, failure=error.failure, line=error.line)
            edit = replace(self.edit, build_s=time.perf_counter() - began)
            with_edited = partial(kernels.in_place, place.graph.module, self.kernel.name, edited)
            self.step(RUN)
            with with_edited():
                side = self._side(EDITED, program, comparison, call)
            if side.values is None:
                return replace(edit, failure=side.result.failure)
            self.step(COMPARE)
            report = comparison.of_sides(original, side, draws_as_eager=self.random_as_eager)
            edit = replace(edit, report=report, original=place.worst(ORIGINAL), edited=place.worst(EDITED))
            self.step(TIME)
            return replace(edit, times=_times(place, program.launches, comparison, call, with_edited))

    def _side(self, name: str, program: "_CompiledProgram", comparison: ComparisonRun, call: Model) -> Side:
        """One call of the compiled program, in which the launches of the kernel's graph are observed."""

        def around(stack: ExitStack) -> Model:
            if self.random_as_eager:
                stack.enter_context(comparing.random_as_eager())
            stack.enter_context(program.observed(name))
            return call

        return run_side(name, comparison.subject, around, comparison.backward)

    def _built(self, place: "_Place") -> object:
        """Raises BuildError, and BadInput where the wrapper does not define the kernel by one text."""
        try:
            statement = redefined(place.text, self.kernel.name, self.edit.text)
        except ValueError as error:
            raise BadInput(str(error), hint="only a kernel that is one text can be edited") from error
        try:
            return kernels.built(place.graph.module, statement, self.kernel.name)
        # Broad on purpose: whatever a compiler raises for the edited source is the result.
        except Exception as error:
            raise BuildError(function_of(place.text, self.kernel.name), self.edit.text, error) from error


def _of_original(side: Side) -> Failure:
    failure = side.result.failure
    assert failure is not None
    return replace(failure, message=f"the program failed with the original kernel: {failure.message}")


@dataclass
class _Place:
    """A graph whose wrapper defines the kernel, and what its launches wrote on each side."""

    kernel: Kernel
    graph: comparing.InductorGraph
    frame: str
    text: str
    watches: dict[str, Watch]

    def worst(self, side: str) -> KernelError | None:
        """The launch of the kernel that is most wrong on this side; None where none was observed."""
        launches = [each for each in self.watches[side].errors() if each.name == self.kernel.name and each.observed]
        return max(launches, key=lambda each: (each.bad, each.isolated or 0.0), default=None)


class _CompiledProgram:
    """The graphs that the program compiles to: their launches, and the places of one kernel among them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.launches = Launches()
        self._places: list[_Place] = []
        self._unlike = False  # a kernel of this name had another source
        self._side = ""  # the side that runs now
        self._called = 0

    def loaded(self, graph: comparing.InductorGraph) -> None:
        """Take in a graph that Inductor has compiled."""
        self.launches.compiled(graph)
        if graph.is_cpp_wrapper or any(graph.module is place.graph.module for place in self._places):
            return
        try:
            code = output_code(graph)
        except ValueError:  # `launches` has it as its problem
            return
        named = [kernel for kernel in code.kernels if kernel.name == self.kernel.name]
        if code.part != self.kernel.part or not named:
            return
        if named[0].source != self.kernel.source:
            self._unlike = True
            return
        watches = {side: Watch(graph, GIVEN_K, self._count) for side in (ORIGINAL, EDITED)}
        self._places.append(_Place(self.kernel, graph, code.frame, code.text, watches))
        if self._side:
            watches[self._side].start()

    def place(self) -> _Place | None:
        """Where the kernel is: in the graph of its frame, else in the first that has it. None where no graph has a
        kernel of this name. Raises BadInput where one has with another source, or its graph was not called.
        """
        if not self._places:
            if self._unlike:
                raise BadInput(
                    f"the program compiles differently now: {self.kernel.name} has another source than that of the run",
                    hint="run the program again, and edit the kernel of that run",
                )
            if self.launches.problem:
                raise BadInput(
                    f"{self.kernel.name} cannot be replaced: {self.launches.problem}",
                    hint="compile for a backend that lowers by Inductor, with Python wrappers",
                )
            return None
        called = [place for place in self._places if place.watches[ORIGINAL].called]
        if not called:
            raise BadInput(
                f"the program does not call the graph of {self.kernel.name}: nothing would run it",
                hint="edit a kernel that is launched",
            )
        return next((place for place in called if place.frame == self.kernel.frame), called[0])

    @contextmanager
    def observed(self, side: str) -> Iterator[None]:
        """While it lasts, the kernel's graphs are observed in their next call."""
        self._side = side
        for place in self._places:
            place.watches[side].start()
        try:
            yield
        finally:
            self._side = ""
            for place in self._places:
                place.watches[side].stop()

    def _count(self) -> int:
        self._called += 1
        return self._called


# Times


def _times(
    place: _Place,
    launches: Launches,
    comparison: ComparisonRun,
    compiled: Model,
    with_edited: Callable[[], AbstractContextManager[None]],
) -> EditTimes | None:
    """Time the kernel and whole calls, with the original and the edited kernel by turns. None where the timed call does
    not launch it: a backward without a loss.
    """
    subject = comparison.subject
    grad = subject.grad or comparison.backward
    with subject.restored():
        workload = Workload(subject.model, subject.args, subject.kwargs, subject.loss, grad)
        call = call_of(workload, compiled)
        work = work_seen(launches, call)
        own = {number: each for number, each in work.items() if _is_of(launches.all[number], place)}
        if not own:
            return None
        runs = {side: TimedRuns(launches, call, work) for side in (ORIGINAL, EDITED)}
        warm: dict[str, tuple[list[float], bool]] = {}
        for side, within in ((ORIGINAL, nullcontext), (EDITED, with_edited)):
            with within():
                warm[side] = settle(call, WARMUP_SECONDS)
        busy = OtherProcesses()
        each = sum(median(times[-WINDOW:]) for times, _ in warm.values())
        for _ in range(max(LEAST, min(RUNS, int(MOST_SECONDS / (3 * each + 1e-9))))):
            runs[ORIGINAL].run()
            with with_edited():
                runs[EDITED].run()
        others = busy.share()

    def change(samples: Callable[[TimedRuns], list[float]]) -> TimeChange:
        original, edited = (
            Latency.of([us / 1e3 for us in samples(timed)], 1, len(warm[side][0]), warm[side][1])
            for side, timed in runs.items()
        )
        return TimeChange(original, edited, mann_whitney(original.samples, edited.samples))

    return EditTimes(
        kernel=change(lambda timed: _per_call(timed, own)),
        call=change(lambda timed: timed.plain),
        launches=sum(each.launches for each in own.values()),
        kind="training" if subject.loss is not None else "forward",
        others=others,
    )


def _is_of(site: LaunchSite, place: _Place) -> bool:
    return site.graph.module is place.graph.module and site.launch.name == place.kernel.name


def _per_call(timed: TimedRuns, work: Mapping[int, Work]) -> list[float]:
    """Microseconds of all these launches in each call."""
    by_launch = [[us * each.launches for us in timed.samples[number]] for number, each in work.items()]
    return [sum(run) for run in zip(*by_launch, strict=False)]
