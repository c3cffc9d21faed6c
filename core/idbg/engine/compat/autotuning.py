"""Record what torch chooses by measuring: the template of an op, the configuration of a Triton kernel."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, cast

from idbg.engine.compat.hooks import Feature, caller, hooked
from idbg.engine.compat.tracing import current_frame

NO_TIME = "not measured: torch gives no reason"


class Candidate(NamedTuple):
    """A candidate: its time in seconds, or the reason that it has none."""

    name: str
    seconds: float | None
    about: str = ""
    error: str = ""


class Tuned(NamedTuple):
    """A choice in the compile `frame` (torch's id). `cached`: found in a cache; `seconds`: of the measurement."""

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


_Pairs = Iterable[tuple[str, object]]
_Call = Callable[..., object]


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


def observe_autotuning(feature: Feature, done: Callable[[Tuned], None]) -> AbstractContextManager[None]:
    """While it lasts, `done` gets each choice that torch makes by measuring, as it is made."""
    templates, configurations = _Templates(done), _Configurations(done)
    selector, tuner = "AlgorithmSelectorCache", "CachingAutotuner"
    wrappers: dict[str, _Call] = {
        f"{selector}.__call__": templates.select,
        f"{selector}.do_autotuning": templates.do_autotuning,
        f"{selector}.autotune": templates.autotune,
        f"{selector}.benchmark_choice": templates.benchmark_choice,
        "ChoiceCaller.mark_failed": templates.mark_failed,
        f"{tuner}.benchmark_all_configs": configurations.benchmark_all_configs,
        f"{tuner}._coordinate_descent_tuning": configurations.coordinate_descent_tuning,
    }
    return hooked(feature, wrappers)


class _Templates:
    """The choice of an op's kernel. A candidate is identified by its id, from its creation to its measurement."""

    def __init__(self, done: Callable[[Tuned], None]) -> None:
        self._done = done
        self._nodes: dict[int, tuple[str, str, str]] = {}  # node, frame and part of each candidate
        self._errors: dict[int, str] = {}
        self._measured = False

    def select(
        self, call: _Call, selector: object, name: str, choices: list[_Choice], *args: object, **kwargs: object
    ) -> object:
        self._created(choices)
        return call(selector, name, choices, *args, **kwargs)

    def do_autotuning(
        self, call: _Call, selector: object, name: str, input_nodes: Sequence[_Tensor], *args: object, **kwargs: object
    ) -> object:
        choices = cast("list[_Choice]", kwargs.get("choices") or args[3])  # after layout, input_gen_fns and inputs_key
        self._measured, began = False, time.monotonic()
        timings: Mapping[_Choice, float] | None = None
        try:
            timings = cast("Mapping[_Choice, float] | None", call(selector, name, input_nodes, *args, **kwargs))
            return timings
        finally:
            self._ended(name, input_nodes, choices, timings or {}, time.monotonic() - began)

    def autotune(self, call: _Call, *args: object, **kwargs: object) -> object:
        self._measured = True
        return call(*args, **kwargs)

    def benchmark_choice(self, call: _Call, cls: object, choice: _Choice, *args: object, **kwargs: object) -> object:
        try:
            return call(cls, choice, *args, **kwargs)
        except BaseException as error:  # torch handles it
            self._failed(choice, error)
            raise

    def mark_failed(self, call: _Call, choice: _Choice) -> None:
        handled = sys.exc_info()[1]
        local = caller().f_locals.get("e")  # torch has the error in a variable there, and writes it only to a log
        self._failed(choice, handled if isinstance(handled, TimeoutError) else local or handled)
        call(choice)

    def _created(self, choices: list[_Choice]) -> None:
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
            return  # it is measured later, by another call
        candidates = [self._candidate(choice, timings.get(choice)) for choice in choices]
        candidates.sort(key=lambda each: math.inf if each.seconds is None else each.seconds)
        node, frame, part = self._nodes.get(id(choices[0]), ("", current_frame(), ""))
        self._errors.clear()
        self._done(
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
    """ "float32[64, 32]"; an unknown size is its symbol."""
    sizes = ", ".join(map(str, node.get_size()))
    return f"{str(node.get_dtype()).removeprefix('torch.')}[{sizes}]"


class _Configurations:
    """The choice of a Triton kernel's configuration at its first call, and the coordinate descent from the best one."""

    def __init__(self, done: Callable[[Tuned], None]) -> None:
        self._done = done

    def benchmark_all_configs(self, call: _Call, kernel: _Kernel, *args: object, **kwargs: object) -> object:
        began = time.monotonic()
        timings = cast("Mapping[_Launcher, float]", call(kernel, *args, **kwargs))
        took = time.monotonic() - began
        reasons = getattr(kernel, "benchmark_failure_reasons", {})
        found = [_measured(_config(each.config), timing, reasons.get(each)) for each, timing in timings.items()]
        self._done(_of_kernel(kernel, "configuration", found, took))
        return timings

    def coordinate_descent_tuning(
        self, call: _Call, kernel: _Kernel, launcher: object, *args: object, **kwargs: object
    ) -> object:
        began = time.monotonic()
        best = cast("_Launcher", call(kernel, launcher, *args, **kwargs))
        took = time.monotonic() - began
        results = kernel.coordesc_tuner.cached_benchmark_results
        found = [_measured(_named(config), timing, None) for config, timing in results.items()]
        tuned = _of_kernel(kernel, "configuration, coordinate descent", found, took)
        self._done(tuned._replace(chosen=_config(best.config)))
        return best


def _measured(config: str, milliseconds: float, reason: object) -> Candidate:
    if math.isfinite(milliseconds):
        return Candidate(config, milliseconds / 1e3)
    words = str(getattr(reason, "name", "")).lower().replace("_", " ")
    return Candidate(config, None, error=words or "torch skipped it: it spills registers, or cannot be launched")


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
    """A Triton configuration as text: "XBLOCK=128, num_warps=4, num_stages=1"."""
    return _named((*sorted(config.kwargs.items()), ("num_warps", config.num_warps), ("num_stages", config.num_stages)))


def _named(pairs: _Pairs) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)
