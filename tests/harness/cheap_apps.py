"""Apps of tests are laid out, and not painted unless a test reads what was painted; they parse each style sheet once.

Frames that no test looks at took a third of the time of the tests of the screen, and the same style sheets a twentieth.
"""

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen


class Painting:
    """Whether frames are painted, as in a real terminal: the fixture `painted` asks for it."""

    on = False


def install() -> None:
    """For every app of this process."""
    paint, parse = Screen._compositor_refresh, Stylesheet._parse_rules
    parsed: dict[tuple[Any, ...], list[RuleSet]] = {}

    def paint_if_asked(screen: Screen[Any]) -> None:
        if Painting.on and getattr(screen.app, "ready", True):
            paint(screen)
        else:
            screen._dirty_widgets.clear()  # their regions wait in the compositor

    def parse_once(sheet: Stylesheet, css: str, *where: Any, **named: Any) -> list[RuleSet]:
        key = (css, *where, *named.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse(sheet, css, *where, **named)
        return parsed[key]

    setattr(Screen, "_compositor_refresh", paint_if_asked)  # noqa: B010
    setattr(Stylesheet, "_parse_rules", parse_once)  # noqa: B010
