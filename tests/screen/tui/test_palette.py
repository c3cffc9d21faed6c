"""Does the palette list everything, a line each, find it by any word, rank it by use, and take every key?"""

from pathlib import Path

from textual.widgets import Input

from idbg_tui.app import IdbgApp
from idbg_tui.palette.screen import Command, CommandLines, Commands, Palette
from idbg_tui.palette.uses import CommandUses
from idbg_tui.panes.switches.pane import SwitchesPane
from tests.harness.flipped import open_switches
from tests.harness.live import living
from tests.harness.recorded import app_of
from tests.harness.screen import SMALL, WIDE, settle, until, written


def listed(app: IdbgApp) -> list[Command]:
    assert isinstance(app.screen, Palette)
    return list(app.screen.query_one(CommandLines).items)


async def test_a_key_in_a_palette_that_found_nothing_ends_nothing(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=SMALL) as pilot:
        for typed, key in (("zzqqzz", "pagedown"), ("zzqqzz", "enter"), ("relu", "pageup")):
            await pilot.press("ctrl+p", *typed, key)
            await pilot.pause()
            assert isinstance(app.screen, Palette) and not (typed == "zzqqzz" and listed(app)), key
            await pilot.press(key, key, "escape")
            await settle(pilot)
            assert not isinstance(app.screen, Palette) and app.is_running, key


async def test_a_line_has_the_words_and_the_key_at_its_end(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p", *"kernel roofline")
        await pilot.pause()
        lines = app.screen.query_one(CommandLines)
        row = lines.line(0).text
        assert row.split()[0] == "Measure" and "time each kernel" in row and row.rstrip().endswith("R")
        assert len(lines.items) == lines.row_count == 1


OF_EACH_KIND = {
    "Measure": "roofline",
    "KernelDiff": "another order",
    "node": "convolution_17",
    "kernel": "triton_poi",
    "finding": "deny",
    "file": "resnet.py",
    "run": "run 1 log",
    "accelerator": "tpu",
    "backend": "inductor captured",
    "Theme": "idbg-light",
    "Go": "42",
}


async def test_every_kind_of_thing_is_found_by_its_words(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        for kind, typed in OF_EACH_KIND.items():
            app.screen.query_one(Input).value = typed
            await pilot.pause()
            assert kind in {command.kind for command in listed(app)}, typed


async def test_a_finding_that_is_folded_and_of_another_kind_is_reached(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("4", "f", "1", "ctrl+p", *"finding")
        await pilot.pause()
        wanted = [command for command in listed(app) if command.kind == "finding"][-1]
        wanted.do()
        await pilot.press("escape")
        await settle(pilot)
        row = app.body.panes["findings"].lines.chosen  # type: ignore[attr-defined]
        assert app.body.current == "findings"
        assert set(" ".join(text for text, _ in row.draw(500)).split()) & set(wanted.title.split())


async def test_a_switch_is_reached_also_where_only_the_changed_are_listed() -> None:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        pane = await open_switches(pilot, app, session)
        await pilot.press("H", "1", "ctrl+p", *"epilogue_fus", "enter")
        await settle(pilot)
        assert app.body.current == "switches" and isinstance(pane, SwitchesPane)
        assert pane._chosen is not None and pane._chosen.name == "epilogue_fusion"


async def test_enter_does_what_was_typed_also_when_all_keys_come_at_once(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("colon", *"go to kerneldiff", "enter")
        await until(pilot, lambda: app.body.current == "kernel_diff")
        assert not isinstance(app.screen, Palette)


async def test_a_number_goes_to_that_row(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        lines = app.body.panes["graph"].lines  # type: ignore[attr-defined]
        for typed, row in (("42", 41), ("+5", 15), ("-5", 5), ("$", -1), ("9999", -1)):
            lines.go(10)
            await pilot.press("colon", *typed, "enter")
            await settle(pilot)
            assert lines.cursor == (row if row >= 0 else lines.row_count - 1), typed


async def test_colon_q_leaves(tmp_path: Path) -> None:
    app = app_of("resnet", tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("colon", "q", "enter")
        await until(pilot, lambda: app._exit)


def of(*titles: str) -> Commands:
    return Commands([Command("Kind", title, lambda: None) for title in titles], lambda: (), lambda _: ())


def test_what_was_used_comes_first_also_in_the_next_session(tmp_path: Path) -> None:
    path = tmp_path / "new" / "palette.json"
    uses = CommandUses(path)
    uses.counts["Kind: graph three"] = 1
    uses.count("Kind: graph two")
    uses.count("Kind: graph two")
    written()
    commands = of("graph one", "graph two", "graph three")
    for typed in ("", "graph"):
        found = [command.title for command in commands.matching(typed, CommandUses(path).counts)]
        assert found == ["graph two", "graph three", "graph one"]


def test_a_name_itself_comes_before_what_was_used_more() -> None:
    commands = of("add a rule", "add", "graph")
    assert commands.matching("add", {"Kind: add a rule": 9})[0].title == "add"
    assert [command.title for command in commands.matching("grph", {})] == ["graph"]


def test_an_unreadable_file_of_uses_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "palette.json").write_text("[1, 2")
    assert CommandUses(tmp_path / "palette.json").counts == {}
