"""Lay out every key of the screen with its meanings: docs/keys.md has the tables through `python -m tools.pages`."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from string import digits, punctuation

from textual.dom import DOMNode

import idbg_tui.panes
import idbg_tui.welcome
import idbg_tui.widgets
from idbg_tui import bound_keys, keymap
from idbg_tui.bound_keys import BoundKey
from idbg_tui.panes.base import NAMES

PLACES = {
    "widgets.side_by_side": "two texts side by side",
    "panes.kernel_diff.tensor": "the values of an output",
    "panes.benchmarks.chart_listing": "the charts",
    "panes.repros.reading": "a script",
    "panes.section_pane": "panes of rows",
    "panes.base": "panes",
    "widgets.lines": "lists",
    "widgets.item_list": "lists",
    "widgets.search": "lists",
    "widgets.section_keys": "lists that fold",
    "widgets.code": "code",
    "widgets.listing": "a list over the screen",
    "widgets.picker": "a choice over the screen",
    "widgets.covering": "a list over the screen",
    "welcome.app": "the list of sessions",
    "widgets.prompt": "a line that is typed in",
}
"""Where keys work that are not of one pane: by module, without `idbg_tui.`."""
EVERYWHERE = "everywhere"
LETTERS = [letter for small in "abcdefghijklmnopqrstuvwxyz" for letter in (small, small.upper())]
SIGNS = {*digits, *punctuation}

Meanings = dict[str, dict[str, list[str]]]
"""Key -> what it does -> where."""


def meanings() -> Meanings:
    """Every key, with what it does and where; what works everywhere comes first."""
    found: Meanings = {}
    for place, key in bound():
        places = found.setdefault(key.key, {}).setdefault(key.words, [])
        if place not in places:
            places.append(place)
    return found


def bound() -> Iterator[tuple[str, BoundKey]]:
    """Every key of the program, each with where it works."""
    for key in keymap.KEYS:
        words = f"go to the pane {key.words}" if key.leads_to_pane else key.words
        yield from ((EVERYWHERE, BoundKey(each, key.name, words)) for each in key.keys.split(","))
    for name, kind in widgets():
        yield from ((_place(name), bound) for bound in bound_keys.of_class(kind))


def widgets() -> Iterator[tuple[str, type]]:
    """The kinds of panes and widgets that are ours, each with its module's name without `idbg_tui.`."""
    for package in (idbg_tui.panes, idbg_tui.widgets, idbg_tui.welcome):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            for kind in vars(import_module(module.name)).values():
                if isinstance(kind, type) and issubclass(kind, DOMNode) and kind.__module__ == module.name:
                    yield module.name.removeprefix("idbg_tui."), kind


def _place(module: str) -> str:
    return PLACES.get(module) or next(
        names.label for pane, names in NAMES.items() if module.startswith(f"panes.{pane}.")
    )


def table(which: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the keys that are `letters`, `signs` (and digits) or `others`, in order."""
    found = meanings()
    chosen = {
        "letters": [key for key in LETTERS if key in found],
        "signs": [key for key in found if keymap.spelled(key) in SIGNS],
        "others": [key for key in found if key not in LETTERS and keymap.spelled(key) not in SIGNS],
    }[which]
    return ("key", "does", "where"), [row for key in chosen for row in _rows(key, found[key])]


def _rows(key: str, does: dict[str, list[str]]) -> Iterator[tuple[str, ...]]:
    for place, (words, where) in enumerate(does.items()):
        yield "" if place else f"`{keymap.spelled(key)}`", words, ", ".join(where)


def free() -> str:
    """The letters that mean nothing."""
    return " ".join(f"`{letter}`" for letter in LETTERS if letter not in meanings())
