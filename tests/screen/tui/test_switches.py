"""Are torch's switches listed as they stand, flipped by a key, compiled once, and put back?"""

from pathlib import Path

import pytest

from idbg.schema.programs import Target
from idbg_tui.controllers import switching
from idbg_tui.panes.switches.pane import SwitchesPane
from idbg_tui.widgets.picker import Picker
from idbg_tui.widgets.prompt import Prompt
from idbg_tui.widgets.section_list import SectionLines
from tests.harness.flipped import open_switches
from tests.harness.live import living
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, bar, settle, texts, until


async def test_minus_lists_them_by_group_with_value_type_and_meaning() -> None:
    app, session = living()
    for size in (WIDE, SMALL):
        async with app.run_test(size=size) as pilot:
            pane = await open_switches(pilot, app, session)
            rows = [row.split() for row in texts(app, "switches") if row.strip()]
            assert rows[:3] == [
                ["switch", "value", "type", "meaning"],
                ["▾", "torch.compile"],
                ["mode", "the", "program's", "str", "torch", "says", "nothing", "of", "it"],
            ]
            assert ["max_autotune", "False", "bool", "try", "them", "all"] in rows
            assert pane.heading().plain == "- Switches"
        app, session = living()


async def test_flips_in_a_row_are_one_compile_and_each_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    app, session = living()
    monkeypatch.setattr(switching, "RECOMPILE", 2.0)  # longer than a busy machine takes for four keys
    async with app.run_test(size=WIDE) as pilot:
        pane = await open_switches(pilot, app, session)
        runs = session.runs
        await pilot.press("j", "j", "space", "j", "j", "space")
        await until(pilot, lambda: session.runs > runs)
        await settle(pilot)
        assert session.target.options == {"max_autotune": True, "epilogue_fusion": False}
        assert session.runs == runs + 1 and pane.mark == "2"
        assert "autotuning  1 changed" in "\n".join(texts(app, "switches"))
        await pilot.press("space")
        await settle(pilot)
        assert session.target.options == {"max_autotune": True} and pane.mark == "1"


async def test_enter_flips_nothing_but_asks_which_value(monkeypatch: pytest.MonkeyPatch) -> None:
    app, session = living()
    monkeypatch.setattr(switching, "RECOMPILE", 60.0)
    async with app.run_test(size=WIDE) as pilot:
        pane = await open_switches(pilot, app, session)
        await pilot.press("j", "j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Picker) and pane.mark == ""
        await pilot.press(*"true", "enter")
        await settle(pilot)
        assert pane.mark == "1"


async def test_a_value_is_typed_and_one_that_cannot_be_is_refused_with_nothing_lost() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        pane = await open_switches(pilot, app, session)
        await pilot.press("G", "enter", *"lots", "enter")
        await settle(pilot)
        prompt = pane.query_one(Prompt)
        assert prompt.has_class("-open") and session.target.settings == {}
        assert "dynamo.recompile_limit is int, not lots" in str(prompt.query("Static").first().render())
        await pilot.press(*["backspace"] * 4, "3", "enter")
        await until(pilot, lambda: session.target.settings == {"dynamo.recompile_limit": 3})
        assert not prompt.has_class("-open")


async def test_one_of_a_few_is_picked() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await open_switches(pilot, app, session)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press(*"max", "enter")
        await until(pilot, lambda: session.target.mode == "max-autotune")


async def test_one_is_put_back_or_all_also_what_is_in_no_list_and_Z_undoes_each() -> None:
    app, session = living()
    session.target = Target(rules=session.target.rules, options={"max_autotune": True, "trace.enabled": True}, mode="x")
    async with app.run_test(size=WIDE) as pilot:
        pane = await open_switches(pilot, app, session)
        assert pane.mark == "3" and "trace.enabled" in "\n".join(texts(app, "switches"))
        await pilot.press("H")
        assert len([row for row in texts(app, "switches") if row.strip()]) == 7  # with heads
        await pilot.press("g", "j", "ctrl+x")
        await until(pilot, lambda: session.target.options == {"max_autotune": True})
        await pilot.press("A")
        await until(pilot, lambda: not session.target.options and not session.target.mode)
        assert "every switch has torch's default" in pane.lines.empty
        await pilot.press("Z")
        await until(pilot, lambda: session.target.options == {"max_autotune": True} and session.target.mode == "x")
        await pilot.press("Z")
        await until(pilot, lambda: session.target.options == {"max_autotune": True, "trace.enabled": True})
        await pilot.press("Z")
        await settle(pilot)
        assert "no change of switches to undo" in bar(app, "footer")


async def test_a_saved_session_says_that_nothing_is_compiled(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("minus", "A")
        await settle(pilot)
        assert "does not say which switches torch has" in app.query_one(SwitchesPane).lines.empty
        assert "read from disk" in bar(app, "footer")


async def test_on_a_small_screen_the_sentence_of_a_saved_session_is_whole(tmp_path: Path) -> None:
    app = app_of("mlp_train", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("minus")
        await settle(pilot)
        shown = " ".join(" ".join(texts(app, "switches")).split())
        assert app.query_one(SwitchesPane).lines.empty in shown


async def test_what_is_found_is_explained_and_edited() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        pane = await open_switches(pilot, app, session)
        await pilot.press("slash", *"max_auto", "enter")
        await settle(pilot)
        assert "try them all" in str(pane._meaning.render())
        await pilot.press("slash", *"recompile", "enter")
        await settle(pilot)
        assert "recompile_limit" in str(pane._meaning.render())
        await pilot.press("enter")
        await settle(pilot)
        assert "dynamo.recompile_limit" in str(pane.query_one(Prompt).query("Static").first().render())


async def test_switches_are_sorted_within_their_groups_and_groups_fold() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        pane = await open_switches(pilot, app, session)
        pane.lines.post_message(
            SectionLines.HeadClicked(next(row.table for row in pane.lines.items if row.table), "switch")
        )
        await settle(pilot)
        groups = [row.key for row in pane.lines.items if row.fold is not None]
        assert groups == [("group", name) for name in ("torch.compile", "autotuning", "fusion", "Dynamo")]
        count = len(pane.lines.items)
        await pilot.press("h", "h")
        assert len(pane.lines.items) == count - 1
