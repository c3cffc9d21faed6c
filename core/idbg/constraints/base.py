"""What is a rule, and what does it say about a node that breaks it?"""

from collections.abc import Iterator

import msgspec

from idbg.records import Node, Severity, TensorMeta


class Finding(msgspec.Struct, frozen=True, gc=False):
    """Why one node breaks one rule. Reads as: dim 0 is 10 (found); wanted a multiple of 16; fix: pad to 16."""

    found: str
    wanted: str
    fix: str = ""


class BadValue(ValueError):
    """A rule's key has the right type and a value that makes no sense. Raised by `Constraint.validate`."""

    def __init__(self, key: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.hint = hint


class Constraint(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """One rule of an accelerator: a `[[rules]]` table of its TOML file, with the keys that the subclass names.

    A subclass gives its `kind` as the struct's tag and implements `check`. `name` is what violations call the rule (its
    kind, if not given), `source` is the URL of the document that the rule was taken from.
    """

    name: str = ""
    severity: Severity = "reject"
    enabled: bool = True
    source: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            msgspec.structs.force_setattr(self, "name", self.kind)
        self.validate()

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    def validate(self) -> None:
        """Raise BadValue if a key's value makes no sense."""

    def check(self, node: Node) -> Iterator[Finding]:
        """Everything about this node that breaks the rule.

        A node is checked once for all those that look the same, so only these of its fields are filled: `op`, `target`
        (calls only), `role`, `tensors`, `module_class` (call_module only), and in `args` what `ops.flags` reads.
        """
        raise NotImplementedError


def labelled(node: Node) -> Iterator[tuple[str, TensorMeta]]:
    """Each tensor in the node's value; where there are several, with a label that starts its finding: "output 1: "."""
    if len(node.tensors) == 1:
        yield "", node.tensors[0]
        return
    for index, tensor in enumerate(node.tensors):
        yield f"output {index}: ", tensor
