"""Shorten shapes and names so that they stay recognizable."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

from idbg.format.glyphs import MARKS
from idbg_tui.widgets.lines import cut

_LIFTED = re.compile(r"l_(?:self_)?modules_(\w+?)_?")
_PARTS = re.compile(r"_(?:modules|parameters|buffers)_")


def cut_shape(text: str, width: int) -> str:
    """A shape in at most `width` cells: dimensions are left out whole, from the middle, never a part of a number."""
    if len(text) <= width or "[" not in text:
        return cut(text, width)
    dtype, _, rest = text.partition("[")
    inside, _, more = rest.partition("]")
    dims = inside.split(",")
    for kept in range(min(len(dims) - 1, width // 2), 0, -1):  # each takes a digit and a comma
        tail = kept // 2
        short = [*dims[: kept - tail], MARKS["ellipsis"], *(dims[-tail:] if tail else [])]
        shown = f"{dtype}[{','.join(short)}]{more}"
        if len(shown) <= width:
            return shown
    shown = f"{dtype}[{MARKS['ellipsis']}]"
    return shown if len(shown) <= width else cut(dtype, width)


def cut_name(name: str, width: int) -> str:
    """A node's name in at most `width` cells: of a parameter that Dynamo lifts its path in the model, which differs
    from others ("…mlp.0.weight" of l_self_modules_mlp_modules_0_parameters_weight_); of others the middle is cut out.
    """
    if len(name) <= width or (match := _LIFTED.fullmatch(name)) is None:
        return cut(name, width)
    dots, path = MARKS["ellipsis"], _PARTS.sub(".", match[1])
    return dots + path[-max(width - len(dots), 1) :]


def distinct(names: Sequence[str], width: int) -> dict[str, str]:
    """Each name in at most `width` cells: cut in its middle, or, where that makes two alike, around what differs."""
    shown = {name: cut(name, width) for name in names}
    long = [name for name in shown if len(name) > width]
    if len({shown[name] for name in long}) < len(long):
        first, last = _alike(long), _alike([name[::-1] for name in long])
        shown |= {name: _around(name, first, len(name) - last, width) for name in long}
    return shown


def _alike(names: Iterable[str]) -> int:
    """With how many letters do all of them begin?"""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))


def _around(name: str, first: int, end: int, width: int) -> str:
    """The name from before `first` to after `end`, in the middle of `width` cells."""
    dots = MARKS["ellipsis"]
    room = width - 2 * len(dots)
    spare = max(0, room - (end - first))
    start = max(0, min(first - spare // 2, len(name) - room))
    stop = max(end, start + room)
    return (dots if start else "") + cut(name[start:stop], room) + (dots if stop < len(name) else "")
