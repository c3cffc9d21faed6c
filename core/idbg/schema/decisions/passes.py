"""What did each pass do to a graph?"""

from typing import Literal

import msgspec

from idbg.schema.graphs import Part

Phase = Literal["pre_grad", "joint", "post_grad"]


class PassRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a pass that changed a graph. `before` and `after` are the graph's nodes in order, one line each as
    FX prints them, but for what most passes leave alone: only the lines from `first` to the last that differs are
    here, with a few that do not differ on both sides. `file` and `line`: where the pass is defined; `own` says that
    it is the program's. `came`, `went`, `moved` and `changed` are names of nodes; `of` maps a node that came to those
    that it replaces.
    """

    phase: Phase
    name: str
    number: int = 0
    part: Part = ""
    file: str = ""
    line: int = 0
    own: bool = False
    seconds: float | None = None
    nodes: tuple[int, int] = (0, 0)
    first: int = 0
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    of: tuple[tuple[str, tuple[str, ...]], ...] = ()
