"""Find operations that the hardware cannot run."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Self

from msgspec.structs import replace

from idbg.analysis import ops
from idbg.constraints.base import BadValue, Constraint, Finding, first_match, matches
from idbg.constraints.facts import GraphFacts, NodeSignature

# op -> something that computes the same values
_REWRITES = {
    "conv2d": "torch.nn.functional.unfold and a matmul compute the same",
    "prelu": "torch.where(x > 0, x, weight * x) computes the same",
    "kthvalue": "torch.sort(x).values at index k - 1 is the same value",
}


class UnsupportedOps(Constraint, frozen=True, tag="unsupported_ops"):
    """No call may match a glob of `deny`; with `allow`, each call must match one of its globs.

    A glob is matched against what the op is called ("convolution", "relu_"; every overload) and against its full
    target ("aten.sum.dim_IntList", "torch.nn.functional.*"). An op is the same op at every stage: "convolution" denies
    a Dynamo graph's torch.conv2d, "conv2d" an ATen graph's two-dimensional convolution. "relu" denies relu_ too;
    "relu_" only that. Calls that make no tensor (sizes) and the unpacking of tuples never need to be in `allow`.
    """

    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None

    def validate(self) -> None:
        for glob in self.allow or ():
            if glob in self.deny:
                raise BadValue("deny", f'"{glob}" is in allow and in deny', hint="take it out of one of them")

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        """A call that `deny` matches, or that `allow` does not; nothing for what is no call."""
        names = ops.names(signature)
        if not names:
            return
        if self.deny and matches(signature, self.deny):
            glob = first_match(signature, self.deny)
            alias = "" if names[0] in (glob, ops.short_name(glob)) else f" (as {glob})"
            yield Finding(f"{names[0]} is denied{alias}", "an op that the accelerator runs", _fix(names, glob))
        elif self.allow is not None and not matches(signature, self.allow) and not _only_python(signature, names[0]):
            yield Finding(f"{names[0]} is not supported", "an op that the accelerator runs", _fix(names, ""))

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """Without the globs of `deny` that are matched, and with the ops that `allow` lacks."""
        matched = {glob for glob in self.deny for signature in signatures if matches(signature, (glob,))}
        deny = tuple(glob for glob in self.deny if glob not in matched)
        if self.allow is None:
            return replace(self, deny=deny)
        bare = replace(self, deny=())
        missing = dict.fromkeys(
            ops.names(signature)[0] for signature in signatures if any(True for _ in bare.check(signature))
        )
        return replace(self, deny=deny, allow=(*self.allow, *missing))

    def contradicts(self, other: Constraint) -> str:
        """A glob that this rule allows and the other denies."""
        if isinstance(other, UnsupportedOps):
            both = [glob for glob in self.allow or () if any(fnmatchcase(glob, denied) for denied in other.deny)]
            if both:
                return f'"{both[0]}" is allowed by one and denied by the other'
        return ""

    def odd(self) -> str:
        """A rule with neither `deny` nor `allow`."""
        if not self.deny and self.allow is None:
            return "it denies nothing: give it deny or allow"
        return Constraint.odd(self)

    def globs(self) -> Iterator[tuple[str, str]]:
        yield from Constraint.globs(self)
        yield from (("deny", glob) for glob in self.deny)
        yield from (("allow", glob) for glob in self.allow or ())


def _only_python(signature: NodeSignature, name: str) -> bool:
    return name == "getitem" or not (signature.tensors or signature.unknown or name == "setitem")


def _fix(names: tuple[str, ...], glob: str) -> str:
    own = names[0]
    if own.endswith("_") and own in (glob, ops.short_name(glob)):
        return f"use the form that makes a new tensor: {own.removesuffix('_')}"
    rewrite = next((_REWRITES[name] for name in names if name in _REWRITES), "")
    listed = f'take "{glob}" out of "deny"' if glob else f'add "{own}" to "allow"'
    return rewrite or f"write it with other ops, or {listed} if the hardware runs it"
