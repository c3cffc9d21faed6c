"""Show the tour: a few lines above the footer."""

import re
from collections.abc import Mapping

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg_tui import keymap
from idbg_tui.tour.progress import Tour
from idbg_tui.widgets.bars import BarPart
from idbg_tui.widgets.lines import clip

_TOKEN = re.compile(r"\{=?([^}]+)\}|`([^`]+)`")
_LEADING = (("tour_back", "back"), ("tour_skip", "skip"), ("tour_leave", "leave"))
_STRONG = "bold $primary"


class TourStrip(Widget):
    """The step that is to be done, as high as the longest step needs, so that the panes stay where they are."""

    DEFAULT_CSS = """
    TourStrip { height: 3; padding: 0 1; background: $panel; color: $foreground; }
    """

    def __init__(self, tour: Tour, keys: Mapping[str, str]) -> None:
        """`keys` are those in force, by the names of keymap.KEYS."""
        super().__init__(id="tour")
        self.tour, self._keys = tour, keys

    def on_resize(self) -> None:
        self._set_height()

    def on_mount(self) -> None:
        self._set_height()

    def _set_height(self) -> None:
        width = max(20, self.app.size.width - 2)
        texts = [words for step in self.tour.steps for words in (step.words, step.on_failure)]
        lines = max(len(wrapped(words, self._keys, width)) for words in texts)
        self.styles.height = 1 + lines

    def render(self) -> Content:
        width = self.size.width
        return Content("\n").join([Content.assemble(*self._head(width)), *wrapped(self.tour.words, self._keys, width)])

    def _head(self, width: int) -> list[BarPart]:
        """The step's number, what was just done, and the tour's own keys."""
        tour = self.tour
        useless = {0: "tour_back", len(tour.steps) - 1: "tour_skip"}.get(tour.at)
        right: list[BarPart] = []
        for name, words in (one for one in _LEADING if one[0] != useless):
            right += [(f"  {key_of(name, self._keys)}", _STRONG), (f" {words}", "$foreground 75%")]
        left: list[BarPart] = [(f"Tour {tour.at + 1} of {len(tour.steps)}", "bold")]
        name = f"  {MARKS['separator']}  {tour.step.name}"
        room = width - sum(cell_len(text) for text, _ in (*left, *right))
        if tour.praise:
            praise = clip(f"  {VERDICT_SIGNS['clean']} {tour.praise}", room)
            left.append((praise, "$text-success"))
            room -= cell_len(praise)
        if cell_len(name) <= room:
            left.append((name, "$foreground 75%"))
            room -= cell_len(name)
        return [*left, (" " * max(0, room), ""), *right]


def key_of(action: str, keys: Mapping[str, str]) -> str:
    """The first key of an action, as it reads on the screen."""
    return keymap.spelled(keys[action]).split(" ")[0]


def wrapped(words: str, keys: Mapping[str, str], width: int) -> list[Content]:
    """A step's words on as many lines as they need, the keys in them in the style of keys."""
    parts: list[BarPart] = []
    end = 0
    for match in _TOKEN.finditer(words):
        text = match[2] or (match[1] if match[0].startswith("{=") else key_of(match[1], keys))
        parts += [(words[end : match.start()], ""), (text, _STRONG)]
        end = match.end()
    return Content.assemble(*parts, words[end:]).wrap(width)
