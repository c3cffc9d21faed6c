"""Are the keys complete, free of clashes, and can the settings file change them?"""

from collections import Counter
from pathlib import Path

import pytest

from idbg.schema.errors import SettingsError
from idbg_tui import keymap
from tests.harness.recorded import app_of


def test_no_key_does_two_things() -> None:
    keys = Counter(key for entry in keymap.KEYS for key in entry.keys.split(","))
    assert [key for key, count in keys.items() if count > 1] == []


def test_every_key_does_something_and_all_that_can_be_done_has_a_key(tmp_path: Path) -> None:
    assert {key.name for key in keymap.KEYS} == app_of("attention", tmp_path).actions.keys()


def test_the_settings_file_changes_one_key_and_leaves_the_others() -> None:
    keys = keymap.in_force({"run": "R"})
    assert keys["run"] == "R" and keys["zoom"] == "z,plus"


def test_an_action_that_does_not_exist_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="did you mean cancel"):
        keymap.in_force({"cancle": "C"})


def test_keys_read_as_they_are_typed() -> None:
    assert keymap.spelled("left_square_bracket") == "["
    assert keymap.spelled("backspace,ctrl+o") == "⌫ ^o"
