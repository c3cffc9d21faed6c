"""Record what torch chooses by measuring: the template of an op, the configuration of a Triton kernel."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch._inductor.ir import ChoiceCaller, IRNode
    from torch._inductor.runtime.triton_compat import Config
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner, LauncherType

from msgspec.structs import replace

from idbg.engine.compat.hooks import Feature, caller, hooked
from idbg.engine.compat.names import internals
from idbg.engine.compat.tracing import current_frame, part_of
from idbg.schema.decisions.inductor import Autotuned, Choice
from idbg.schema.graphs import Part

NO_TIME = "not measured: torch gives no reason"


_Pairs = Iterable[tuple[str, object]]
_Call = Callable[..., object]


Done = Callable[[str, Autotuned], None]
"""Gets the compile (torch's id, "" where it is unknown) and what was chosen in it."""


def observe_autotuning(feature: Feature, done: Done) -> AbstractContextManager[None]:
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

    def __init__(self, done: Done) -> None:
        self._done = done
        self._nodes: dict[int, tuple[str, str, Part]] = {}  # node, frame and part of each candidate
        self._errors: dict[int, str] = {}
        self._measured = False

    def select(
        self, call: _Call, selector: object, name: str, choices: list["ChoiceCaller"], *args: object, **kwargs: object
    ) -> object:
        self._created(choices)
        return call(selector, name, choices, *args, **kwargs)

    def do_autotuning(
        self, call: _Call, selector: object, name: str, input_nodes: Sequence["IRNode"], *args: object, **kwargs: object
    ) -> object:
        # after layout, input_gen_fns and inputs_key
        choices = cast("list[ChoiceCaller]", kwargs.get("choices") or args[3])
        self._measured, began = False, time.monotonic()
        timings: Mapping[ChoiceCaller, float] | None = None
        try:
            timings = cast("Mapping[ChoiceCaller, float] | None", call(selector, name, input_nodes, *args, **kwargs))
            return timings
        finally:
            self._ended(name, input_nodes, choices, timings or {}, time.monotonic() - began)

    def autotune(self, call: _Call, *args: object, **kwargs: object) -> object:
        self._measured = True
        return call(*args, **kwargs)

    def benchmark_choice(
        self, call: _Call, cls: object, choice: "ChoiceCaller", *args: object, **kwargs: object
    ) -> object:
        try:
            return call(cls, choice, *args, **kwargs)
        except BaseException as error:  # torch handles it
            self._failed(choice, error)
            raise

    def mark_failed(self, call: _Call, choice: "ChoiceCaller") -> None:
        handled = sys.exc_info()[1]
        local = caller().f_locals.get("e")  # torch has the error in a variable there, and writes it only to a log
        self._failed(choice, handled if isinstance(handled, TimeoutError) else local or handled)
        call(choice)

    def _created(self, choices: list["ChoiceCaller"]) -> None:
        graph = internals._inductor.virtualized.V.graph
        node = getattr(getattr(graph, "current_node", None), "name", "")
        part = part_of(getattr(graph, "is_backward", False), getattr(graph, "is_inference", False))
        self._nodes.update((id(choice), (node, current_frame(), part)) for choice in choices)

    def _failed(self, choice: "ChoiceCaller", error: BaseException | None) -> None:
        first = str(error).strip().partition("\n")[0] if error is not None else ""
        self._errors[id(choice)] = f"{type(error).__name__}: {first}"[:300] if error is not None else "did not compile"

    def _ended(
        self,
        op: str,
        input_nodes: Sequence["IRNode"],
        choices: list["ChoiceCaller"],
        timings: Mapping["ChoiceCaller", float],
        took: float,
    ) -> None:
        if not timings and not self._errors:
            return  # it is measured later, by another call
        node, frame, part = self._nodes.get(id(choices[0]), ("", current_frame(), ""))
        tuned = _tuned(op, part, [self._candidate(choice, timings.get(choice)) for choice in choices], took)
        self._errors.clear()
        inputs = ", ".join(map(_tensor, input_nodes))
        nodes = (node,) if node else ()
        self._done(frame or current_frame(), replace(tuned, nodes=nodes, inputs=inputs, cached=not self._measured))

    def _candidate(self, choice: "ChoiceCaller", milliseconds: float | None) -> Choice:
        about = str(getattr(choice, "description", "") or "")[:300]
        if milliseconds is not None and math.isfinite(milliseconds):
            return Choice(choice.name, milliseconds / 1e3, about)
        return Choice(choice.name, None, about, self._errors.get(id(choice), NO_TIME))


def _tensor(node: "IRNode") -> str:
    """ "float32[64, 32]"; an unknown size is its symbol."""
    sizes = ", ".join(map(str, node.get_size()))
    return f"{str(node.get_dtype()).removeprefix('torch.')}[{sizes}]"


class _Configurations:
    """The choice of a Triton kernel's configuration at its first call, and the coordinate descent from the best one."""

    def __init__(self, done: Done) -> None:
        self._done = done

    def benchmark_all_configs(self, call: _Call, kernel: "CachingAutotuner", *args: object, **kwargs: object) -> object:
        began = time.monotonic()
        timings = cast("Mapping[LauncherType, float]", call(kernel, *args, **kwargs))
        took = time.monotonic() - began
        reasons = getattr(kernel, "benchmark_failure_reasons", {})
        found = [_measured(_config(each.config), timing, reasons.get(each)) for each, timing in timings.items()]
        self._done(_frame(kernel), _of_kernel(kernel, "configuration", found, took))
        return timings

    def coordinate_descent_tuning(
        self, call: _Call, kernel: "CachingAutotuner", launcher: object, *args: object, **kwargs: object
    ) -> object:
        began = time.monotonic()
        best = cast("LauncherType", call(kernel, launcher, *args, **kwargs))
        took = time.monotonic() - began
        results = kernel.coordesc_tuner.cached_benchmark_results
        found = [_measured(_named(config), timing, None) for config, timing in results.items()]
        tuned = _of_kernel(kernel, "configuration, coordinate descent", found, took)
        self._done(_frame(kernel), replace(tuned, chosen=_config(best.config)))
        return best


def _measured(config: str, milliseconds: float, reason: object) -> Choice:
    if math.isfinite(milliseconds):
        return Choice(config, milliseconds / 1e3)
    words = str(getattr(reason, "name", "")).lower().replace("_", " ")
    return Choice(config, error=words or "torch skipped it: it spills registers, or cannot be launched")


def _of_kernel(kernel: "CachingAutotuner", op: str, found: list[Choice], took: float) -> Autotuned:
    part: Part = "backward" if getattr(kernel, "is_backward", False) else ""
    name = str(kernel.inductor_meta.get("kernel_name") or kernel.fn.__name__)
    return replace(_tuned(op, part, found, took), kernel=name)


def _tuned(op: str, part: Part, found: list[Choice], took: float) -> Autotuned:
    """A choice with its candidates, the fastest first."""
    found.sort(key=lambda each: math.inf if each.seconds is None else each.seconds)
    chosen = found[0].name if found and found[0].seconds is not None else ""
    return Autotuned(op=op, part=part, choices=tuple(found), chosen=chosen, seconds=took)


def _frame(kernel: "CachingAutotuner") -> str:
    compile_id = getattr(kernel, "compile_id", None)
    return str(compile_id) if compile_id is not None else ""


def _config(config: "Config") -> str:
    """A Triton configuration as text: "XBLOCK=128, num_warps=4, num_stages=1"."""
    return _named((*sorted(config.kwargs.items()), ("num_warps", config.num_warps), ("num_stages", config.num_stages)))


def _named(pairs: _Pairs) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)
