"""Base classes of rules: where a rule applies, and what it finds."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Literal, Self

import msgspec

from idbg.analysis import ops
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.format.amounts import percentage
from idbg.schema.graphs import Role, Stage, TensorMeta
from idbg.schema.violations import Severity, Violation


def matches(signature: NodeSignature, globs: tuple[str, ...]) -> bool:
    """Whether what the call is called, at whatever stage, matches any of the globs; never for what is not a call."""
    names = ops.names(signature)
    return bool(names) and matches_any((*names, *ops.targets(signature.target, names)), globs)


def first_match(signature: NodeSignature, globs: Iterable[str]) -> str:
    """The first glob that the call matches, "" if there is none."""
    return next((glob for glob in globs if matches(signature, (glob,))), "")


@lru_cache(maxsize=1 << 16)
def matches_any(names: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    """Whether any of the names matches any of the globs."""
    return any(map(_matcher(globs), names))


@lru_cache(maxsize=1 << 14)
def _matcher(globs: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    spellings = [spelling for glob in globs for spelling in _spellings(glob)]
    return re.compile("|".join(map(translate, spellings)) or r"(?!)").fullmatch


def _spellings(glob: str) -> tuple[str, ...]:
    """A Python function's path stands for its op as well: "torch.nn.functional.conv2d" means conv2d at every stage."""
    glob = glob.removeprefix("torch.ops.")
    if (
        glob.startswith(("torch.", "operator.", "_operator."))
        and not ops.is_overload(glob)
        and not set(glob) & set("*?[")
    ):
        return glob, ops.short_name(glob)
    return (glob,)


Scope = Literal["inputs", "outputs", "weights", "intermediates"]

_SCOPE_OF: dict[Role, Scope] = {
    "input": "inputs",
    "tangent": "inputs",
    "saved": "inputs",
    "weight": "weights",
    "buffer": "weights",
    "intermediate": "intermediates",
    "output": "outputs",
}


class Finding(msgspec.Struct, frozen=True, gc=False):
    """Why one node breaks one rule. Reads as: dim 0 is 10 (found); wanted a multiple of 16; fix: pad to 16.

    `adds`: the bytes that the fix adds, as a share of the tensor's. `hint`: what the rule's author advises.
    """

    found: str
    wanted: str
    fix: str = ""
    adds: float | None = None
    hint: str = ""

    @classmethod
    def of(cls, violation: Violation) -> Self:
        """What was found of one node."""
        return cls(violation.found, violation.wanted, violation.fix, violation.adds, violation.hint)

    @property
    def advice(self) -> str:
        """All that can be done: "pad to 16: +60 % bytes; use the other kernel"."""
        return "; ".join(part for part in (self.fix + _added_bytes(self.adds), self.hint) if part)


_HOPELESS = 1000  # times the bytes


def _added_bytes(share: float | None) -> str:
    """ ": +60 % bytes"; nothing where it is not known."""
    if share is None:
        return ""
    return f": over {_HOPELESS:,} times the bytes" if share >= _HOPELESS else f": +{percentage(100 * share)} bytes"


