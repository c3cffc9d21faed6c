"""Where does torch measure candidates, and choose one: of templates for an op, of configurations for a kernel?"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Protocol, cast

from idbg.engine.compat.patched import patched, when_lowering
from idbg.engine.compat.tracing import current_frame

Safely = Callable[[Callable[..., None]], Callable[..., None]]
"""What makes a listener harmless."""

NO_TIME = "it was not measured: torch does not say why"


class Candidate(NamedTuple):
    """One of several: its time in seconds, or why there is none."""

    name: str
    seconds: float | None
    about: str = ""
    error: str = ""


class Tuned(NamedTuple):
    """What was measured, in which compile (torch's id) and part; `cached`: nothing was measured, but found.
    `seconds`: that it took.
    """

    frame: str
    part: str
    op: str
    candidates: tuple[Candidate, ...]
    chosen: str
    node: str = ""
    kernel: str = ""
    inputs: str = ""
    seconds: float | None = None
    cached: bool = False


Tell = Callable[[Tuned], None]
_Pairs = Iterable[tuple[str, object]]


class _Choice(Protocol):
    """A candidate for an op, as torch has it."""

    name: str


class _Tensor(Protocol):
    def get_size(self) -> Sequence[object]: ...

    def get_dtype(self) -> object: ...


class _Config(Protocol):
    kwargs: Mapping[str, object]
    num_warps: int
    num_stages: int


class _Launcher(Protocol):
    config: _Config

    def __hash__(self) -> int: ...


class _Descent(Protocol):
    cached_benchmark_results: Mapping[_Pairs, float]


class _Function(Protocol):
    __name__: str


class _Kernel(Protocol):
    """A Triton kernel with its configurations."""

    inductor_meta: Mapping[str, object]
    fn: _Function
    coordesc_tuner: _Descent


@contextmanager
def tuning_told(tell: Tell, safely: Safely) -> Iterator[None]:
    """Tell of each choice that is made by measuring, as it is made."""

    @contextmanager
    def patches() -> Iterator[None]:
        with ExitStack() as stack:
            _Templates(tell, safely).enter(stack)
            _configurations(tell, safely, stack)
            yield

    with when_lowering(patches):
        yield


class _Templates:
    """The choice of an op's kernel: each candidate is known by its identity, from its making to its measuring."""

    def __init__(self, tell: Tell, safely: Safely) -> None:
        self._tell = tell
        self._come, self._end, self._fail = safely(self._came), safely(self._ended), safely(self._failed)
        self._nodes: dict[int, tuple[str, str, str]] = {}  # node, frame and part of each candidate
        self._errors: dict[int, str] = {}
        self._measured = False

    def enter(self, stack: ExitStack) -> None:
        from torch._inductor.ir import ChoiceCaller
        from torch._inductor.select_algorithm import AlgorithmSelectorCache as Selector

        stack.enter_context(patched(Selector, "__call__", self._call))
        stack.enter_context(patched(Selector, "do_autotuning", self._do))
        stack.enter_context(patched(Selector, "autotune", self._autotune))
        stack.enter_context(patched(Selector, "benchmark_choice", self._benchmark))
        stack.enter_context(patched(ChoiceCaller, "mark_failed", self._mark))

    def _call(self, original: Callable[..., object]) -> Callable[..., object]:
        def called(selector: object, name: str, choices: list[_Choice], *args: object, **kwargs: object) -> object:
            self._come(choices)
            return original(selector, name, choices, *args, **kwargs)

        return called

    def _do(self, original: Callable[..., object]) -> Callable[..., object]:
        def done(
            selector: object, name: str, input_nodes: Sequence[_Tensor], *args: object, **kwargs: object
        ) -> object:
            choices = kwargs.get("choices") or args[3]  # after layout, input_gen_fns and inputs_key
            self._measured, began = False, time.monotonic()
            timings: Mapping[_Choice, float] | None = None
            try:
                timings = cast("Mapping[_Choice, float] | None", original(selector, name, input_nodes, *args, **kwargs))
                return timings
            finally:
                self._end(name, input_nodes, choices, timings or {}, time.monotonic() - began)

        return done

    def _autotune(self, original: Callable[..., object]) -> Callable[..., object]:
        def tuned(*args: object, **kwargs: object) -> object:
            self._measured = True
            return original(*args, **kwargs)

        return tuned

    def _benchmark(self, original: Callable[..., object]) -> Callable[..., object]:
        def benchmarked(cls: object, choice: _Choice, *args: object, **kwargs: object) -> object:
            try:
                return original(cls, choice, *args, **kwargs)
            except BaseException as error:  # torch's to handle: only heard on its way
                self._fail(choice, error)
                raise

        return benchmarked

    def _mark(self, original: Callable[..., object]) -> Callable[..., object]:
        def marked(choice: _Choice) -> None:
            handled = sys.exc_info()[1]
            held = sys._getframe(1).f_locals.get("e")  # torch has the error in hand there, and tells only a log
            self._fail(choice, handled if isinstance(handled, TimeoutError) else held or handled)
            original(choice)

        return marked

    def _came(self, choices: list[_Choice]) -> None:
        from torch._inductor.virtualized import V

        node = getattr(getattr(V.graph, "current_node", None), "name", "")
        for choice in choices:
            self._nodes[id(choice)] = node, current_frame(), _part(V.graph)

    def _failed(self, choice: _Choice, error: BaseException | None) -> None:
        first = str(error).strip().partition("\n")[0] if error is not None else ""
        self._errors[id(choice)] = f"{type(error).__name__}: {first}"[:300] if error is not None else "did not compile"

    def _ended(
        self,
        op: str,
        input_nodes: Sequence[_Tensor],
        choices: list[_Choice],
        timings: Mapping[_Choice, float],
        took: float,
    ) -> None:
        if not timings and not self._errors:
            return  # it is measured elsewhere, later
        candidates = [self._candidate(choice, timings.get(choice)) for choice in choices]
        candidates.sort(key=lambda each: math.inf if each.seconds is None else each.seconds)
        node, frame, part = self._nodes.get(id(choices[0]), ("", current_frame(), ""))
        self._errors.clear()
        self._tell(
            Tuned(
                frame=frame or current_frame(),
                part=part,
                op=op,
                candidates=tuple(candidates),
                chosen=candidates[0].name if candidates[0].seconds is not None else "",
                node=node,
                inputs=", ".join(map(_tensor, input_nodes)),
                seconds=took,
                cached=not self._measured,
            )
        )

    def _candidate(self, choice: _Choice, milliseconds: float | None) -> Candidate:
        about = str(getattr(choice, "description", "") or "")[:300]
        if milliseconds is not None and math.isfinite(milliseconds):
            return Candidate(choice.name, milliseconds / 1e3, about)
        return Candidate(choice.name, None, about, self._errors.get(id(choice), NO_TIME))


def _part(graph: object) -> str:
    if getattr(graph, "is_backward", False):
        return "backward"
    return "inference" if getattr(graph, "is_inference", False) else "forward"


def _tensor(node: _Tensor) -> str:
    """ "float32[64, 32]"; of a size that is not known, its symbol."""
    sizes = ", ".join(map(str, node.get_size()))
    return f"{str(node.get_dtype()).removeprefix('torch.')}[{sizes}]"


def _configurations(tell: Tell, safely: Safely, stack: ExitStack) -> None:
    """The choice of a Triton kernel's configuration, at its first call; then the search from the best one onward."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    def all_configs(original: Callable[..., object]) -> Callable[..., object]:
        def benchmarked(kernel: _Kernel, *args: object, **kwargs: object) -> object:
            began = time.monotonic()
            timings = original(kernel, *args, **kwargs)
            of_all(kernel, timings, time.monotonic() - began)
            return timings

        return benchmarked

    @safely
    def of_all(kernel: _Kernel, timings: Mapping[_Launcher, float], took: float) -> None:
        reasons = getattr(kernel, "benchmark_failure_reasons", {})
        found = [_measured(_config(each.config), timing, reasons.get(each)) for each, timing in timings.items()]
        tell(_of_kernel(kernel, "configuration", found, took))

    def descent(original: Callable[..., object]) -> Callable[..., object]:
        def descended(kernel: _Kernel, launcher: object, *args: object, **kwargs: object) -> object:
            began = time.monotonic()
            best = original(kernel, launcher, *args, **kwargs)
            of_descent(kernel, best, time.monotonic() - began)
            return best

        return descended

    @safely
    def of_descent(kernel: _Kernel, best: _Launcher, took: float) -> None:
        results = kernel.coordesc_tuner.cached_benchmark_results
        found = [_measured(_named(config), timing, None) for config, timing in results.items()]
        told = _of_kernel(kernel, "configuration, coordinate descent", found, took)
        tell(told._replace(chosen=_config(best.config)))

    stack.enter_context(patched(CachingAutotuner, "benchmark_all_configs", all_configs))
    stack.enter_context(patched(CachingAutotuner, "_coordinate_descent_tuning", descent))


def _measured(config: str, milliseconds: float, reason: object) -> Candidate:
    if math.isfinite(milliseconds):
        return Candidate(config, milliseconds / 1e3)
    words = str(getattr(reason, "name", "")).lower().replace("_", " ")
    return Candidate(config, None, error=words or "torch left it out: it spills registers, or cannot be launched")


def _of_kernel(kernel: _Kernel, op: str, found: list[Candidate], took: float) -> Tuned:
    found.sort(key=lambda each: math.inf if each.seconds is None else each.seconds)
    compile_id = getattr(kernel, "compile_id", None)
    return Tuned(
        frame=str(compile_id) if compile_id is not None else "",
        part="backward" if getattr(kernel, "is_backward", False) else "",
        op=op,
        candidates=tuple(found),
        chosen=found[0].name if found and found[0].seconds is not None else "",
        kernel=str(kernel.inductor_meta.get("kernel_name") or kernel.fn.__name__),
        seconds=took,
    )


def _config(config: _Config) -> str:
    """A Triton configuration in words: "XBLOCK=128, num_warps=4, num_stages=1"."""
    return _named((*sorted(config.kwargs.items()), ("num_warps", config.num_warps), ("num_stages", config.num_stages)))


def _named(pairs: _Pairs) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)
