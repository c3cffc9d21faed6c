"""Build SVG elements that are well-formed whatever names they hold."""

from collections.abc import Iterable
from math import isfinite

from markupsafe import Markup, escape

from idbg.format.shown import clean, short

WIDTH = 860.0
"""Of a picture, in its own units, which are pixels where there is room for so many."""

_LETTER = 6.7  # units that a letter of the text takes, at most on average
LONGEST = 1000  # characters of a tooltip


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """One element. Children that are no Markup are escaped. `class_` is class, `text_anchor` text-anchor; None is left
    out.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else escape(clean(child)) for child in children)
    return Markup(
        f"<{tag}{written}>{inside}</{tag}>" if inside or tag in ("text", "g", "svg") else f"<{tag}{written}/>"
    )


def _value(value: str | float) -> str:
    return escape(clean(value)) if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """A coordinate: to a tenth of a unit, which is all that can be seen."""
    assert isfinite(value), value
    return f"{value:.1f}".removesuffix(".0")


def picture(height: float, children: Iterable[str], *, title: str, kind: str, width: float = WIDTH) -> Markup:
    """A whole picture. `title` is what it is called where it cannot be seen."""
    return element(
        "svg",
        *children,
        class_=f"idbg-chart {kind}",
        role="img",
        aria_label=short(title),
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
    )


def text(x: float, y: float, label: str, look: str = "", anchor: str | None = None, tip: str = "") -> Markup:
    """A text whose line stands at `y`; `tip` is its tooltip."""
    children = tips(tip) if tip != label else []
    return element("text", short(label), *children, x=x, y=y, class_=look or None, text_anchor=anchor)


def tips(label: str) -> list[Markup]:
    """A tooltip as a child element; none of an empty one."""
    if not label:
        return []
    return [element("title", short(label, LONGEST))]


def cut(label: str, room: float) -> str:
    """As much of the text as has room in so many units: its beginning and its end, where names differ."""
    letters = max(int(room / _LETTER), 3)
    if len(label) <= letters:
        return label
    tail = (letters - 1) // 3
    return f"{label[: letters - 1 - tail]}…{label[len(label) - tail :] if tail else ''}"


def wide(label: str) -> float:
    """About how many units a text takes."""
    return len(label) * _LETTER
