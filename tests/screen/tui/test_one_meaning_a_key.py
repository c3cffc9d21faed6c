"""A key means the same in every pane: none that edits, deletes or runs something in one is harmless in another."""

from importlib import import_module
from pkgutil import walk_packages

from textual.binding import Binding
from textual.dom import DOMNode

import idbg_tui.panes
import idbg_tui.widgets
from idbg_tui import keymap

CHANGING = {
    # the rules, the switches, the target of the next run, files of the user's
    *("space", "plus", "underscore", "ctrl+up", "ctrl+down", "ctrl+x", "delete", "ctrl+z", "ctrl+y", "ctrl+s"),
    *("A", "L", "S", "Z", "t"),
    # what the program does everywhere: compile, compare, measure, write
    *("r", "c", "s", "b", "a", "d", "D", "x", "X", "B", "R", "T"),
}
MEANINGS: dict[str, set[str]] = {
    "space": {"switch", "flip"},
    "ctrl+x": {"remove"},
    "delete": {"remove"},
    "A": {"add", "all"},
    "plus": {"step(True)", "bump(True)"},
    "ctrl+up": {"step(True)", "bump(True)"},
    "underscore": {"step(False)", "bump(False)"},
    "ctrl+down": {"step(False)", "bump(False)"},
    "x": {"repro", "owner"},
    "X": {"repro(True)", "minify"},
    "left_square_bracket": {
        "stage_before",
        "view(-1)",
        "view",
        "screen.chart(-1)",
        "screen.slice(-1)",
        "next_difference(-1)",
    },
    "right_square_bracket": {
        "stage_after",
        "view(1)",
        "view",
        "screen.chart(1)",
        "screen.slice(1)",
        "next_difference(1)",
    },
    "comma": {"kernel(-1)", "graph(-1)", "look('before')"},
    "full_stop": {"kernel(1)", "graph(1)", "look('after')"},
    "C": {"charts", "look('chart')"},
    "O": {"report", "write", "screen.write", "screen.save_map"},
    "f": {"fold_all", "screen.numbers"},
    "H": {"hide", "failed", "severities", "narrow"},
    "J": {"mark", "pick_runs"},
    "W": {"why"},
    "w": {"why_not"},
    "e": {"edit", "external"},
    "y": {"copy", "copy_line"},
    "Y": {"copy_all"},
    "n": {"next(1)", "find_next(1)"},
    "N": {"next(-1)", "find_next(-1)"},
    "o": {"order"},
}
"""What actions are one meaning of a key; of a key that is not here, any one action."""
MOVING = {
    *("up", "down", "left", "right", "h", "j", "k", "l", "g", "G", "home", "end", "pageup", "pagedown", "shift+up"),
    *("shift+down", "ctrl+d", "ctrl+u", "ctrl+f", "ctrl+b", "enter", "escape", "tab", "shift+tab", "slash", "q"),
}
"""They move the cursor, fold, open and leave, everywhere."""


def bound() -> dict[str, set[str]]:
    """Each key -> what it does in the panes and the lists of them, and everywhere."""
    found: dict[str, set[str]] = {}
    for package in (idbg_tui.panes, idbg_tui.widgets):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            for kind in vars(import_module(module.name)).values():
                if isinstance(kind, type) and issubclass(kind, DOMNode) and kind.__module__.startswith("idbg_tui."):
                    for binding in vars(kind).get("BINDINGS", ()):
                        assert isinstance(binding, Binding)
                        for key in binding.key.split(","):
                            found.setdefault(key, set()).add(binding.action)
    for action in keymap.KEYS:
        for key in action.keys.split(","):
            found.setdefault(key, set()).add(action.name)
    return {key: actions for key, actions in found.items() if key not in MOVING}


def test_a_key_has_one_meaning() -> None:
    several = {
        key: actions for key, actions in bound().items() if len(actions) > 1 and not actions <= MEANINGS.get(key, set())
    }
    assert several == {}


def test_every_meaning_that_is_listed_is_bound() -> None:
    assert {key for key in MEANINGS if key not in bound()} == set()


def test_no_key_that_changes_something_moves_or_folds() -> None:
    assert CHANGING.isdisjoint(MOVING)
    assert set(bound()) >= CHANGING
