"""Which parts of its compilers can torch switch off, one application at a time, and which graph does each change?

Torch's private names for the search for the guilty part: `CompilerBisector` and its table. Torch's own code counts and
decides, by its own environment variables, in a process that makes one try; what is ours listens. Torch would also put
the bisected backend in the place of whatever a program's torch.compile is given, and lose its options: so it is told of
the backend only while it decides. Run on torch 2.14 (CPU) and 2.11.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from torch.fx import GraphModule

from idbg.engine.compat import tracing
from idbg.schema.bisection import GRAPHS, Application, BackendParts, Level, Subsystem

LOWERINGS = "lowerings"


def parts() -> tuple[BackendParts, ...]:
    """Torch's backends in the order in which each does more than the one before, with what of each can be switched
    off.
    """
    from torch._inductor.compiler_bisector import BACKENDS

    return tuple(BackendParts(name, tuple(map(_subsystem, known))) for name, known in BACKENDS.items())


def _subsystem(known: Any) -> Subsystem:
    from torch._inductor.compiler_bisector import ConfigChange

    if isinstance(known, ConfigChange):
        value = cast("bool", known.config_value)
        return Subsystem(known.name, config=known.config_name, setting=known.config_field, value=value)
    return Subsystem(known.name)


@dataclass
class Heard:
    """What was applied while `limited` lasted. `last`: the last application that the level allowed, with its graph.

    `told` hears of each application, before it is made.
    """

    told: Callable[["Heard"], None] = lambda heard: None

    counts: Counter[str] = field(default_factory=Counter)
    last: Application | None = None
    before: str = ""
    after: str = ""


@contextmanager
def limited(level: Level, told: Callable[[Heard], None] = lambda heard: None) -> Iterator[Heard]:
    """While it lasts, of the level's subsystem no more than the first `applied` applications are made, and all are
    counted. Once in a process: torch's counters begin at none.
    """
    from torch._inductor import compiler_bisector
    from torch._inductor.compiler_bisector import CompilerBisector

    heard = Heard(told)
    bounded = bool(level.subsystem) and level.applied is not None
    # torch's counter begins at 0, and what is not above its bound is applied
    asked = {"TORCH_BISECT_SUBSYSTEM": level.subsystem, "TORCH_BISECT_MAX": str((level.applied or 0) - 1)}
    decide = CompilerBisector.disable_subsystem
    watch = _Watch(heard, level.applied if bounded else None)

    graph = ""  # the one that is on its way into Inductor, which asks again for some

    def graph_left_out() -> bool:
        nonlocal graph
        frame = tracing.current_frame()
        if frame != graph or not frame:
            graph = frame
            heard.counts[GRAPHS] += 1
            if heard.counts[GRAPHS] == level.graphs and not bounded:
                heard.last = Application(number=level.graphs, frame=frame, graph="dynamo")
            heard.told(heard)
        return level.graphs is not None and heard.counts[GRAPHS] > level.graphs

    def decided(backend: str, subsystem: str, debug_info: Callable[[], str] | None = None) -> bool:
        if subsystem == GRAPHS:
            return graph_left_out()
        is_limited = bounded and subsystem == level.subsystem
        with patch.object(CompilerBisector, "get_backend", lambda: backend):
            disabled = is_limited and bool(decide(backend, subsystem, debug_info))
        heard.counts[subsystem] += 1
        if is_limited and heard.counts[subsystem] == level.applied:
            watch.begin(subsystem, debug_info() if debug_info else "")
        heard.told(heard)
        return disabled

    with (
        patch.object(compiler_bisector, "get_env_val", asked.get),  # torch reads the environment once and for all
        patch.object(CompilerBisector, "bisection_enabled", True),  # torch then takes nothing from its caches
        patch.object(CompilerBisector, "disable_subsystem", decided),
        patch.object(CompilerBisector, "get_backend", lambda: None),
        watch.passes(),
    ):
        yield heard


@dataclass
class _Watch:
    """Keeps the graph before and after the application whose number is `wanted`."""

    heard: Heard
    wanted: int | None
    asking: list[Any] = field(default_factory=list)  # observers of passes that are now being asked for

    def begin(self, subsystem: str, what: str) -> None:
        """The application that is wanted is about to be made."""
        gm = self.asking[-1].gm if self.asking else None
        if gm is None and subsystem == LOWERINGS:
            gm = _lowered_graph()
        self.heard.last = Application(
            number=self.wanted or 0, what=what, frame=tracing.current_frame(), graph=_graph_compiled()
        )
        self.heard.before = _text(gm)
        if self.asking:
            self.asking[-1]._idbg_wanted = True

    @contextmanager
    def passes(self) -> Iterator[None]:
        """While it lasts, the observers that torch puts around its passes say which graph they stand by."""
        if self.wanted is None:
            yield
            return
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver as Observer

        ask, leave = Observer._check_disable_pass, Observer.__exit__

        @functools.wraps(ask)
        def asked(observer: Any) -> bool:
            self.asking.append(observer)
            try:
                return bool(ask(observer))
            finally:
                self.asking.pop()

        @functools.wraps(leave)
        def left(observer: Any, *error: Any) -> None:
            if getattr(observer, "_idbg_wanted", False):
                self.heard.after = _text(observer.gm)
                self.heard.told(self.heard)
            leave(observer, *error)

        with patch.object(Observer, "_check_disable_pass", asked), patch.object(Observer, "__exit__", left):
            yield


def _lowered_graph() -> GraphModule | None:
    """The graph that Inductor lowers now."""
    from torch._inductor.virtualized import V

    found = getattr(V.graph, "orig_gm", None) or getattr(V.graph, "module", None)
    return found if isinstance(found, GraphModule) else None


def _text(gm: GraphModule | None) -> str:
    """The graph as torch prints it; "" where a pass left what cannot be printed."""
    if gm is None:
        return ""
    try:
        return str(GraphModule.print_readable(gm, print_output=False, include_stride=True))
    except Exception:  # whatever a wrong pass has made of it: the graph before it still stands
        return str(gm.graph)


def _graph_compiled() -> str:
    """Which of a frame's graphs AOTAutograd compiles now: "joint", "forward", "backward", "inference"; before it
    "dynamo".
    """
    from torch._functorch._aot_autograd import logging_utils

    named = "_".join(logging_utils.graph_being_compiled)
    return next((part for part in ("forward", "backward", "inference", "joint") if part in named), "dynamo")


def environment(level: Level, folder: Path) -> dict[str, str]:
    """The variables by which torch, in a program of somebody else's, compiles at this level; what it reads and writes
    beside them is in `folder`, which is Inductor's cache there.
    """
    from torch._inductor.compiler_bisector import CompilerBisector

    made = {"TORCHINDUCTOR_CACHE_DIR": str(folder)}
    if level.backend:
        made |= {"TORCH_BISECT_BACKEND": level.backend, "TORCH_COMPILE_BACKEND": level.backend}
    if not level.subsystem:
        return made
    known = next((one for each in parts() for one in each.subsystems if one.name == level.subsystem), None)
    made["TORCH_BISECT_SUBSYSTEM"] = level.subsystem
    with patch.object(CompilerBisector, "in_process_cache", str(folder)):
        if known is not None and known.setting:
            CompilerBisector.set_config_values(level.backend, level.subsystem, {known.setting: known.value})
        elif known is not None:
            subsystem = CompilerBisector.get_subsystem_object(level.backend, level.subsystem)
            state = {None: "find_max_bounds", 0: "test_disable"}.get(level.applied, "bisect")
            # counted from 0; torch applies what is not above the middle of the range, and notes what stands there
            at = (level.applied or 0) - 1
            CompilerBisector.update_bisect_range(level.backend, level.subsystem, max(at, 0), at)
            CompilerBisector.update_run_state(level.backend, subsystem, state)
    return made


def counted(level: Level, folder: Path) -> int:
    """How often a program that ran with `environment` of a level without a bound applied its subsystem."""
    from torch._inductor.compiler_bisector import CompilerBisector

    with patch.object(CompilerBisector, "in_process_cache", str(folder)):
        return CompilerBisector.get_bisect_range(level.backend, level.subsystem)[1] + 1


def applied_last(level: Level, folder: Path) -> str:
    """What a program that ran with `environment` of a level with a bound applied last; "" where torch noted nothing (in
    2.11 it does not).
    """
    from torch._inductor.compiler_bisector import CompilerBisector

    noted = getattr(CompilerBisector, "get_call_counter_debug_info", None)
    if noted is None or not level.applied:
        return ""
    with patch.object(CompilerBisector, "in_process_cache", str(folder)):
        return noted(level.backend, level.subsystem, level.applied - 1) or ""


def config(name: str) -> Any:
    """Torch's settings by the name that we give them: "inductor", "dynamo", "functorch"."""
    import torch._dynamo.config
    import torch._functorch.config
    import torch._inductor.config

    return {
        "inductor": torch._inductor.config,
        "dynamo": torch._dynamo.config,
        "functorch": torch._functorch.config,
    }[name]


def fuzzer(seed: int) -> Any:
    """Torch's fuzzer of Inductor's settings, which is asked for values alone."""
    from torch._inductor.fuzzer import ConfigFuzzer

    return ConfigFuzzer(config("inductor"), lambda: lambda: True, seed=seed)
