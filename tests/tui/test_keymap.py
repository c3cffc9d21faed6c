"""Are the keys complete, free of clashes, and can the settings file change them?"""

from collections import Counter

import pytest

from idbg.schema.errors import SettingsError
from idbg_tui import keymap
from idbg_tui.actions.base import Actions
from idbg_tui.app import IdbgApp


def test_no_key_does_two_things() -> None:
    keys = Counter(key for entry in keymap.KEYS for key in entry.keys.split(","))
    assert [key for key, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("key", keymap.KEYS, ids=lambda key: key.name)
def test_every_key_has_an_action_that_exists(key: keymap.Key) -> None:
    assert hasattr(IdbgApp, "action_" + key.action.partition("(")[0])


def test_every_action_of_ours_has_a_key() -> None:
    ours = {name.removeprefix("action_") for name in vars(Actions) if name.startswith("action_")}
    assert ours <= {key.action.partition("(")[0] for key in keymap.KEYS}


def test_the_settings_file_changes_one_key_and_leaves_the_others() -> None:
    keys = keymap.in_force({"run": "R"})
    assert keys["run"] == "R" and keys["zoom"] == "z,plus"


def test_an_action_that_does_not_exist_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="did you mean cancel"):
        keymap.in_force({"cancle": "C"})


def test_keys_read_as_they_are_typed() -> None:
    assert keymap.spelled("left_square_bracket") == "["
    assert keymap.spelled("backspace,ctrl+o") == "⌫ ^o"
