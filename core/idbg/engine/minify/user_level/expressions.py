"""Write a value, class or module as a Python expression that creates it."""

import dataclasses
import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from idbg.engine.minify.shrink import fills
from idbg.engine.minify.shrink.fills import Fill, Form, contiguous

_MOST = 2000  # characters: a longer one is data, and no expression


class NoExpression(Exception):
    """There is no short expression for the value; the message names it."""


@dataclass
class ExpressionWriter:
    """Writes values as expressions. `own`: the module of the program's file, whose names need no import; `made`: how
    modules were made that may be part of one. The `imports` that they need are gathered.
    """

    own: str
    made: Mapping[torch.nn.Module, str | None]
    imports: set[str] = field(default_factory=set)

    def spelled(self, value: object) -> str:
        """Raises NoExpression."""
        text = self._spelled(value)
        if len(text) > _MOST:
            raise NoExpression(f"a long {type(value).__name__}")
        return text

    def _spelled(self, value: object) -> str:
        if isinstance(value, torch.nn.Module):
            made = self.made.get(value)
            if made is None:
                raise NoExpression(f"a {type(value).__name__}")
            return made
        if isinstance(value, enum.Enum):
            return f"{self.named(type(value))}.{value.name}"
        if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, bytes)):
            return self._plain(value)
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, torch.device):
            return f'torch.device("{value}")'
        if isinstance(value, slice):
            return f"slice({self._all((value.start, value.stop, value.step))})"
        if type(value) in (tuple, list, set, torch.Size) and isinstance(value, (tuple, list, set)):
            return self._several(value)
        if type(value) is dict:
            return "{" + ", ".join(f"{self._spelled(key)}: {self._spelled(item)}" for key, item in value.items()) + "}"
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            given = (f"{each.name}={self._spelled(getattr(value, each.name))}" for each in _made_by(value))
            return f"{self.named(type(value))}({', '.join(given)})"
        if isinstance(value, type) or callable(value):
            return self.named(value)
        raise NoExpression(f"a {type(value).__name__}")

    def named(self, thing: object) -> str:
        """A class or a function by its name. Raises NoExpression where another file could not have it by that."""
        module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
        if getattr(torch.nn, name, None) is thing:
            return f"torch.nn.{name}"
        found: object = sys.modules.get(module or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if not module or not name or found is not thing:
            raise NoExpression(name or f"a {type(thing).__name__}")
        if module not in (self.own, "builtins", "__main__"):
            self.imports.add(f"from {module} import {name.partition('.')[0]}")
        return str(name)

    def _plain(self, value: object) -> str:
        if isinstance(value, float) and (value != value or abs(value) == float("inf")):
            return f'float("{value}")'
        if type(value) not in (bool, int, float, complex, str, bytes, type(None), type(Ellipsis)):
            raise NoExpression(f"a {type(value).__name__}")
        return repr(value)

    def _several(self, values: tuple[object, ...] | list[object] | set[object]) -> str:
        items = self._all(values)
        if isinstance(values, list):
            return f"[{items}]"
        if isinstance(values, set):
            return f"{{{items}}}" if values else "set()"
        return f"({items},)" if len(values) == 1 else f"({items})"

    def _all(self, values: tuple[object, ...] | list[object] | set[object]) -> str:
        return ", ".join(map(self._spelled, values))


def _made_by(value: object) -> list[dataclasses.Field[object]]:
    return [each for each in dataclasses.fields(value) if each.init]  # type: ignore[arg-type]


def recipe(tensor: torch.Tensor) -> str:
    """Python that makes a tensor of this shape and type: random numbers where it has fractions, else zeros."""
    is_random = (tensor.is_floating_point() and tensor.element_size() > 1) or tensor.is_complex()
    form = Form(tuple(tensor.shape), contiguous(tensor.shape), tensor.dtype, tensor.device.type)
    return fills.recipe(Fill("randn" if is_random else "zeros"), form)
