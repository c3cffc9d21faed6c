"""Are the rules edited in place, checked at once, saved, and never lost?"""

from pathlib import Path

import pytest

from idbg.accelerators.registry import PRESETS
from idbg.schema.events import RulesEdited, RulesRefused
from idbg_tui.messages import EditorRequest, Flash
from idbg_tui.panes.rules import pane as rules_pane
from idbg_tui.panes.rules.editor import TomlEditor
from idbg_tui.state import queries
from tests.harness.pane_host import RULES
from tests.harness.rule_bench import Bench
from tests.harness.screen import until

DEBOUNCE = 0.4  # longer than the pane waits


# editing


async def test_single_letters_are_the_apps_until_editing_begins_and_after_it_ends(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "r", "c", "x", "q", "g")
        assert bench.editor.text == RULES
        await bench.press(pilot, "enter", "#", "r", "c")
        assert bench.editor.text == "#rc" + RULES
        assert "editing" in bench.title
        await bench.press(pilot, "escape", "r")
        assert bench.editor.text == "#rc" + RULES
        assert "edited" in bench.title


async def test_a_burst_of_keys_is_posted_once_when_it_is_over(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        with monkeypatch.context() as longer:
            longer.setattr(rules_pane, "_DEBOUNCE", 600.0)  # than a busy machine takes for the keys
            await pilot.press("g", "enter", "#", "a", "b")
            await pilot.pause(DEBOUNCE)
            assert bench.posted == []
        await bench.press(pilot, "c")
        assert [message.text for message in bench.posted] == ["#abc" + RULES]


async def test_opening_the_pane_posts_nothing(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await pilot.pause(DEBOUNCE)
        assert bench.app.posted == []


async def test_the_pane_opens_at_the_first_rule(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 8)) as pilot:
        await bench.text(pilot)
        assert bench.editor.cursor_location == (2, 0)
        assert bench.editor.scroll_offset.y == 2


async def test_a_stepped_value_is_checked_and_the_border_counts_what_it_changed(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "j", "j", "j", "j", "plus", "plus", "plus", "plus")
        assert "multiple = 16  # elements" in bench.editor.text
        assert bench.editor.cursor_location[0] == 4
        counted = sum(len(bench.state.checks.findings(graph)) for graph in queries.level(bench.state))
        assert counted > 0
        assert str(bench.pane.border_subtitle) == f"edited: {counted} violations (+{counted} -0)"


async def test_a_mistake_is_shown_at_its_line_and_goes_with_it(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "j", "j", "j", "j", "enter", "x")
        status = bench.pane.query_one("#status")
        assert status.display
        assert "line 5:" in str(status.render())
        assert "the last good rules stay in force" in str(status.render())
        assert bench.editor.has_class("-at-error")
        assert bench.state.accelerator is not None
        assert len(bench.state.accelerator.rules) == 3
        await bench.press(pilot, "backspace")
        assert not status.display
        assert not bench.editor.has_class("-at-error")


async def test_undo_brings_back_the_text_and_the_rules_one_change_at_a_time(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "j", "j", "j", "j", "plus", "plus")
        await bench.press(pilot, "Z")
        assert "multiple = 2 " in bench.editor.text
        await bench.press(pilot, "Z")
        assert bench.editor.text == RULES
        assert bench.state.rules.text == RULES
        assert "edited" not in bench.title


# files


async def test_a_preset_is_saved_beside_the_program_and_not_into_the_installation(bench: Bench, tmp_path: Path) -> None:
    preset = PRESETS / "mock.toml"
    before = preset.read_text()
    bench.state.apply([RulesEdited(text=before, origin=str(preset))])
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", "#", "ctrl+s")
        assert (tmp_path / "mock-edited.toml").read_text() == "#" + before
        assert preset.read_text() == before
        told = [message.text for message in bench.app.posted if isinstance(message, Flash)]
        assert told == [f"saved {tmp_path / 'mock-edited.toml'}"]
        assert "mock-edited.toml" in bench.title


async def test_a_file_of_the_users_is_saved_in_place(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    bench.state.apply([RulesEdited(text=RULES, origin=str(path))])
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", "#", "ctrl+s", "escape")
        assert path.read_text() == "#" + RULES
        assert "edited" not in bench.title


async def test_a_folder_that_cannot_be_written_is_said(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "small-edited.toml").mkdir()
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", "#", "ctrl+s")
        flashes = [message for message in bench.app.posted if isinstance(message, Flash)]
        assert [flash.level for flash in flashes] == ["error"]
        assert "cannot be written" in flashes[0].text


async def test_a_change_on_disk_is_taken_and_the_cursor_stays(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "j", "j", "j")
        bench.disk(RULES.replace("= 1 ", "= 4 "), "small.toml")
        await pilot.pause(DEBOUNCE)
        assert "multiple = 4 " in bench.editor.text
        assert bench.editor.cursor_location == (3, 0)
        assert bench.posted == []


async def test_a_change_on_disk_does_not_overwrite_unsaved_edits_until_the_user_takes_it(
    bench: Bench, tmp_path: Path
) -> None:
    theirs = RULES.replace("= 1 ", "= 4 ")
    path = tmp_path / "small.toml"
    path.write_text(RULES)
    bench.state.apply([RulesEdited(text=RULES, origin=str(path))])
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", "#", "escape")
        bench.disk(theirs, str(path))
        await pilot.pause(DEBOUNCE)
        assert bench.editor.text == "#" + RULES
        assert "L loads the file's text" in str(bench.pane.query_one("#status").render())
        assert bench.state.rules.text == "#" + RULES, "what is shown stays in force"
        await bench.press(pilot, "L")
        assert bench.editor.text == theirs
        assert bench.state.rules.text == theirs
        assert "edited" not in bench.title
        await bench.press(pilot, "Z")
        assert bench.editor.text == bench.state.rules.text == "#" + RULES


async def test_what_comes_back_from_the_users_editor_is_taken(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "j", "e")
        asked = [message for message in bench.app.posted if isinstance(message, EditorRequest)]
        assert [(message.path, message.line, message.text) for message in asked] == [("small.toml", 2, RULES)]
        bench.disk("# edited outside\n" + RULES, "editor")
        assert bench.editor.text == "# edited outside\n" + RULES


async def test_without_a_search_slash_says_so(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await pilot.press("slash")
        assert ["no search" in message.text for message in bench.app.posted if isinstance(message, Flash)] == [True]


async def test_editing_ends_at_the_beginning_of_the_line(bench: Bench) -> None:
    async with bench.app.run_test(size=(40, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", *("#" * 60), "escape")
        assert bench.editor.scroll_offset.x == 0
        assert bench.editor.cursor_location == (0, 0)


async def test_the_hints_are_those_of_the_mode(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await pilot.press("enter")
        assert bench.pane.HINTS[0] == ("esc", "ends editing")
        await pilot.press("escape")
        assert bench.pane.HINTS[0] == ("enter", "edit")
        await pilot.press("left_square_bracket")
        assert bench.pane.HINTS[0] == ("space", "on/off")


async def test_a_mistake_out_of_sight_is_scrolled_to_and_its_line_is_named_once(bench: Bench) -> None:
    text = RULES + "\n" * 50 + "name = x\n"
    async with bench.app.run_test(size=(60, 12)) as pilot:
        await bench.text(pilot)
        bench.state.apply([RulesEdited(text=text, origin="small")])
        bench.state.apply([RulesRefused(text=text, origin="small", message="bad: line 61: name = x", line=61)])
        bench.pane.show(bench.state)
        editor = bench.editor

        def seen() -> bool:
            return editor.scroll_offset.y < 61 <= editor.scroll_offset.y + editor.size.height

        await until(pilot, seen)
        editor.scroll_cursor_visible()  # as Textual does when a scrollbar comes
        assert seen()
        assert str(bench.pane.query_one("#status").render()).count("line 61") == 1
        editor.move_cursor((3, 0))
        assert editor.scroll_offset.y <= 3  # who moves the cursor follows it


async def test_a_file_deleted_on_disk_is_told_and_saved_where_it_was(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    bench.state.apply([RulesEdited(text=RULES, origin=str(path))])
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        path.unlink()
        await until(pilot, lambda: "was deleted on disk" in str(bench.pane.query_one("#status").render()))
        await bench.press(pilot, "ctrl+s")
        assert path.read_text() == RULES
        assert not bench.pane.query_one("#status").display


async def test_another_accelerator_is_taken_and_the_edits_of_the_last_are_one_undo_away(
    bench: Bench, tmp_path: Path
) -> None:
    path = tmp_path / "other.toml"
    path.write_text(RULES.replace("small", "other"))
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", "#", "escape")
        bench.disk(path.read_text(), str(path))
        await pilot.pause(DEBOUNCE)
        assert bench.editor.text == path.read_text()
        told = [message.text for message in bench.app.posted if isinstance(message, Flash)]
        assert told == ["edits of small are one Z away"]
        assert "other.toml" in bench.title and "edited" not in bench.title
        await bench.press(pilot, "Z")
        assert bench.state.rules.text == bench.editor.text == "#" + RULES
        assert "small.toml" in bench.title and "edited" in bench.title
        await bench.press(pilot, "ctrl+s")
        assert path.read_text() == RULES.replace("small", "other"), "edits of small are not saved into the other file"
        assert (tmp_path / "small-edited.toml").read_text() == "#" + RULES


def colours(editor: TomlEditor, y: int) -> set[str]:
    pieces = [(segment.text, segment.style) for segment in editor.render_line(y)]
    return {str(style.color) for text, style in pieces if style and any(map(str.isalpha, text))}


async def test_the_line_with_the_cursor_keeps_its_colours(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await pilot.press("g", "j", "j", "j")
        with_cursor = colours(bench.editor, 3)
        await pilot.press("k")
        without = colours(bench.editor, 3)
        assert len(without) > 1
        assert without <= with_cursor  # which has that of the cursor itself, too


# undo


async def test_undo_stops_at_the_text_that_was_opened(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "Z", "Z")
        assert bench.editor.text == RULES and bench.posted == []
        told = [message.text for message in bench.app.posted if isinstance(message, Flash)]
        assert told == ["nothing to undo"] * 2


@pytest.mark.parametrize(
    ("keys", "before"),
    [
        ("a b z", [""]),
        ("a home z", ["a", ""]),
        ("a backspace z", ["", "a", ""]),
        ("a enter z", ["a\n", "a", ""]),
        ("a escape plus enter z", ["a", ""]),
    ],
)
async def test_keys_that_follow_one_another_are_undone_together(bench: Bench, keys: str, before: list[str]) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", *keys.split(), "escape")
        typed = bench.editor.text
        for text in before:
            await bench.press(pilot, "Z")
            assert bench.editor.text == bench.pane.document.text == text + RULES
        await bench.press(pilot, *["ctrl+y"] * len(before))
        assert bench.editor.text == bench.pane.document.text == typed


async def test_undo_selects_what_was_selected_and_redo_ends_with_another_edit(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "g", "enter", "shift+right", "#", "escape", "G", "Z")
        assert bench.editor.selection == ((0, 0), (0, 1))
        await bench.press(pilot, "ctrl+y")
        assert bench.editor.cursor_location == (0, 1)
        await bench.press(pilot, "Z", "g", *"jjjj", "plus", "ctrl+y")
        assert bench.editor.text == RULES.replace("= 1 ", "= 2 ")
        told = [message.text for message in bench.app.posted if isinstance(message, Flash)]
        assert told == ["nothing to redo"]


async def test_undoing_what_was_typed_in_the_last_lines_goes_back_to_the_start(bench: Bench) -> None:
    async with bench.app.run_test(size=(60, 12)) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "down", "down", "down", "enter", *"junk", "enter", *"more", "enter", "escape")
        await bench.press(pilot, "G", "left_square_bracket", "Z", "Z", "Z", "Z")
        assert bench.editor.text == RULES
        await bench.press(pilot, *["ctrl+y"] * 4)
        assert "junk" in bench.editor.text
