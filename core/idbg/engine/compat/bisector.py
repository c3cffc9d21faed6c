"""Limit how often torch applies a part of its compilers, and record the graph that each application changes.

Torch's `CompilerBisector` counts and decides by its environment variables, in a process that makes one try; idbg
observes. Torch would also replace the backend that a program gives to torch.compile, and lose its options: so it sees
the bisected backend only while it decides.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from torch.fx import GraphModule

from idbg.engine.compat import settings, tracing
from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.names import find, internals
from idbg.schema.bisection import GRAPHS, Application, BackendParts, Level, Subsystem

LOWERINGS = "lowerings"


def parts() -> tuple[BackendParts, ...]:
    """Torch's backends, each does more than the one before, with the parts of each that can be switched off."""
    return tuple(
        BackendParts(name, tuple(map(_subsystem, known)))
        for name, known in internals._inductor.compiler_bisector.BACKENDS.items()
    )


def _subsystem(known: Any) -> Subsystem:
    if isinstance(known, internals._inductor.compiler_bisector.ConfigChange):
        value = cast("bool", known.config_value)
        return Subsystem(known.name, config=known.config_name, setting=known.config_field, value=value)
    return Subsystem(known.name)


@dataclass
class Applications:
    """The applications while `limited` lasted. `last`: the last one that the level allowed, with its graph.

    `changed` is called before each application.
    """

    changed: Callable[["Applications"], None] = lambda applied: None
    counts: Counter[str] = field(default_factory=Counter)
    last: Application | None = None
    before: str = ""
    after: str = ""


@contextmanager
def limited(level: Level, changed: Callable[[Applications], None] = lambda applied: None) -> Iterator[Applications]:
    """While it lasts, only the first `applied` applications of the level's subsystem are made, and all are counted.
    Once in a process: torch's counters begin at 0.
    """
    applied = Applications(changed)
    bounded = bool(level.subsystem) and level.applied is not None
    # torch's counter begins at 0, and applications up to its bound are made
    environment = {"TORCH_BISECT_SUBSYSTEM": level.subsystem, "TORCH_BISECT_MAX": str((level.applied or 0) - 1)}
    bisector = internals._inductor.compiler_bisector.CompilerBisector
    decide = bisector.disable_subsystem
    watch = _Watch(applied, level.applied if bounded else None)

    graph = ""  # that goes into Inductor, which queries again for some

    def graph_left_out() -> bool:
        nonlocal graph
        frame = tracing.current_frame()
        if frame != graph or not frame:
            graph = frame
            applied.counts[GRAPHS] += 1
            if applied.counts[GRAPHS] == level.graphs and not bounded:
                applied.last = Application(number=level.graphs, frame=frame, graph="dynamo")
            applied.changed(applied)
        return level.graphs is not None and applied.counts[GRAPHS] > level.graphs

    def decided(backend: str, subsystem: str, debug_info: Callable[[], str] | None = None) -> bool:
        if subsystem == GRAPHS:
            return graph_left_out()
        is_limited = bounded and subsystem == level.subsystem
        with patch.object(bisector, "get_backend", lambda: backend):
            disabled = is_limited and bool(decide(backend, subsystem, debug_info))
        applied.counts[subsystem] += 1
        if is_limited and applied.counts[subsystem] == level.applied:
            watch.begin(subsystem, debug_info() if debug_info else "")
        applied.changed(applied)
        return disabled

    with (
        patch("torch._inductor.compiler_bisector.get_env_val", environment.get),  # torch reads the environment once
        patch.object(bisector, "bisection_enabled", True),  # torch then uses no cache
        patch.object(bisector, "disable_subsystem", decided),
        patch.object(bisector, "get_backend", lambda: None),
        watch.passes(),
    ):
        yield applied


