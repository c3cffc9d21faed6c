"""Find matrix products that are larger than one pass of the hardware's matrix unit."""

from collections.abc import Iterator, Sequence
from math import ceil, prod
from typing import Self

from msgspec.structs import replace

from idbg.analysis import ops
from idbg.constraints.base import BadValue, Constraint, Finding
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.schema.graphs import hint_of
from idbg.schema.violations import Severity

_LAST_TWO = ("mm", "bmm", "matmul", "addmm", "baddbmm", "linear")


class MatmulTile(Constraint, frozen=True, tag="matmul_tile"):
    """The product of an m by k and a k by n matrix runs in tiles beyond `m`, `k` or `n`; not given is no limit.

    The matrices are the operands that the op's parameters say, in whatever order a call names them; mm(x, x) has both.
    """

    severity: Severity = "tile"
    m: int | None = None
    k: int | None = None
    n: int | None = None

    def validate(self) -> None:
        for key in ("m", "k", "n"):
            limit = getattr(self, key)
            if limit is not None and limit < 1:
                raise BadValue(key, f"{key} is {limit}; it must be 1 or more", hint="leave it out for no limit")

    def odd(self) -> str:
        """A rule with none of the three limits."""
        return (
            Constraint.odd(self)
            if (self.m, self.k, self.n) != (None, None, None)
            else "it limits nothing: give m, k or n"
        )

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        """A product with a size beyond its limit, and in how many tiles it runs."""
        sizes = matmul_sizes(signature)
        beyond = [(key, size, limit) for key, size, limit in self._limits(sizes) if size > limit]
        if beyond:
            tiles = prod(ceil(size / limit) for _, size, limit in beyond)
            found = ", ".join(f"{key} is {size}" for key, size, _ in beyond)
            wanted = ", ".join(f"{key} at most {limit}" for key, _, limit in beyond)
            yield Finding(found, wanted, f"runs in {tiles} tiles")

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """The limits that are given, raised to the largest product."""
        products = [matmul_sizes(signature) for signature in signatures]
        wider = {
            key: max(limit, *(sizes[key] for sizes in products if sizes))
            for key in ("m", "k", "n")
            if (limit := getattr(self, key)) is not None and any(products)
        }
        return replace(self, **wider)

    def _limits(self, sizes: dict[str, int]) -> Iterator[tuple[str, int, int]]:
        for key, size in sizes.items():
            if (limit := getattr(self, key)) is not None:
                yield key, size, limit


def matmul_sizes(signature: NodeSignature) -> dict[str, int]:
    """m, k and n of a matrix product, at the hints of symbols; nothing for other calls, or where a hint is missing."""
    name = next((name for name in ops.names(signature) if name in _LAST_TWO), "")
    operands = [operand.tensor for operand in signature.operands]
    if name in ("addmm", "baddbmm"):
        operands = operands[1:]
    if not name or len(operands) < 2:
        return {}
    left, right = operands[0].shape, operands[1].shape
    if not left or not right:
        return {}
    n = right[0] if name == "linear" and len(right) > 1 else right[-1] if len(right) > 1 and name != "linear" else 1
    m = left[-2] if len(left) > 1 else 1
    sizes = {"m": hint_of(m), "k": hint_of(left[-1]), "n": hint_of(n)}
    known = {key: size for key, size in sizes.items() if size is not None}
    return known if len(known) == len(sizes) else {}