class BadValue(ValueError):
    """A rule's key has the right type and a value that makes no sense. Raised by `Constraint.validate`."""

    def __init__(self, key: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.hint = hint


class Constraint(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True, omit_defaults=True
):
    """One rule of an accelerator: a `[[rules]]` table of its TOML file, with the keys that the subclass names.

    A subclass gives its `kind` as the struct's tag and implements `check`. `name` is what violations call the rule (its
    kind, if not given); `source` is the URL of the document that the rule was taken from, and `version` the release
    that it describes. `fix` is a hint in the author's words, shown after ours. The rest is where the rule applies: to
    calls of `ops` (globs), to nodes of `roles`, in graphs of `stages`; everywhere, where they are empty.
    """

    name: str = ""
    severity: Severity = "reject"
    enabled: bool = True
    source: str = ""
    version: str = ""
    fix: str = ""
    ops: tuple[str, ...] = ()
    roles: tuple[Scope, ...] = ()
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            msgspec.structs.force_setattr(self, "name", self.kind)
        for field in self.__struct_fields__:
            if isinstance(value := getattr(self, field), list):  # from Python; a file's are tuples already
                msgspec.structs.force_setattr(self, field, tuple(value))
        self.validate()

    @property
    def kind(self) -> str:
        """What a `[[rules]]` table calls it: the struct's tag."""
        return str(self.__struct_config__.tag)

    @property
    def is_about_graphs(self) -> bool:
        """Whether it is a graph as a whole that breaks it."""
        return type(self).check_whole is not Constraint.check_whole

    def validate(self) -> None:
        """Raise BadValue if a key's value makes no sense."""

    def concerns(self, signature: NodeSignature) -> bool:
        """Whether the rule applies to nodes of this signature."""
        return self.takes(signature.role) and (not self.ops or matches(signature, self.ops))

    def takes(self, role: Role) -> bool:
        """Whether the rule applies to what nodes of this role make."""
        return not self.roles or _SCOPE_OF[role] in self.roles

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        """Everything about nodes of this signature that breaks the rule."""
        yield from ()

    def check_whole(self, facts: GraphFacts) -> Iterator[tuple[int, Finding]]:
        """What the graph as a whole breaks: the index of the node at which it shows, and the finding."""
        yield from ()

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """This rule with the smallest change with which none of these nodes, and none of these graphs, breaks it.

        `signatures` are all that the rule concerns. None if no value of its keys does that; then only switching it off
        does.
        """
        return None

    def contradicts(self, other: "Constraint") -> str:
        """Why no tensor that both rules concern can satisfy both, in words; "" if one can."""
        return ""

    def odd(self) -> str:
        """Why this rule cannot be meant as it stands, in words; "" if it can."""
        pads = isinstance(self, TensorRule) and type(self).padded is not TensorRule.padded
        return (
            "it pads nothing: only alignment knows how, so take another severity"
            if self.severity == "pad" and not pads
            else ""
        )

    def globs(self) -> Iterator[tuple[str, str]]:
        """Every glob that names operations, with the key that it stands in."""
        yield from (("ops", glob) for glob in self.ops)


class TensorRule(Constraint, frozen=True, kw_only=True):
    """A rule about single tensors: those that a node makes ("results"), those that it reads ("operands"), or "all".

    `roles` are those of the nodes that make the tensors.
    """

    tensors: Literal["results", "operands", "all"] = "results"

    def concerns(self, signature: NodeSignature) -> bool:
        return not self.ops or matches(signature, self.ops)

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        for label, tensor, role in self.labelled(signature):
            for finding in self.check_tensor(tensor, role, signature):
                yield msgspec.structs.replace(finding, found=label + finding.found) if label else finding

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """What breaks the rule about one tensor; `role` is that of the node that makes it."""
        raise NotImplementedError

    def padded(self, tensor: TensorMeta, role: Role) -> tuple[int, ...] | None:
        """The shape that the hardware pads this tensor to; None if this rule pads nothing, or a size has no hint."""
        return None

    def labelled(self, signature: NodeSignature) -> Iterator[tuple[str, TensorMeta, Role]]:
        """Each tensor that the rule is about; where it is not the node's only one, with what starts its finding."""
        if self.tensors != "operands" and self.takes(signature.role):
            for index, tensor in enumerate(signature.tensors):
                yield ("" if len(signature.tensors) == 1 else f"output {index}: "), tensor, signature.role
        if self.tensors != "results":
            for index, operand in enumerate(signature.operands):
                if self.takes(operand.role):
                    yield f"operand {index}: ", operand.tensor, operand.role

    def concerned(self, signatures: Sequence[NodeSignature]) -> Iterator[TensorMeta]:
        """Every tensor of these nodes that the rule is about."""
        return (tensor for signature in signatures for _, tensor, _ in self.labelled(signature))
