"""Records of the compiler's decisions. Each subclass of `Decision` in a module here is a kind, and found by itself.

`dynamo` has those of Dynamo, `inductor` those of Inductor, `backends` those of other packages; `decided` is the fold of
their events. The `REPORTS` of a module are how its decisions are reported, in every output.
"""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from idbg.schema.decisions.base import Decision as Decision
from idbg.schema.decisions.base import Report as Report


@lru_cache(maxsize=1)
def modules() -> tuple[ModuleType, ...]:
    """The modules of this room, by name."""
    return tuple(import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))


@lru_cache(maxsize=1)
def kinds() -> dict[str, type[Decision]]:
    """Every kind of decision by its tag."""
    values = (value for module in modules() for value in vars(module).values())
    found = (value for value in values if isinstance(value, type) and issubclass(value, Decision))
    return {str(kind.__struct_config__.tag): kind for kind in found if kind is not Decision}


@lru_cache(maxsize=1)
def reports() -> tuple[Report, ...]:
    """The reports of all modules, in the order in which they are shown."""
    found = [report for module in modules() for report in getattr(module, "REPORTS", ())]
    return tuple(sorted(found, key=lambda report: ("node", "line", "frame", "run").index(report.of)))
