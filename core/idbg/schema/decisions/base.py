"""The base of all records of the compiler's decisions."""

from collections.abc import Hashable

import msgspec


class Decision(msgspec.Struct, frozen=True, tag_field="kind"):
    """One decision of the compiler in a run. Its tag is its `kind` in a session's log."""

    def slot(self, frame: str) -> Hashable:
        """A run holds the last decision of each slot; where a kind has no slots (None), all of each frame."""
        return None

    def facts(self, *without: str) -> dict[str, object]:
        """Its fields as they are encoded, but those of these names and its kind."""
        fields: dict[str, object] = msgspec.to_builtins(self)
        return {name: value for name, value in fields.items() if name not in ("kind", *without)}
