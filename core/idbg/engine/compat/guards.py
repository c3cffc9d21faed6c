"""Record the guards of compiled frames: what created each, how long each takes, and which of them fail.

The tree of guard managers that C++ evaluates is read, and not Dynamo's list of guards: some of that list are dropped,
and some are checked together. Torch evaluates the guards again to explain a recompile; the failed guard is read there,
with the values that it checked, which do not live longer.
"""

from __future__ import annotations

import re
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from idbg.analysis.decisions.break_report import of_program
from idbg.engine.compat import stages, tracing
from idbg.engine.compat.hooks import Feature, hooked
from idbg.engine.compat.names import internals
from idbg.schema.decisions.dynamo import LEAST_SECONDS, FrameGuards, Guard, LeftOut, Stack, StackLine

if TYPE_CHECKING:
    from torch._dynamo.guards import CheckFunctionManager, GuardBuilder
    from torch._guards import Guard as DynamoGuard

cpp = internals._C._dynamo.guards

MAX_GUARDS = 10_000
"""Of one frame; more are only counted."""
_MAX_SECONDS = 0.05  # for timing single guards of one frame
_CALLS, _ROUNDS = 5, 3
_PLACE = re.compile(r"# (\S+):(\d+) in (\w+)")
_OF_SIZE = re.compile(r"\.(size|stride|storage_offset)\(\)")
_LOCAL = re.compile(r"[LG]\['\w+'\]")

_WITHOUT_A_CHECK = {
    "GRAD_MODE": "GLOBAL_STATE checks it",
    "DETERMINISTIC_ALGORITHMS": "GLOBAL_STATE checks it",
    "EMPTY_NN_MODULE_HOOKS_DICT": "torch's setting skip_nnmodule_hook_guards leaves them out",
    "SHAPE_ENV": "no size is dynamic, or no guard is on those that are",
}


@dataclass
class _Reading:
    """The guards of a frame that are not measured yet. The user's values are not referenced."""

    frame: str
    record: FrameGuards
    # for each of record.guards: the check (the tree owns it), its source, and the guard of Dynamo's
    leaves: list[tuple[cpp.LeafGuard, str, DynamoGuard | None]]
    builder: Callable[[], GuardBuilder | None]


@contextmanager
def observe_guards(feature: Feature, done: Callable[[FrameGuards], None]) -> Iterator[None]:
    """While it lasts, `done` gets the guards of each frame, with their costs, as its compile ends."""
    waiting: dict[int, _Reading] = {}

    def flush() -> None:
        for reading in waiting.values():  # torch did not evaluate them: it exports, or is set not to
            done(reading.record)
        waiting.clear()

    def compile_check_fn(
        call: Callable[..., None],
        manager: CheckFunctionManager,
        builder: GuardBuilder,
        kept: list[DynamoGuard],
        on_fail: object,
    ) -> None:
        call(manager, builder, kept, on_fail)
        flush()
        if frame := tracing.current_frame():
            requested = manager.output_graph.guards if manager.output_graph is not None else kept
            root = manager.guard_manager.root
            waiting[id(root)] = _read(frame, root, builder, kept, requested)

    def profile(
        call: Callable[..., float], root: cpp.RootGuardManager, values: Mapping[str, object], count: int
    ) -> float:
        cold = call(root, values, count)
        if (reading := waiting.pop(id(root), None)) is not None:
            done(_measured(reading, root, values, cold / 1e6))
        return cold

    wrappers = {"CheckFunctionManager.compile_check_fn": compile_check_fn, "profile_guard_manager": profile}
    with hooked(feature, wrappers):
        try:
            yield
        finally:
            feature.safe(flush)()


def _read(
    frame: str,
    root: cpp.RootGuardManager,
    builder: GuardBuilder,
    kept: Iterable[DynamoGuard],
    requested: Iterable[DynamoGuard],
) -> _Reading:
    reader = _Reader(kept, {code for each in builder.shape_env_code for code in each.code_list})
    guards: list[Guard] = []
    leaves: list[tuple[cpp.LeafGuard, str, DynamoGuard | None]] = []
    dropped = 0
    for source, leaf in _checks(root, reader.dicts):
        guard, cause = reader.guard(source, leaf)
        if len(guards) < MAX_GUARDS:
            guards.append(guard)
            leaves.append((leaf, source, cause))
        else:
            dropped += 1
    everything = list(requested)
    record = FrameGuards(
        frame=frame,
        guards=tuple(guards),
        requested=len(everything),
        left_out=reader.left_out(everything),
        dropped=dropped,
    )
    return _Reading(frame, record, leaves, weakref.ref(builder))


