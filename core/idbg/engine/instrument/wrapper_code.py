"""Replace the bytecode of Inductor's wrapper functions by code with added calls, for a while.

The functions stay the objects that Inductor and torch hold.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import cast

from idbg.analysis.output_code import part_of, read_output_code
from idbg.engine.compat import comparing, tracing
from idbg.engine.instrument.wrapper_lines import Launch, Place, routed
from idbg.schema.code import OutputCode
from idbg.schema.graphs import Part

Hooks = Mapping[str, Callable[..., object]]
"""The functions that the changed code calls, by name."""


def output_code(graph: comparing.InductorGraph) -> OutputCode:
    """The wrapper of a graph whose frame is still being compiled. Raises ValueError where it cannot be read."""
    text = Path(graph.module.__file__).read_text()
    return read_output_code(text, frame=tracing.frame_name(), part=graph.part, handles=graph.handles)


def instrumented(module: ModuleType, hook: str, place: Place) -> tuple["Instrumented", Part, list[Launch]] | None:
    """A loaded module with a call of `hook` at each launch (see `wrapper_lines.routed`), the graph's part, and the
    launches; None for a module that is no wrapper, or of an unknown form.
    """
    try:
        text = Path(module.__file__ or "").read_text(errors="replace")
        if not (part := part_of(text)) or not callable(getattr(module, "call", None)):
            return None
        changed, launches = routed(read_output_code(text, frame="", part=part), hook, place)
    except (OSError, ValueError):
        return None
    return Instrumented(cast("comparing.WrapperModule", module), changed, hook), part, launches


@dataclass(frozen=True)
class _Function:
    """A function of the wrapper with its own bytecode, and the one that calls hooks."""

    function: FunctionType
    own: CodeType
    changed: CodeType


class Instrumented:
    """A wrapper with other code, which runs from `start` to `stop`."""

    def __init__(self, module: comparing.WrapperModule, changed: ast.Module, *hooks: str) -> None:
        """`changed` holds functions of the wrapper by their names, their lines numbered as they were: those that call
        one of these hooks stand in for its own.
        """
        self._namespace: dict[str, object] = vars(module)
        self._hooks = hooks
        self._functions = tuple(
            self._function(module, code)
            for code in compile(changed, module.__file__, "exec").co_consts
            if isinstance(code, CodeType) and not {*hooks}.isdisjoint(code.co_names)
        )

    def _function(self, module: comparing.WrapperModule, changed: CodeType) -> _Function:
        """`call` may be a method of an object that the module holds under this name."""
        held = module.call if changed.co_name == "call" else self._namespace[changed.co_name]
        function = cast("FunctionType", getattr(held, "__func__", held))
        return _Function(function, function.__code__, changed)

    def start(self, hooks: Hooks) -> None:
        """Run the changed code, with these hooks."""
        self._namespace.update(hooks)
        for each in self._functions:
            each.function.__code__ = each.changed

    def rest(self) -> None:
        """Run the wrapper's own code from the next call on. A running call still finds the hooks until `stop`."""
        for each in self._functions:
            each.function.__code__ = each.own

    def stop(self) -> None:
        """Run the wrapper's own code again, and remove the hooks from its module."""
        self.rest()
        for name in self._hooks:
            self._namespace.pop(name, None)
