"""Find calls that mix operands of several dtypes."""

from collections.abc import Iterator

from idbg.constraints.base import Constraint, Finding
from idbg.constraints.facts import NodeSignature


class SameDtype(Constraint, frozen=True, tag="same_dtype"):
    """All tensors that one call reads must have one dtype. Meant with `ops`."""

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        """A call that reads more than one dtype."""
        dtypes = list(dict.fromkeys(operand.tensor.dtype for operand in signature.operands))
        if len(dtypes) > 1 and signature.op.startswith("call"):
            fix = f"cast the operands to one dtype before: .to(torch.{dtypes[0]})"
            yield Finding(f"operands are {' and '.join(dtypes)}", "operands of one dtype", fix)
