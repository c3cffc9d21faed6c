"""Records of where the time of a compile goes."""

import msgspec


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that took time in a compile, as torch or we timed it: a phase, a pass, the build of a kernel.

    `id` is unique in its run, `parent` the span that it is in (0: none). `began` is in seconds since the epoch;
    `seconds` is None while it lasts: the same id is recorded again when it ends. `nodes` are those of the graph before
    and after. `what` tells spans of one name apart: a kernel's name, a pass's. `thread` 0 is the one that compiles;
    what runs beside it (a compiler on a thread of torch's, a process of its pool) has others.

    `times` above 1: so many of this name, each under a millisecond, were in this parent; `seconds` is all of them, from
    the first on, and other spans lie between them.
    """

    id: int
    name: str
    began: float
    parent: int = 0
    seconds: float | None = None
    frame: str = ""
    what: str = ""
    nodes: tuple[int, int] | None = None
    thread: int = 0
    times: int = 1
