"""An accelerator: the rules of a hardware target, and how it computes.

An accelerator is a TOML file: a name, a description, and any number of `[[rules]]` tables, each of a `kind` that names
a class in `idbg.constraints`; and, for a mock backend that computes as the hardware would, one `[numerics]` table
(`Numerics`). `parse` reads such a text, `registry` finds one by its name.
"""

import math
from typing import Literal

import msgspec

from idbg.constraints import Constraint
from idbg.constraints.base import BadValue
from idbg.constraints.dtype import dtype_name
from idbg.format.spelling import did_you_mean
from idbg.schema.graphs import DTYPE_OF_SHORT

# compute -> what may accumulate it: each holds every value that compute holds; the first is the default
ACCUMULATES: dict[str, tuple[str, ...]] = {
    "float32": ("float32", "float64"),
    "tf32": ("float32", "float64"),
    "bfloat16": ("float32", "float64", "bfloat16"),
    "float16": ("float32", "float64", "float16"),
    "float8_e4m3fn": ("float32", "float64", "float16", "bfloat16"),
    "float8_e5m2": ("float32", "float64", "float16", "bfloat16"),
    "float8_e4m3fnuz": ("float32", "float64", "float16", "bfloat16"),
    "float8_e5m2fnuz": ("float32", "float64", "float16", "bfloat16"),
    "int8": ("int32", "float32", "float64"),
}

# names that hardware manuals use and torch does not; "fp8" alone is the one for weights and activations
_ALIASES = {
    "tf32": "tf32",
    "tensorfloat32": "tf32",
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "fp8": "float8_e4m3fn",
    "e4m3": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn",
    "float8_e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "fp8_e5m2": "float8_e5m2",
}


class Numerics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The accelerator's `[numerics]` table: what the mock backend rounds to. Raises BadValue for what makes no sense.

    `compute` is the format of every value; `accumulate` that in which matmuls, convolutions and reductions add up
    (float32, for int8 int32). `scale` is for fp8 and int8, where a value is q * scale with q in the format: a number,
    or "tensor" (the default): the largest magnitude of each tensor, over the format's largest.
    `flush_denormals`: numbers below the format's smallest normal become zero and keep their sign.
    """

    compute: str
    accumulate: str = ""
    scale: float | Literal["tensor"] | None = None
    flush_denormals: bool = False

    def __post_init__(self) -> None:
        compute = _format("compute", self.compute)
        if compute not in ACCUMULATES:
            raise BadValue(
                "compute", f"nothing computes in {compute} here", hint=f"there are: {', '.join(ACCUMULATES)}"
            )
        accumulate = _format("accumulate", self.accumulate or ACCUMULATES[compute][0])
        if accumulate not in ACCUMULATES[compute]:
            message = f"{accumulate} cannot hold the values of {compute} that it is to add up"
            raise BadValue("accumulate", message, hint=f"use {' or '.join(ACCUMULATES[compute])}")
        msgspec.structs.force_setattr(self, "compute", compute)
        msgspec.structs.force_setattr(self, "accumulate", accumulate)
        self._check_scale()
        if self.flush_denormals and compute == "int8":
            raise BadValue("flush_denormals", "int8 has no denormals to flush", hint="take flush_denormals out")

    @property
    def scaled(self) -> bool:
        """Whether the format is so small that values need a scale."""
        return self.compute == "int8" or self.compute.startswith("float8")

    def _check_scale(self) -> None:
        if not self.scaled:
            if self.scale is not None:
                raise BadValue("scale", f"{self.compute} takes no scale", hint="take scale out: it is for fp8 and int8")
        elif self.scale is None:
            msgspec.structs.force_setattr(self, "scale", "tensor")
        elif self.scale != "tensor" and not (self.scale > 0 and math.isfinite(self.scale)):
            raise BadValue("scale", f"scale is {self.scale}", hint='use a number above 0, or "tensor": as each needs')


def _format(key: str, spelling: str) -> str:
    """The full name of a format. Raises BadValue, with `key`, if there is none."""
    plain = spelling.removeprefix("torch.")
    if plain in _ALIASES:
        return _ALIASES[plain]
    try:
        return dtype_name(plain)
    except BadValue:
        short = [name for name, full in DTYPE_OF_SHORT.items() if full in ACCUMULATES]
        there = f"there are: {', '.join(ACCUMULATES)}"
        hint = did_you_mean(plain, (*ACCUMULATES, *_ALIASES, *short), there, form='"{}"'.format)
        raise BadValue(key, f'{key} is "{spelling}", which is no number format', hint=hint) from None


class Accelerator(msgspec.Struct, frozen=True):
    """The hardware's rules. Without rules, everything is accepted."""

    name: str = "unnamed"
    description: str = ""
    rules: tuple[Constraint, ...] = ()
    numerics: Numerics | None = None
