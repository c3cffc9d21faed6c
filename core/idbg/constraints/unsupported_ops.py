"""Which operations can the hardware not run?"""

import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import lru_cache

from idbg.constraints import ops
from idbg.constraints.base import Constraint, Finding
from idbg.records import Node

# op -> something that computes the same values
_REWRITES = {
    "conv2d": "torch.nn.functional.unfold and a matmul compute the same",
    "prelu": "torch.where(x > 0, x, weight * x) computes the same",
    "kthvalue": "torch.sort(x).values at index k - 1 is the same value",
}


class UnsupportedOps(Constraint, frozen=True, tag="unsupported_ops"):
    """No call may match a glob of `deny`.

    A glob is matched against what the op is called ("convolution", "relu_"; every overload) and against its full
    target ("aten.sum.dim_IntList", "torch.nn.functional.*"). An op is the same op at every stage: "convolution" denies
    a Dynamo graph's torch.conv2d, "conv2d" an ATen graph's two-dimensional convolution. "relu" denies relu_ too;
    "relu_" only that.
    """

    deny: tuple[str, ...]

    def check(self, node: Node) -> Iterator[Finding]:
        names = ops.names(node)
        if not names:
            return
        candidates = [*names, *ops.targets(node, names)]
        if not any(map(_matcher(self.deny), candidates)):
            return
        glob = next(glob for glob in self.deny if any(map(_matcher((glob,)), candidates)))
        alias = "" if names[0] in (glob, ops.short_name(glob)) else f" (as {glob})"
        yield Finding(f"{names[0]} is denied{alias}", "an op that the accelerator runs", _fix(names, glob))


@lru_cache(maxsize=256)
def _matcher(globs: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """One function that tells whether a name matches any of the globs."""
    spellings = [spelling for glob in globs for spelling in _spellings(glob)]
    return re.compile("|".join(map(translate, spellings)) or r"(?!)").fullmatch


def _spellings(glob: str) -> tuple[str, ...]:
    """A Python function's path stands for its op as well: "torch.nn.functional.conv2d" means conv2d at every stage."""
    if glob.startswith("torch.") and not ops.is_overload(glob) and not set(glob) & set("*?["):
        return glob, ops.short_name(glob)
    return (glob,)


def _fix(names: tuple[str, ...], glob: str) -> str:
    own = names[0]
    if own.endswith("_") and own in (glob, ops.short_name(glob)):
        return f"use the form that makes a new tensor: {own.removesuffix('_')}"
    rewrite = next((_REWRITES[name] for name in names if name in _REWRITES), "")
    return rewrite or f'write it with other ops, or take "{glob}" out of "deny" if the hardware runs it'
