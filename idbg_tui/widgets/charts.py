"""Draw series of numbers in cells, with plotext."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from idbg.format.glyphs import is_ascii
from idbg_tui.widgets.lines import StyledRow

if TYPE_CHECKING:
    import plotext

_FRAME = str.maketrans(dict.fromkeys("┌┐└┘┤┬├┴┼", "+") | {"─": "-", "│": "|"})


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
    low, high = floor(log10(min(lows))), max(ceil(log10(max(lows))), floor(log10(min(lows))) + 1)
    figure = blank(width, height)
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
    return built({one.mark: one.style for one in series})


def blank(width: int, height: int) -> "plotext.figure":
    """plotext's figure, which is one for the whole process: it is built on one thread, and cleared first."""
    import plotext  # not at the top: it takes 0.1 s, for which the first paint would wait

    plotext.figure.clear()
    plotext.figure.plot_size(width, height)
    return plotext.figure


def built(styles: Mapping[str, str]) -> list[StyledRow]:
    """The rows of plotext's figure: each mark in its style, the frame and the figures beside it dim."""
    import plotext

    text = plotext.uncolorize(plotext.figure.build().string())
    return [list(_styled(line, styles)) for line in text.rstrip("\n").split("\n")]


def _styled(line: str, styles: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    inside = next((at for at, cell in enumerate(line) if cell in "│┤"), len(line))  # marks may be letters of the frame

    def style(cell: tuple[int, str]) -> str:
        return styles.get(cell[1], "dim") if cell[0] > inside else "dim"

    for name, cells in groupby(enumerate(line), style):
        text = "".join(cell for _, cell in cells)
        yield (text.translate(_FRAME) if is_ascii() else text), name
