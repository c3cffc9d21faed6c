"""List torch's settings by group, each with its value; changed ones are marked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from idbg.config.switches import is_changed, spelled, value_of
from idbg.format.glyphs import MARKS
from idbg.schema.programs import OptionValue, Switch, Target
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow, clip, fit

_NAME, _VALUE, _TYPE = 42, 16, 14  # cells at most


@dataclass(frozen=True)
class Group:
    """The heading of a group, and how many in it were changed."""

    name: str
    changed: int


@dataclass(frozen=True)
class SwitchRow:
    """A switch as it stands."""

    switch: Switch
    value: OptionValue
    changed: bool


Item = Group | SwitchRow


def items(switches: Iterable[Switch], target: Target, *, only_changed: bool) -> list[Item]:
    """Every switch under its group; or only those that were changed."""
    found: list[Item] = []
    for name, members in groupby(switches, key=lambda switch: switch.group):
        rows = [SwitchRow(each, value_of(each, target), is_changed(each, target)) for each in members]
        changed = sum(row.changed for row in rows)
        shown = [row for row in rows if row.changed or not only_changed]
        if shown:
            found += [Group(name, changed), *shown]
    return found


def words(switch: Switch, value: OptionValue) -> str:
    """A value, for a person: "the program's" where it is left to the program."""
    left = switch.place == "target" and value in ("", None)
    return "the program's" if left else "none" if value == [] else spelled(value)


class SwitchLines(ItemList[Item]):
    """A switch a row; the cursor goes over the groups' names."""

    ALL = "all switches"

    def __init__(self) -> None:
        super().__init__()
        self._names = self._values = self._types = 0

    def show_items(self, items: Sequence[Item], empty: str = "") -> None:
        """Show other switches, in columns as wide as they need."""
        rows = [item for item in items if isinstance(item, SwitchRow)]
        self._names = min(_NAME, max((len(row.switch.name) for row in rows), default=0))
        self._values = min(_VALUE, max((len(words(row.switch, row.value)) for row in rows), default=0))
        self._types = min(_TYPE, max((len(row.switch.type) for row in rows), default=0))
        super().show_items(items, empty)
        if items and isinstance(items[self.cursor], Group):
            self.place_cursor(min(self.cursor + 1, len(items) - 1))

    def key(self, item: Item) -> object:
        return (item.switch.place, item.switch.name) if isinstance(item, SwitchRow) else None

    def is_head(self, item: Item) -> bool:
        return isinstance(item, Group)

    def draw(self, item: Item, width: int) -> StyledRow:
        if isinstance(item, Group):
            changed = f"  {item.changed} changed" if item.changed else ""
            return [(f" {item.name}", "strong"), (changed, "accent")]
        switch = item.switch
        name = fit(switch.name, min(self._names, max(16, width // 2 - 4)))
        value = fit(words(switch, item.value), self._values)
        lead: StyledRow = [
            (f" {MARKS['dot'] if item.changed else ' '} ", "accent"),
            (name, "strong" if item.changed else ""),
            (f"  {value}", "accent" if item.changed else ""),
        ]
        room = width - 5 - len(name) - self._values
        kind = f"  {fit(switch.type, self._types)}" if room > self._types + 30 else ""
        meaning = " ".join(switch.meaning.split()) or "torch says nothing of it"
        return [*lead, (kind, "dim"), (f"  {clip(meaning, max(0, room - len(kind) - 2))}", "dim")]

    def copied(self, index: int) -> tuple[str, str]:
        item = self.items[index]
        if isinstance(item, Group):
            return item.name, "the group's name"
        return f"{item.switch.name}={spelled(item.value)}", "the switch"