@dataclass
class _Watch:
    """Stores the graph before and after the application with the number `wanted`."""

    applied: Applications
    wanted: int | None
    checking: list[Any] = field(default_factory=list)  # observers that torch checks now

    def begin(self, subsystem: str, what: str) -> None:
        """The application with this number is about to be made."""
        gm = self.checking[-1].gm if self.checking else None
        if gm is None and subsystem == LOWERINGS:
            gm = _lowered_graph()
        self.applied.last = Application(
            number=self.wanted or 0, what=what, frame=tracing.current_frame(), graph=_graph_compiled()
        )
        self.applied.before = _text(gm)
        if self.checking:
            self.checking[-1]._idbg_wanted = True

    def passes(self) -> AbstractContextManager[None]:
        """While it lasts, the observers that torch puts around its passes report their graphs."""
        if self.wanted is None:
            return nullcontext()

        def check(call: Callable[..., bool], observer: Any) -> bool:
            self.checking.append(observer)
            try:
                return call(observer)
            finally:
                self.checking.pop()

        def leave(call: Callable[..., None], observer: Any, *error: Any) -> None:
            if getattr(observer, "_idbg_wanted", False):
                self.applied.after = _text(observer.gm)
                self.applied.changed(self.applied)
            call(observer, *error)

        name = "GraphTransformObserver"
        return hooked("bisected passes", {f"{name}._check_disable_pass": check, f"{name}.__exit__": leave})


def _lowered_graph() -> GraphModule | None:
    """The graph that Inductor lowers now."""
    graph = internals._inductor.virtualized.V.graph
    found = getattr(graph, "orig_gm", None) or getattr(graph, "module", None)
    return found if isinstance(found, GraphModule) else None


def _text(gm: GraphModule | None) -> str:
    """The graph as torch prints it; "" without one."""
    if gm is None:
        return ""
    try:
        return str(GraphModule.print_readable(gm, print_output=False, include_stride=True))
    except Exception:  # a wrong pass may leave a graph that cannot be printed
        return str(gm.graph)


def _graph_compiled() -> str:
    """The graph that AOTAutograd compiles now: "joint", "forward", "backward", "inference"; "dynamo" before it."""
    named = "_".join(internals._functorch._aot_autograd.logging_utils.graph_being_compiled)
    return next((part for part in ("forward", "backward", "inference", "joint") if part in named), "dynamo")


def environment(level: Level, folder: Path) -> dict[str, str]:
    """The variables with which torch compiles at this level in another program; its other data is in `folder`, which is
    Inductor's cache there.
    """
    bisector = internals._inductor.compiler_bisector.CompilerBisector
    made = {"TORCHINDUCTOR_CACHE_DIR": str(folder)}
    if level.backend:
        made |= {"TORCH_BISECT_BACKEND": level.backend, "TORCH_COMPILE_BACKEND": level.backend}
    if not level.subsystem:
        return made
    known = next((one for each in parts() for one in each.subsystems if one.name == level.subsystem), None)
    made["TORCH_BISECT_SUBSYSTEM"] = level.subsystem
    with patch.object(bisector, "in_process_cache", str(folder)):
        if known is not None and known.setting:
            bisector.set_config_values(level.backend, level.subsystem, {known.setting: known.value})
        elif known is not None:
            subsystem = bisector.get_subsystem_object(level.backend, level.subsystem)
            state = {None: "find_max_bounds", 0: "test_disable"}.get(level.applied, "bisect")
            # counted from 0; torch applies up to the middle of the range, and notes the application there
            at = (level.applied or 0) - 1
            bisector.update_bisect_range(level.backend, level.subsystem, max(at, 0), at)
            bisector.update_run_state(level.backend, subsystem, state)
    return made


def counted(level: Level, folder: Path) -> int:
    """How often a program, run with `environment` of a level without a bound, applied its subsystem."""
    bisector = internals._inductor.compiler_bisector.CompilerBisector
    with patch.object(bisector, "in_process_cache", str(folder)):
        return bisector.get_bisect_range(level.backend, level.subsystem)[1] + 1


def applied_last(level: Level, folder: Path) -> str:
    """The last application of a program that ran with `environment` of a level with a bound; "" where torch does not
    note it (2.11).
    """
    bisector = internals._inductor.compiler_bisector.CompilerBisector
    noted = getattr(bisector, "get_call_counter_debug_info", None)
    if noted is None or not level.applied:
        return ""
    with patch.object(bisector, "in_process_cache", str(folder)):
        return noted(level.backend, level.subsystem, level.applied - 1) or ""


def config(name: str) -> Any:
    """Torch's settings by our name: "inductor", or one of `settings.MODULES`."""
    return internals._inductor.config if name == "inductor" else settings.MODULES[name]


def fuzzer(seed: int) -> Any:
    """Torch's fuzzer of Inductor's settings, of which only the values are used."""
    return find("torch._inductor.fuzzer.ConfigFuzzer")(config("inductor"), lambda: lambda: True, seed=seed)
