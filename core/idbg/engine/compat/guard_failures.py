"""Which guards failed, of which compiled versions of a frame, and what was there instead?

Run on torch 2.11 and 2.14, whose texts are the same. Torch evaluates the guards to say why it compiles again; what it
says is heard there, with the values that the guards were asked about, which are gone a moment later.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch._dynamo.guards as guards

from idbg.engine.compat.dynamo_frames import replaced


@dataclass(frozen=True)
class GuardFailure:
    """`text` is torch's, with the sources of guards whole ("L['n'] == 3", where it shows "n == 3"); `against` the
    compile id of the version that did not fit. `value` evaluates a source; it may raise anything.
    """

    text: str
    against: str
    value: Callable[[str], object]


@contextmanager
def guard_failures_heard(hear: Callable[[GuardFailure], None]) -> Iterator[None]:
    """Tell each version of a frame that did not fit, as torch finds out why."""
    whole: list[str] = []
    find, strip = guards.get_guard_fail_reason, guards.strip_local_scope

    def stripped(text: str) -> str:
        whole.append(text)
        return strip(text)

    @functools.wraps(find)
    def found(manager: Any, code: CodeType, f_locals: dict[str, object], compile_id: Any, *args: Any, **kw: Any) -> str:
        whole.clear()
        reason = find(manager, code, f_locals, compile_id, *args, **kw)
        if reason and not _unlogged(args, kw):
            hear(GuardFailure(whole[-1] if whole else reason, str(compile_id), _evaluator(manager, f_locals)))
        return reason

    with ExitStack() as stack:
        stack.enter_context(replaced(guards, "strip_local_scope", stripped))
        stack.enter_context(replaced(guards, "get_guard_fail_reason", found))
        yield


def _unlogged(args: tuple[Any, ...], kw: Mapping[str, Any]) -> bool:
    """Whether torch asks for another end than to compile again."""
    return bool(kw.get("skip_logging", args[1] if len(args) > 1 else False))


def _evaluator(manager: Any, f_locals: dict[str, object]) -> Callable[[str], object]:
    def value(source: str) -> object:
        scope = dict(manager.closure_vars or {})
        scope["G"] = (manager.global_scope or {}).get("G", {})
        return eval(source, {**scope, "L": f_locals})

    return value
