"""Do the diff and saving as a new accelerator do what they say?"""

from pathlib import Path

import pytest
from textual.widgets import Input

from idbg.accelerators import registry
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import PRESETS
from idbg.schema.events import RulesEdited
from idbg.schema.programs import Target
from idbg_tui.widgets.prompt import Prompt
from tests.harness.pane_host import RULES
from tests.harness.rule_bench import SIZE, Bench, answer, question, shown, told


async def test_the_diff_is_against_the_preset_and_follows_the_edits(bench: Bench) -> None:
    preset = PRESETS / "mock.toml"
    bench.state.apply([RulesEdited(text=preset.read_text(), origin=str(preset))])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "left_square_bracket")
        assert shown(bench.pane.diff) == [" no difference from mock"]
        await bench.press(pilot, "right_square_bracket", "plus", "left_square_bracket")
        assert "+1 -1 lines against mock" in bench.title
        rows = shown(bench.pane.diff)
        assert " -multiple = 1" in rows and " +multiple = 2" in rows
        await bench.press(pilot, "Z")
        assert shown(bench.pane.diff) == [" no difference from mock"]
        await bench.press(pilot, "escape")
        assert bench.pane.view == "form"


async def test_the_diff_of_a_users_file_is_against_what_is_on_disk_now(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    bench.state.apply([RulesEdited(text=RULES, origin=str(path))])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "plus", "left_square_bracket")
        assert "against mine.toml" in bench.title
        path.unlink()
        await bench.press(pilot, "escape", "left_square_bracket")
        assert "nothing to compare with: there is no file" in shown(bench.pane.diff)[0]


# saving


async def test_a_new_accelerator_is_saved_under_its_own_name(bench: Bench, tmp_path: Path) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "plus", "S")
        assert bench.pane.query_one(Prompt).query_one(Input).value == "./small-edited.toml"
        await answer(pilot, bench, "npu2")
        assert (tmp_path / "npu2.toml").read_text() == RULES.replace("small", "npu2").replace("= 1 ", "= 2 ")
        assert told(bench) == ["saved: --accelerator npu2.toml uses it"]
        assert "npu2.toml" in bench.title and "edited" not in bench.title
        assert bench.state.rules.text == bench.editor.text
        assert parse(registry.find("npu2.toml")[0]).name == "npu2"
        await bench.press(pilot, "plus", "ctrl+s")
        assert "multiple = 4" in (tmp_path / "npu2.toml").read_text()


async def test_another_file_is_written_over_only_when_enter_is_pressed_again(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("mine")
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "S")
        await answer(pilot, bench, "other.toml")
        assert "other.toml is there already: enter again writes over it" in question(bench)
        assert other.read_text() == "mine"
        await bench.press(pilot, "escape", "S")
        await answer(pilot, bench, "other.toml")
        assert other.read_text() == "mine", "escape took the confirmation back"
        await bench.press(pilot, "enter")
        assert 'name = "other"' in other.read_text()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("none/new", "cannot be written: No such file or directory: make the folder first"),
        ("  ", "a path is needed"),
        (".", ". is a folder: give a file, for example small-edited.toml"),
        ("..", ".. is a folder: give a file, for example ../small-edited.toml"),
    ],
)
async def test_what_cannot_be_written_is_said_and_can_be_mended(bench: Bench, typed: str, words: str) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "S")
        await answer(pilot, bench, typed)
        assert words in " ".join(question(bench).split())
        assert bench.editor.text == RULES and "small.toml" in bench.title
        await answer(pilot, bench, "good.toml")
        assert Path("good.toml").is_file()


async def test_a_text_with_a_mistake_is_not_saved_as_an_accelerator(bench: Bench, tmp_path: Path) -> None:
    async with bench.app.run_test(size=SIZE) as pilot:
        await bench.text(pilot)
        await bench.press(pilot, "j", "j", "enter", "x", "escape", "S")
        await answer(pilot, bench, "new.toml")
        assert "xmultiple" in question(bench)
        assert not (tmp_path / "new.toml").exists()


async def test_saving_a_preset_does_not_overwrite_what_was_saved_before(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "small-edited.toml").write_text("of last week")
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "plus", "ctrl+s")
        assert "is there already" in question(bench)
        assert (tmp_path / "small-edited.toml").read_text() == "of last week"
        await bench.press(pilot, "enter")
        assert "multiple = 2" in (tmp_path / "small-edited.toml").read_text()


async def test_a_session_that_was_edited_before_it_was_opened_knows_where_its_rules_come_from(bench: Bench) -> None:
    text = registry.find("mock")[0].replace("multiple = 1", "multiple = 8")
    bench.state.set_target(Target(accelerator="mock"))
    bench.state.apply([RulesEdited(text=text, origin="editor")])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert "mock.toml · edited" in bench.title
        await bench.press(pilot, "left_square_bracket")
        assert "+1 -1 lines against mock" in bench.title


async def test_a_saved_file_is_still_compared_with_the_preset_that_it_was_made_of(bench: Bench, tmp_path: Path) -> None:
    preset = PRESETS / "mock.toml"
    bench.state.apply([RulesEdited(text=preset.read_text(), origin=str(preset))])
    async with bench.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await bench.press(pilot, "plus", "ctrl+s", "plus", "ctrl+s", "left_square_bracket")
        assert "+1 -1 lines against mock" in bench.title
        assert " +multiple = 4" in shown(bench.pane.diff)
        await bench.press(pilot, "escape", "S")
        await answer(pilot, bench, "other")
        bench.disk((tmp_path / "other.toml").read_text(), "other.toml")
        await bench.press(pilot, "left_square_bracket")
        assert "other.toml" not in bench.title and "against mock" in bench.title


async def test_rules_without_text_are_written_over_a_file_only_by_a_second_save(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    bench.state.apply([RulesEdited(text=RULES, origin=str(path))])
    async with bench.app.run_test(size=SIZE) as pilot:
        await bench.text(pilot)
        for _ in range(2):
            bench.editor.become("")
            await bench.press(pilot, "ctrl+s")
            assert path.read_text() == RULES and "the rules are empty: ^s again" in told(bench)[-1]
            await bench.press(pilot, "Z")
            assert bench.editor.text == RULES
        bench.editor.become("")
        await bench.press(pilot, "ctrl+s", "ctrl+s")
        assert path.read_text() == ""
