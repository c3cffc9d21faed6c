"""Are the keys complete, free of clashes, and can the settings file change them?"""

from collections import Counter
from pathlib import Path

import pytest
from textual import actions
from textual.binding import Binding

from idbg.schema.errors import SettingsError
from idbg_tui import keymap
from idbg_tui.panes.benchmarks.chart_listing import ChartListing
from idbg_tui.panes.kernel_diff.tensor import TensorListing
from idbg_tui.panes.rules.form_rows import RuleRows
from idbg_tui.widgets.listing import Listing
from tests.harness.recorded import app_of


def test_no_key_does_two_things() -> None:
    keys = Counter(key for entry in keymap.KEYS for key in entry.keys.split(","))
    assert [key for key, count in keys.items() if count > 1] == []


async def test_every_key_does_something_and_all_that_can_be_done_has_a_key(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test():
        assert {key.name for key in keymap.KEYS} == app.actions.keys()


def test_the_settings_file_changes_one_key_and_leaves_the_others() -> None:
    keys = keymap.in_force({"run": "R"})
    assert keys["run"] == "R" and keys["zoom"] == "z"


def test_an_action_that_does_not_exist_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="did you mean cancel"):
        keymap.in_force({"cancle": "C"})


def test_keys_read_as_they_are_typed() -> None:
    assert keymap.spelled("left_square_bracket") == "["
    assert keymap.spelled("backspace,ctrl+o") == "⌫ ^o"


async def test_no_two_controllers_answer_for_the_same_key(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test():
        parts = [app.body, *(part for part in vars(app.controllers).values() if hasattr(part, "actions"))]
    claimed = Counter(name for part in parts for name in part.actions())
    assert [name for name, count in claimed.items() if count > 1] == []


@pytest.mark.parametrize("listing", [Listing, ChartListing, TensorListing])
def test_a_list_over_the_screen_owns_what_its_keys_do(listing: type[Listing]) -> None:
    bindings = [binding for binding in listing.BINDINGS if isinstance(binding, Binding)]
    assert bindings
    for binding in bindings:
        where, name, _ = actions.parse(binding.action)
        assert where in ("", "screen") and hasattr(listing, f"action_{name}")


def test_a_key_that_deletes_or_raises_a_value_in_the_rules_means_nothing_else_elsewhere() -> None:
    everywhere = {key for one in keymap.KEYS for key in one.keys.split(",")}
    edits = {"remove", "step(True)"}
    bound = {key for one in RuleRows.BINDINGS if one.action in edits for key in one.key.split(",")}  # type: ignore[union-attr]
    assert bound == {"ctrl+x", "delete", "plus", "ctrl+up"} and not bound & everywhere
