"""The base of all records of the compiler's decisions, and how a kind of them is reported."""

from collections.abc import Hashable
from typing import Literal, NamedTuple

import msgspec


class Decision(msgspec.Struct, frozen=True, tag_field="kind"):
    """One decision of the compiler in a run. Its tag is its `kind` in a session's log."""

    def slot(self, frame: str) -> Hashable:
        """A run holds the last decision of each slot; where a kind has no slots (None), all of each frame."""
        return None

    def facts(self, *without: str, **more: object) -> dict[str, object]:
        """Its fields as they are encoded, but those of these names and its kind; and `more`."""
        fields: dict[str, object] = {**msgspec.to_builtins(self), **more}
        return {name: value for name, value in fields.items() if name not in ("kind", *without)}


class Report(NamedTuple):
    """What is reported of some decisions, and `about` what it answers, in a line."""

    name: str
    """The type of `idbg analyze`, and the module of `idbg.views`."""
    about: str
    of: Literal["node", "line", "frame", "run"]
    """What its rows are about; in this order are reports shown."""
    lacks: str = ""
    """What a trace has no record of where its NotRecorded has this name, in words."""
    row: str = ""
    """What the search of the HTML page calls a row; "" where it is not among the page's decisions."""
    under: str = ""
    """The view of the pane Why below whose rows it is."""
    finding: int = 0
    """Its place in Findings: what its view's `findings`, or else `view`, has. 0: it is no finding."""
    has_words: bool = False
    """Whether its view has `in_short`: what stands beside a run's counts."""