def _checks(root: cpp.RootGuardManager, dicts: set[str]) -> Iterator[tuple[str, cpp.LeafGuard]]:
    """Each check of the tree with its source, in the order in which torch prints them; a relational guard comes once.

    `dicts` gets the sources of dicts whose type and keys torch checks as it walks through them.
    """
    related: list[cpp.LeafGuard] = []
    stack: list[cpp.GuardManager] = [root]
    while stack:
        manager = stack.pop()
        for leaf in manager.get_leaf_guards():
            if isinstance(leaf, cpp.RelationalGuard):
                if any(leaf is known for known in related):
                    continue
                related.append(leaf)
            yield manager.get_source(), leaf
        below = list(manager.get_child_managers())
        if isinstance(manager, cpp.DictGuardManager):
            dicts.add(manager.get_source())
            pairs = sorted(manager.get_key_value_managers().items())
            below = [each for _, pair in pairs for each in pair if each is not None] + below
        stack += reversed(below)
    for leaf in root.get_epilogue_lambda_guards():
        yield "L", leaf


@dataclass
class _Reader:
    """Match each check with the guard of Dynamo's that it belongs to."""

    kept: Iterable[DynamoGuard]
    shapes: set[str]
    by_source: dict[str, list[DynamoGuard]] = field(default_factory=dict)
    by_code: dict[str, DynamoGuard] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)  # sources
    dicts: set[str] = field(default_factory=set)  # sources
    caused: set[int] = field(default_factory=set)  # ids of guards
    lines: dict[tuple[str, int | None, str], StackLine] = field(default_factory=dict)
    stacks: dict[Stack, Stack] = field(default_factory=dict)
    stack_of: dict[int, Stack] = field(default_factory=dict)  # by the id of a guard
    places: dict[Stack, StackLine | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for guard in self.kept:
            self.by_source.setdefault(guard.name, []).append(guard)
            for code in guard.code_list or ():
                self.by_code.setdefault(code, guard)
            self._stack(guard)

    def guard(self, source: str, leaf: cpp.LeafGuard) -> tuple[Guard, DynamoGuard | None]:
        """The check as a record, and the guard of Dynamo's that it belongs to."""
        parts = leaf.verbose_code_parts()
        codes = tuple(part.partition("  # ")[0].rstrip() for part in parts)
        kind = type(leaf).__name__
        cause = self._cause(source, kind, codes)
        self.checked.add(source)
        stack: Stack = ()
        if cause is not None:
            self.caused.add(id(cause))
            stack = self._stack(cause)
        if kind == "LAMBDA_GUARD":
            shaped = any(code in self.shapes or _OF_SIZE.search(code) for code in codes)
            kind = cause.create_fn_name() if cause is not None else "SHAPE_ENV" if shaped else kind
        if source == "L" and len(about := set(_LOCAL.findall(" ".join(codes)))) == 1:
            source = about.pop()
        stack = stack or self._stack_of_text(parts)
        place = self._users(stack)
        return (
            Guard(
                kind=kind,
                source="" if source == "L" else source,
                code=codes,
                file=place.file if place else "",
                line=place.line if place else 0,
                stack=stack,
            ),
            cause,
        )

    def _cause(self, source: str, kind: str, codes: tuple[str, ...]) -> DynamoGuard | None:
        for code in codes:
            if (known := self.by_code.get(code)) is not None:
                return known
        name = "" if source == "L" else source.removesuffix(".__dict__")
        near = [each for each in self.by_source.get(name, ()) if name]
        alike = (each for each in near if kind in (each.create_fn_name(), *(each.guard_types or ())))
        return next(alike, next(iter(near), None)) if kind not in _RELATIONS else None

    def _users(self, stack: Stack) -> StackLine | None:
        """The innermost line outside of torch; if there is none, the innermost line."""
        if stack not in self.places:
            own = [line for line in stack if not stages.is_torchs(line.file)]
            self.places[stack] = own[-1] if own else stack[-1] if stack else None
        return self.places[stack]

    def _stack(self, guard: DynamoGuard) -> Stack:
        if not guard.user_stack:
            return ()
        if (known := self.stack_of.get(id(guard))) is not None:
            return known
        stack = tuple(
            self.lines.get((each.filename, each.lineno, each.name))
            or self.lines.setdefault(
                (each.filename, each.lineno, each.name),
                StackLine(each.filename, each.lineno or 0, each.name, each.line or ""),
            )
            for each in guard.user_stack
        )
        stack = self.stacks.setdefault(stack, of_program(stack))
        self.stack_of[id(guard)] = stack
        return stack

    def _stack_of_text(self, parts: Iterable[str]) -> Stack:
        """The stack that torch's text names for a check without a guard (of sizes): it shortens the file's name."""
        for found in filter(None, map(_PLACE.search, parts)):
            for stack in self.stacks:
                last = stack[-1]
                if last.line == int(found[2]) and last.function == found[3] and last.file.endswith(found[1]):
                    return stack
        return ()

    def left_out(self, requested: Iterable[DynamoGuard]) -> tuple[LeftOut, ...]:
        """Guards of Dynamo's that have no check of their own, by kind, most frequent first."""
        kept = {id(each) for each in self.kept}
        counts: Counter[tuple[str, str]] = Counter()
        for guard in requested:
            kind = guard.create_fn_name()
            if id(guard) not in kept:
                counts[kind, "the program's guard_filter_fn leaves them out"] += 1
            elif guard.name in self.dicts and id(guard) not in self.caused:
                counts[kind, "torch checks a dict's type and keys as it walks through it"] += 1
            elif not self._is_checked(guard, kind):
                counts[kind, _WITHOUT_A_CHECK.get(kind, "")] += 1
        return tuple(LeftOut(kind, count, why) for (kind, why), count in counts.most_common())

    def _is_checked(self, guard: DynamoGuard, kind: str) -> bool:
        if id(guard) in self.caused or kind in ("GLOBAL_STATE", "TORCH_FUNCTION_STATE"):
            return True  # these two become checks that name no guard
        if kind == "SHAPE_ENV":
            return bool(self.shapes)
        if kind in _WITHOUT_A_CHECK or not guard.name:
            return False
        return guard.name in self.checked or f"{guard.name}.__dict__" in self.checked


_RELATIONS = ("NO_TENSOR_ALIASING", "OBJECT_ALIASING", "STORAGE_OVERLAPPING", "SYMBOLIC_SHAPE_GUARD")


def _measured(reading: _Reading, root: cpp.RootGuardManager, values: Mapping[str, object], cold: float) -> FrameGuards:
    """The record with the seconds of one evaluation: of all guards, after torch's first one, and of each alone."""
    builder = reading.builder()
    # an evaluation runs the user's torch function modes: torch does that once, and once more would be visible
    if builder is None or internals._C._len_torch_function_stack():
        return replace(reading.record, cold=cold)
    watch = _Watch()
    guards = []
    ends = time.perf_counter() + _MAX_SECONDS
    scope = {**internals._dynamo.guards._get_closure_vars(), **cast("Mapping[str, object]", builder.scope)}
    for guard, (leaf, source, cause) in zip(reading.record.guards, reading.leaves, strict=True):
        seconds = None
        if not isinstance(leaf, cpp.RelationalGuard) and time.perf_counter() < ends:
            seconds = watch.of_check(cast("Check", leaf), _value(builder, scope, values, source, cause))
        guards.append(replace(guard, seconds=seconds))
    return replace(reading.record, guards=tuple(guards), seconds=watch.of_all(root, values), cold=cold)


_NO_VALUE = object()


def _value(
    builder: GuardBuilder,
    scope: dict[str, object],
    values: Mapping[str, object],
    source: str,
    cause: DynamoGuard | None,
) -> object:
    """The value of the source now; the frame's locals for "L"."""
    try:
        if source == "L":
            return values
        if cause is not None and cause.name == source:
            return builder.get(cause)
        return eval(source, scope)
    except Exception:  # torch reads some sources in C++ alone, and what eval runs may raise anything
        return _NO_VALUE


Check = Callable[[object], bool]


class _Watch:
    """Time checks, without the cost of the call from Python."""

    def __init__(self) -> None:
        self.bare = cpp.RootGuardManager()
        self.owner, self.cheapest = _cheapest()

    def of_check(self, check: Check, value: object) -> float | None:
        """Seconds of one call, the minimum of a few; None where the check fails or cannot be called alone."""
        if value is _NO_VALUE:
            return None
        try:
            if not check(value):
                return None
        except (TypeError, RuntimeError):  # some take arguments that only C++ can pass
            return None
        seconds = _beyond(self.cheapest, None, check, value)
        return seconds if seconds >= LEAST_SECONDS else 0.0

    def of_all(self, root: cpp.RootGuardManager, values: Mapping[str, object]) -> float | None:
        """Seconds of one evaluation of a frame's guards; None where one fails."""
        if not root.check(values):
            return None
        return max(_beyond(cast("Check", self.bare.check), {}, cast("Check", root.check), values), 0.0)


def _cheapest() -> tuple[cpp.RootGuardManager, Check]:
    """A check of torch's that compares one pointer, and its owner: its time is the time of a call."""
    root = cpp.RootGuardManager()
    try:
        root.add_none_match_guard(["None"], None)
    except TypeError:  # 2.11
        root.add_none_match_guard(["None"])  # type: ignore[call-arg]
    return root, cast("Check", root.get_leaf_guards()[0])


def _beyond(call: Check, nothing: object, check: Check, value: object) -> float:
    """Seconds that a check takes beyond a call. Both are timed in turn: on a processor that became faster after the
    call was timed, a check seemed to take less than nothing.
    """
    rounds = [(_timed(call, nothing), _timed(check, value)) for _ in range(_ROUNDS)]
    return min(of_check for _, of_check in rounds) - min(of_call for of_call, _ in rounds)


def _timed(check: Check, value: object) -> float:
    began = time.perf_counter()
    for _ in range(_CALLS):
        check(value)
    return (time.perf_counter() - began) / _CALLS


@dataclass(frozen=True)
class GuardFailure:
    """`text` is torch's, with full sources ("L['n'] == 3", where torch shows "n == 3"); `against` is the compile id of
    the version that does not match. `value` evaluates a source; it may raise anything.
    """

    text: str
    against: str
    value: Callable[[str], object]


def observe_guard_failures(feature: Feature, failed: Callable[[GuardFailure], None]) -> AbstractContextManager[None]:
    """While it lasts, `failed` gets each version of a frame that does not match, as torch looks for the reason."""
    whole: list[str] = []

    def strip_local_scope(call: Callable[[str], str], text: str) -> str:
        whole.append(text)
        return call(text)

    def get_guard_fail_reason(
        call: Callable[..., str],
        manager: Any,
        code: CodeType,
        f_locals: dict[str, object],
        compile_id: object,
        *args: Any,
        **kw: Any,
    ) -> str:
        whole.clear()
        reason = call(manager, code, f_locals, compile_id, *args, **kw)
        if reason and not _unlogged(args, kw):
            failed(GuardFailure(whole[-1] if whole else reason, str(compile_id), _evaluator(manager, f_locals)))
        return reason

    wrappers = {"strip_local_scope": strip_local_scope, "get_guard_fail_reason": get_guard_fail_reason}
    return hooked(feature, wrappers)


def _unlogged(args: tuple[Any, ...], kw: Mapping[str, Any]) -> bool:
    """Whether torch looks for the reason for another purpose than a recompile."""
    return bool(kw.get("skip_logging", args[1] if len(args) > 1 else False))


def _evaluator(manager: Any, f_locals: dict[str, object]) -> Callable[[str], object]:
    def value(source: str) -> object:
        scope = dict(manager.closure_vars or {})
        scope["G"] = (manager.global_scope or {}).get("G", {})
        return eval(source, {**scope, "L": f_locals})

    return value
