"""Draw series of numbers in cells, with plotext."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10

from idbg.format.glyphs import is_ascii
from idbg_tui.widgets.lines import StyledRow

_AXIS = re.compile("[│┤]")
_PLAIN = str.maketrans(dict.fromkeys("┌┐└┘┤┬├┴┼", "+") | {"─": "-", "│": "|"})


@dataclass(frozen=True)
class Series:
    """Points (x, y > 0) of one mark and style; the later series are drawn over the earlier ones."""

    points: Sequence[tuple[float, float]]
    mark: str
    style: str


def log_chart(series: Sequence[Series], width: int, height: int, *, least: float, most: float) -> list[StyledRow]:
    """Points over a logarithmic y; what is below `least` or above `most` is drawn there."""
    lows = [max(min(y, most), least) for one in series for _, y in one.points]
    xs = [x for one in series for x, _ in one.points]
    if not lows:
        return []
    import plotext  # not at the top: it takes 0.1 s, for which the first paint would wait

    low, high = floor(log10(min(lows))), max(ceil(log10(max(lows))), floor(log10(min(lows))) + 1)
    figure = plotext.figure  # one for the whole process: built on one thread, cleared first
    figure.clear()
    figure.plot_size(width, height)
    for one in series:
        if one.points:
            heights = [log10(max(min(y, most), least)) for _, y in one.points]
            figure.draw(figure.signal([x for x, _ in one.points], heights, marker=one.mark))
    ruler = figure.ruler("y")
    ruler.lim(low - 0.2, high + 0.2)
    step = max(1, (high - low) // max(1, height // 3))
    places = list(range(low, high + 1, step))
    ruler.ticks(places, [f"1e{place:+03d}" for place in places])
    ticks = sorted({round(min(xs) + (max(xs) - min(xs)) * part / 4) for part in range(5)})
    figure.ruler("x").ticks(ticks, [str(tick) for tick in ticks])
    text = plotext.uncolorize(figure.build().string())
    styles = {one.mark: one.style for one in series}
    return [list(_styled(line, styles)) for line in text.rstrip("\n").split("\n")]


def _styled(line: str, styles: dict[str, str]) -> Iterator[tuple[str, str]]:
    plain = is_ascii()
    axis = _AXIS.search(line)
    inside = axis.start() if axis else len(line)  # marks are letters too: those of the axis are not points
    for begins, cells in groupby(
        enumerate(line), lambda cell: styles.get(cell[1], "dim") if cell[0] > inside else "dim"
    ):
        text = "".join(cell for _, cell in cells)
        yield (text.translate(_PLAIN) if plain else text), begins
