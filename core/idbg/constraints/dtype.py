"""Find tensors with a dtype that the hardware does not support."""

from collections.abc import Iterator, Sequence
from typing import Self

import msgspec

from idbg.constraints.base import BadValue, Constraint, Finding, TensorRule
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.format.spelling import did_you_mean
from idbg.schema.graphs import DTYPE_OF_SHORT, DTYPES, Role, TensorMeta

# torch's own second names of dtypes
_ALIASES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
}

# what to cast to instead, best first: the nearest dtypes that keep most of the values
_NEAREST = {
    "float64": ("float32", "bfloat16", "float16"),
    "float32": ("bfloat16", "float16"),
    "float16": ("bfloat16", "float32"),
    "bfloat16": ("float16", "float32"),
    "int64": ("int32", "int16", "int8"),
    "int32": ("int64", "int16", "int8"),
    "int16": ("int32", "int64", "int8"),
    "int8": ("int16", "int32", "int64"),
    "uint8": ("int16", "int32", "int64"),
    "bool": ("uint8", "int8", "int32"),
    "complex128": ("complex64",),
}


def dtype_name(spelling: object) -> str:
    """The dtype's full name, from "float32", "f32", "torch.float32", "float" or torch.float32 itself.

    Raises BadValue (for the key `allowed`) if there is no such dtype.
    """
    given = str(spelling)
    name = given.removeprefix("torch.")
    name = _ALIASES.get(name, DTYPE_OF_SHORT.get(name, name))
    if name in DTYPES:
        return name
    hint = did_you_mean(name, (*DTYPES, *DTYPE_OF_SHORT), "dtypes are " + ", ".join(DTYPES), form='"{}"'.format)
    raise BadValue("allowed", f'there is no dtype "{given}"', hint=hint)


class Dtype(TensorRule, frozen=True, tag="dtype"):
    """Every tensor's dtype must be one of `allowed`. Names may be spelled "float32", "f32" or "torch.float32"."""

    allowed: tuple[str, ...]

    def validate(self) -> None:
        """Put the full names of dtypes in the place of short ones. Raises BadValue for what is no dtype."""
        names = tuple(dict.fromkeys(dtype_name(spelling) for spelling in self.allowed))
        msgspec.structs.force_setattr(self, "allowed", names)

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """A dtype that is not allowed; the fix names the nearest one that is."""
        if tensor.dtype not in self.allowed:
            yield Finding(f"dtype is {tensor.dtype}", self._wanted(), self._fix(role, signature, tensor.dtype))

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """The dtypes that are missing, added."""
        used = dict.fromkeys(tensor.dtype for tensor in self.concerned(signatures))
        return msgspec.structs.replace(self, allowed=tuple(dict.fromkeys((*self.allowed, *used))))

    def contradicts(self, other: Constraint) -> str:
        """Two lists of dtypes with nothing in common."""
        if isinstance(other, Dtype) and not set(self.allowed) & set(other.allowed):
            return "they allow no dtype in common"
        return ""

    def _wanted(self) -> str:
        missing = [name for name in DTYPES if name not in self.allowed]
        if len(self.allowed) <= 4 or len(missing) >= len(self.allowed):
            return " or ".join(self.allowed) or "no tensor at all (allowed is empty)"
        return "any dtype but " + ", ".join(missing)

    def _fix(self, role: Role, signature: NodeSignature, dtype: str) -> str:
        near = next((name for name in _NEAREST.get(dtype, ()) if name in self.allowed), "")
        if not near:
            if dtype.startswith("complex") and not any(name.startswith("complex") for name in self.allowed):
                return "split it into real and imaginary parts: torch.view_as_real"
            return f'if the hardware takes {dtype}, add it to the rule\'s "allowed"'
        if role in ("weight", "buffer"):
            return f"convert the module: module.to(torch.{near})"
        if signature.op == "placeholder":
            return f"pass it as {near}: .to(torch.{near})"
        return f"compute it in {near}: cast with .to(torch.{near})"
