"""A key means the same in every pane: none that edits, deletes or runs something in one is harmless in another."""

import unicodedata

from idbg_tui import bound_keys, keymap
from tools import key_table

CHANGING = {
    # the rules, the switches, the target of the next run, files of the user's
    *("space", "plus", "underscore", "ctrl+up", "ctrl+down", "ctrl+x", "delete", "ctrl+y", "ctrl+s"),
    *("A", "L", "S", "Z", "t"),
    # what the program does everywhere: compile, compare, measure, write
    *("r", "c", "semicolon", "b", "a", "d", "D", "x", "X", "B", "R", "T"),
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
    "p": {"pass_diff", "beside"},
    "question_mark": {"help", "app.do('help')"},
    "f1": {"help", "app.do('help')"},
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
    "H": {"hide", "failed", "severities", "narrow"},
    "J": {"mark", "pick_runs"},
    "W": {"why"},
    "w": {"why_not"},
    "e": {"edit", "external"},
    "y": {"copy", "copy_line"},
    "Y": {"copy_all"},
    "n": {"next(1)", "find_next(1)"},
    "N": {"next(-1)", "find_next(-1)"},
    "o": {"order", "screen.numbers", "lower"},
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
    for module, kind in key_table.widgets():
        if module.startswith("welcome."):
            continue  # its letters are typed: only control keys are left there
        for key in bound_keys.of_class(kind):
            found.setdefault(key.key, set()).add(key.action)
    for action in keymap.KEYS:
        for name in action.keys.split(","):
            found.setdefault(name, set()).add(action.name)
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


def test_every_key_has_words() -> None:
    assert [(where, key) for where, key in key_table.bound() if not key.words] == []


def test_a_sign_is_written_as_itself_and_not_by_its_name() -> None:
    for key in {bound.key for _, bound in key_table.bound()}:
        named = key.rpartition("+")[2].replace("_", " ").upper()
        try:
            sign = unicodedata.lookup(named)
        except KeyError:
            sign = {"PLUS": "+", "MINUS": "-", "SLASH": "/", "AT": "@", "UNDERSCORE": "_"}.get(named, "")
        assert not sign.strip() or not sign.isprintable() or keymap.spelled(key).endswith(sign), key
