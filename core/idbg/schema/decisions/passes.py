"""Records of what each pass did to a graph."""

from typing import Literal

import msgspec

from idbg.schema.graphs import Part

Phase = Literal["pre_grad", "joint", "post_grad", "other"]
"""Inductor's phases; "other": a pass outside of them."""

BETWEEN = "between passes"
"""What changed a graph in a phase outside of all named passes goes by this name."""


class DiffRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One node before and after a pass, each as a line; "" on the side on which it is not, or stands elsewhere.

    `skipped`: how many nodes above it, that are alike on both sides, are left out.
    """

    name: str
    before: str = ""
    after: str = ""
    skipped: int = 0


class PassRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a pass that changed a graph; the `number`th of its phase.

    `by`: the function or class that it is, `file` and `line` where that is defined; `own` says that it is not torch's.
    `nodes`: how many before and after. `came`, `went`, `moved` and `changed` are names of nodes; `of` maps a node that
    came to those that it stands in the place of. `rows` are what differs, with a few nodes around it; `dropped`: rows
    beyond those that are kept.
    """

    name: str
    number: int = 0
    by: str = ""
    file: str = ""
    line: int = 0
    own: bool = False
    seconds: float | None = None
    nodes: tuple[int, int] = (0, 0)
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rows: tuple[DiffRow, ...] = ()
    dropped: int = 0


class PhaseRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One phase of passes over a graph: `ran` passes, of which `passes` changed it. `part` is known of the post-grad
    phase; `graph`: which of the graphs inside of the frame's (a branch of torch.cond) it was, "" for the frame's own.
    """

    phase: Phase
    part: Part = ""
    graph: str = ""
    ran: int = 0
    seconds: float | None = None
    nodes: tuple[int, int] = (0, 0)
    passes: tuple[PassRun, ...] = ()
