"""Find tensors with a size that is known only when the program runs."""

from collections.abc import Iterator

from idbg.analysis.sizes import spelled_dim
from idbg.constraints.base import Finding, TensorRule
from idbg.constraints.facts import NodeSignature
from idbg.schema.graphs import Role, Sym, TensorMeta


class StaticShapes(TensorRule, frozen=True, tag="static_shapes"):
    """No size may be symbolic."""

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """Every symbolic size of a tensor."""
        symbols = [(place, dim) for place, dim in enumerate(tensor.shape) if isinstance(dim, Sym)]
        if symbols:
            found = ", ".join([f"dim {place} is {spelled_dim(dim)}" for place, dim in symbols])
            known = all(dim.hint is not None for _, dim in symbols)
            fix = "compile with dynamic=False: one graph a shape" if known else "pad to a fixed size before this point"
            yield Finding(found, "sizes that are known when it compiles", fix)
