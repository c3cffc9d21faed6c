"""Resolve a widget's named styles in the present theme."""

from collections.abc import Mapping

from rich.style import Style
from textual.style import Style as Words
from textual.widget import Widget


def look(widget: Widget, looks: Mapping[str, str], name: str) -> Style:
    """The look `name` of a widget, its colours blended with what is behind; a colour that it does not name is None.

    `looks` are styles in words, as in textual.content; "NAME:ansi" and "NAME:focus" come before NAME. No component
    classes: Textual matches each of those against the whole style sheet, for each widget, whenever anything is styled.
    """
    states = [state for state, holds in _states(widget) if holds]
    words = next((looks[key] for state in states if (key := name + state) in looks), looks[name])
    part: Words = widget.app.stylesheet.parse_style(words)
    whole = (widget.visual_style + part).rich_style
    return Style(
        color=whole.color if part.foreground is not None else None,
        bgcolor=whole.bgcolor if part.background is not None else None,
        bold=part.bold,
        dim=part.dim,
        reverse=part.reverse,
        underline=part.underline,
    )


def _states(widget: Widget) -> tuple[tuple[str, bool], ...]:
    focus, ansi = widget.has_focus, widget.app.native_ansi_color
    return (":ansi:focus", ansi and focus), (":ansi", ansi), (":focus", focus)
