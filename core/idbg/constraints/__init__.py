"""The kinds of rules, each a module with one subclass of `Constraint`, and the checker.

To add a rule, add one module here with one subclass of `Constraint`: it is found by itself, and its struct tag is the
`kind` that a `[[rules]]` table names. Packages of others add theirs by the entry point `idbg.constraints` (name = kind,
value = the class).
"""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeGuard

from idbg import plugins
from idbg.constraints.base import BadValue, Constraint, Finding, TensorRule
from idbg.constraints.checker import Checker, Findings, FindingsChange, Group
from idbg.constraints.facts import GraphFacts, NodeSignature, Operand
from idbg.schema.graphs import Graph
from idbg.schema.violations import Violation

__all__ = [
    "BadValue",
    "Checker",
    "Constraint",
    "Finding",
    "Findings",
    "FindingsChange",
    "GraphFacts",
    "Group",
    "NodeSignature",
    "Operand",
    "TensorRule",
    "broken_kinds",
    "check",
    "kind_named",
    "kinds",
]


class HasRules(Protocol):
    """An accelerator, as far as a check needs one."""

    @property
    def rules(self) -> tuple[Constraint, ...]:
        """In the order of the file, those that are off too."""


def check(graph: Graph, accelerator: HasRules) -> list[Violation]:
    """Every violation in the graph, in the order of its nodes, and for one node in the order of the rules."""
    return list(Checker(graph).check(accelerator.rules).violations())


@lru_cache(maxsize=1)
def kinds() -> dict[str, type[Constraint]]:
    """Every kind of rule: those of this package, then those of plug-ins, which never replace a built-in one."""
    by_name: dict[str, type[Constraint]] = {}
    for module in iter_modules(__path__):
        by_name |= _kinds_in(module.name)
    for value in plugins.load("idbg.constraints").values.values():
        if _is_kind(value):
            by_name.setdefault(str(value.__struct_config__.tag), value)
    return dict(sorted(by_name.items()))


@lru_cache(maxsize=64)
def kind_named(name: str) -> type[Constraint] | None:
    """The kind of this name. One of ours is in the file of its name: no other is imported, and no plug-in sought."""
    ours = {module.name for module in iter_modules(__path__)}
    return (_kinds_in(name).get(name) if name in ours else None) or kinds().get(name)


def _kinds_in(module: str) -> dict[str, type[Constraint]]:
    """The kinds that one file of this package defines."""
    values = vars(import_module(f"{__name__}.{module}")).values()
    own = [value for value in values if _is_kind(value) and value.__module__ == f"{__name__}.{module}"]
    return {str(kind.__struct_config__.tag): kind for kind in own}


def broken_kinds() -> dict[str, str]:
    """The plug-ins that gave no rule: entry point name -> what went wrong."""
    loaded = plugins.load("idbg.constraints")
    strange = {
        name: "not a subclass of idbg.constraints.Constraint with a tag"
        for name, value in loaded.values.items()
        if not _is_kind(value)
    }
    return loaded.broken | strange


def _is_kind(value: object) -> TypeGuard[type[Constraint]]:
    """A rule with a tag of its own; what others are built on has msgspec's, which is the class's name."""
    if not isinstance(value, type) or not issubclass(value, Constraint) or value is Constraint:
        return False
    return value.__struct_config__.tag != value.__name__
