"""An accelerator: the rules of a hardware target, and how it computes.

An accelerator is a TOML file: a name, a description, and any number of `[[rules]]` tables, each of a `kind` that names
a class in `idbg.constraints`; and, for a mock backend that computes as the hardware would, one `[numerics]` table
(`idbg.accelerators.numerics`). `parse` reads such a text, `registry` finds one by its name.
"""

import msgspec

from idbg.accelerators.numerics import Numerics
from idbg.constraints import Constraint


class Accelerator(msgspec.Struct, frozen=True):
    """The hardware's rules. Without rules, everything is accepted."""

    name: str = "unnamed"
    description: str = ""
    rules: tuple[Constraint, ...] = ()
    numerics: Numerics | None = None
