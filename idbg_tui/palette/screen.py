"""The palette's list over the screen: what is typed finds commands, and ranks them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from idbg_tui.palette.uses import CommandUses
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow, clip
from idbg_tui.widgets.picker import FilteredScreen

_MOST = 300
"""Lines that are listed: who wants another types more."""
_KIND = 12  # cells
_TICK, _SLICE = 0.03, 0.008  # seconds: keys are answered between slices


@dataclass(frozen=True)
class Command:
    """One line: what is done, or the name of what is reached, and the key that does the same."""

    kind: str
    title: str
    do: Callable[[], object]
    key: str = ""
    words: str = ""
    """What the thing is; typed words are looked for here too."""

    @property
    def text(self) -> str:
        """All that is searched."""
        return f"{self.kind} {self.title} {self.words}".lower()

    @property
    def name(self) -> str:
        """By which its uses are counted."""
        return f"{self.kind}: {self.title}"


class Commands:
    """What the palette can list. `always` is there at once, `things` when something is typed; `found` are those whose
    search is their own: nodes.
    """

    def __init__(
        self,
        always: Sequence[Command],
        things: Callable[[], Iterable[Command]],
        found: Callable[[str], Iterable[Command]],
        prepare: Callable[[float], bool] = lambda seconds: True,
    ) -> None:
        """`prepare` works on what `found` needs for about so many seconds; True when it is complete."""
        self._always, self._things, self._found = always, things, found
        self.prepare = prepare
        self._made: Sequence[Command] | None = None

    def matching(self, typed: str, uses: Mapping[str, int]) -> list[Command]:
        """What has every typed word, most used first, then the nearest name; else names with the letters in order."""
        typed = typed.strip().removeprefix(":").lower()
        if not typed:
            return sorted(self._always, key=lambda command: -uses.get(command.name, 0))
        if self._made is None:
            self._made = [*self._always, *self._things()]
        words = typed.split()
        found = [
            command
            for command in self._made
            if all(word in command.text for word in words) or typed in command.key.lower().split()
        ]
        if not found:
            letters = re.compile(".*?".join(map(re.escape, typed.replace(" ", ""))), re.IGNORECASE)
            found = [command for command in self._made if letters.search(command.title)]
        found += self._found(typed)
        return sorted(found, key=lambda command: _rank(command, typed, uses))[:_MOST]


def _rank(command: Command, typed: str, uses: Mapping[str, int]) -> tuple[bool, bool, int, int]:
    title = command.title.lower()
    distance = (not title.startswith(typed)) + (typed not in title) + (typed not in command.text)
    return title != typed, typed not in command.key.lower().split(), -uses.get(command.name, 0), distance


class CommandLines(ItemList[Command], can_focus=False):
    """One command a line: kind, title, what it is, and the key at the right."""

    LOOKS = Lines.LOOKS | {
        "cursor": Lines.LOOKS["cursor:focus"],
        "cursor:ansi": Lines.LOOKS["cursor:ansi:focus"],
    }

    def draw(self, item: Command, width: int) -> StyledRow:
        kind = f" {item.kind:{_KIND}} "
        room = width - len(kind) - len(item.key) - 3
        title = clip(item.title, room)
        words = clip(f"   {item.words}" if item.words else "", max(room - len(title), 0))
        gap = " " * (room - len(title) - len(words) + 2)
        return [(kind, "dim"), (title, "strong"), (words, "dim"), (gap, ""), (item.key, "accent"), (" ", "")]


class Palette(FilteredScreen[Command | None]):
    """Returns the chosen command; who opens it does what that is for."""

    DEFAULT_CSS = """
    Palette > Vertical { width: 110; max-width: 96%; height: 80%; }
    Palette CommandLines { height: 1fr; }
    """
    PLACEHOLDER = "an action, or the name of anything; a number goes to that row"

    def __init__(self, commands: Commands, uses: CommandUses) -> None:
        self._commands, self._uses = commands, uses
        self._listed = CommandLines()
        self._listed.empty = "nothing is called that: backspace shows more"
        self._listed.items = commands.matching("", uses.counts)
        super().__init__(self._listed, "Do or go to", "enter does it, esc closes")

    def on_mount(self) -> None:
        super().on_mount()
        self._preparing = self.set_interval(_TICK, self._prepare)

    def _prepare(self) -> None:
        if self._commands.prepare(_SLICE):
            self._preparing.stop()

    def filter(self, typed: str) -> None:
        self._listed.items = self._commands.matching(typed, self._uses.counts)
        self._listed.cursor = 0
        self._listed.rows_changed()

    def take(self) -> None:
        chosen = self._listed.chosen
        if chosen is not None:
            self._uses.count(chosen.name)
            self.dismiss(chosen)
