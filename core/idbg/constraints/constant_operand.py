"""Find calls with a computed argument where the hardware needs a constant."""

from collections.abc import Iterator

from idbg.constraints.base import BadValue, Constraint, Finding
from idbg.constraints.facts import NodeSignature


class ConstantOperand(Constraint, frozen=True, tag="constant_operand"):
    """The operand at `position` (0: the first tensor that a call reads) must be a weight or buffer; use with `ops`.

    Operands of products, convolutions and attention count in the order of the op's parameters, however a call names
    them: the weight of a convolution is 1, and mm(x, x) has 0 and 1. Those of other ops count as they stand in the
    call, each once.
    """

    position: int

    def validate(self) -> None:
        """A position is 0 or more."""
        if self.position < 0:
            raise BadValue("position", f"position is {self.position}; it must be 0 or more", hint="1 is the second")

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        """A call whose operand there is neither a weight nor a buffer; calls with fewer operands are left alone."""
        if signature.op.startswith("call") and self.position < len(signature.operands):
            role = signature.operands[self.position].role
            if role not in ("weight", "buffer"):
                fix = "make it a parameter or a buffer of the module"
                yield Finding(
                    f"operand {self.position} is computed when it runs", "a constant: a weight or buffer", fix
                )
