"""The welcome screen: what can be opened is there, found by typing, read beside the screen, and said to be broken."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from idbg.config import examples
from idbg.config.examples import Example
from idbg.schema.errors import OutputError
from idbg.schema.summaries import SessionSummary
from idbg.views.tree import Table
from idbg_tui.welcome import app as welcome_app
from idbg_tui.welcome.app import OfferLines, Welcome
from idbg_tui.welcome.offers import Choosable, Offers
from tests.harness.recorded import RECORDINGS
from tests.harness.screen import SMALL
from tests.harness.work import lines_run

EXAMPLES = [
    Example("resnet", Path("examples/resnet.py"), "ResNet-18", True, ("torchvision",)),
    Example("small", Path("examples/small.py"), "A small classifier", True),
    Example("tour", Path("examples/tour.py"), "What idbg tour walks through", True),
]


def saved(name: str, **facts: object) -> SessionSummary:
    ran = {"runs": 1, "ended": True} if "result" in facts else {}
    return SessionSummary(folder=f"/sessions/{name}", name=name, **ran, **facts)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def there(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[SessionSummary]], None]:
    """Says which sessions there are; before that there are none, and always the same examples."""
    found: list[SessionSummary] = []
    monkeypatch.setattr(examples, "shipped", lambda: EXAMPLES)
    monkeypatch.setattr(welcome_app, "sessions", lambda output: found)
    return found.extend


def app_of(open_offer: Callable[[Choosable], str] = str, output: str = "debug_artifacts") -> Welcome[str]:
    return Welcome(Path(output).absolute(), "", open_offer)


async def shown(pilot: Pilot[str | None]) -> list[str]:
    """The rows that say something, once what is read was read."""
    await settled(pilot)
    lines = pilot.app.query_one(OfferLines)
    return [text for y in range(lines.size.height) if (text := lines.line(y).text.rstrip())]


async def settled(pilot: Pilot[str | None]) -> None:
    app = pilot.app
    assert isinstance(app, Welcome)
    deadline = time.monotonic() + 60
    while (app._offers.sessions is None and not app._offers.problem) or not app._offers.examples:
        assert time.monotonic() < deadline
        await pilot.pause(0.02)
    await pilot.pause()


def footer(app: Welcome[str]) -> str:
    return app.query_one("#footer").render().plain  # type: ignore[union-attr]


async def test_with_nothing_there_yet_it_says_what_to_do_and_offers_the_tour() -> None:
    app = app_of(lambda choice: choice.name)  # type: ignore[union-attr]
    async with app.run_test(size=SMALL) as pilot:
        rows = await shown(pilot)
        assert rows[0].startswith(" Sessions  none in debug_artifacts yet: idbg-tui FILE.py or idbg run FILE.py")
        at = rows.index(" Examples, compiled when they are opened")
        assert "Take the tour" in rows[at + 2]
        await pilot.press("enter")
        await until_left(pilot)
    assert app.return_value == "tour"


async def test_the_newest_session_is_under_the_cursor_and_enter_opens_it(
    there: Callable[[list[SessionSummary]], None],
) -> None:
    there([saved("b", program="b.py", verdict="violations", looks="violations", result="17 violations"), saved("a")])
    app = app_of(lambda choice: choice.folder)  # type: ignore[union-attr]
    async with app.run_test(size=(120, 40)) as pilot:
        rows = await shown(pilot)
        assert rows[0] == " Last sessions  2 in debug_artifacts"
        assert rows[1].split() == ["session", "program", "for", "started", "runs", "size", "result"]
        assert rows[2].startswith("  ⚠ b ") and "b.py" in rows[2] and "17 violations" in rows[2] and "a" in rows[3]
        await pilot.press("enter")
        await until_left(pilot)
    assert app.return_value == "/sessions/b"


async def test_sessions_of_one_program_are_told_apart_on_a_narrow_screen(
    there: Callable[[list[SessionSummary]], None],
) -> None:
    there([saved("model-2", program="model.py"), saved("model-1", program="model.py")])
    app = app_of()
    async with app.run_test(size=SMALL) as pilot:
        await settled(pilot)

        def header() -> str:
            return app.query_one("#header").render().plain  # type: ignore[union-attr]

        assert header().rstrip().endswith("/sessions/model-2")
        await pilot.press("down")
        assert header().rstrip().endswith("/sessions/model-1")
        await pilot.press("down")
        assert header().rstrip().endswith("debug_artifacts")


async def until_left(pilot: Pilot[str | None]) -> None:
    for _ in range(100):
        if pilot.app._exit:
            return
        await pilot.pause(0.02)
    raise AssertionError("it was not left")


async def test_typing_finds_sessions_and_examples_and_escape_forgets_what_was_typed(
    there: Callable[[list[SessionSummary]], None],
) -> None:
    there([saved(f"s-{number}", program=f"net{number}.py", result="clean") for number in range(40)])
    app = app_of()
    async with app.run_test(size=SMALL) as pilot:
        rows = await shown(pilot)
        assert rows[0] == " Last sessions  40 in debug_artifacts: type to find the other 32"
        assert sum("clean" in row for row in rows) == 8 and any("small.py" in row for row in rows)
        await pilot.press(*"net3 clean")
        rows = await shown(pilot)
        assert rows[0] == " Last sessions  11 of 40 sessions in debug_artifacts"
        assert len(rows) == 13
        await pilot.press("escape", *"classifier")
        rows = await shown(pilot)
        assert [row.split()[0] for row in rows] == ["Examples,", "example", "small.py"]
        await pilot.press(*"zzz")
        assert "nothing here is called 'classifierzzz'" in (await shown(pilot))[0]
        await pilot.press("enter", "escape")
        assert not app._exit and len(await shown(pilot)) > 8
        await pilot.press("escape")
        await until_left(pilot)
    assert app.return_value is None


async def test_a_large_folder_is_read_beside_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    read = threading.Event()

    def sessions(output: Path) -> list[SessionSummary]:
        assert read.wait(60)
        return [saved("late", program="late.py")]

    monkeypatch.setattr(welcome_app, "sessions", sessions)
    app = app_of()
    async with app.run_test(size=SMALL) as pilot:
        while not app._offers.examples:
            await pilot.pause(0.02)
        await pilot.pause()
        lines = app.query_one(OfferLines)
        assert lines.line(0).text.rstrip() == " Sessions  reading debug_artifacts"
        await pilot.press("down", "down")
        assert "small.py" in lines.text(lines.cursor)
        read.set()
        rows = await shown(pilot)
        assert "late.py" in rows[2] and "small.py" in lines.text(lines.cursor)  # where the user went


async def test_a_damaged_session_is_shown_with_why_and_what_refuses_to_open_is_told(
    there: Callable[[list[SessionSummary]], None],
) -> None:
    there([saved("torn", program="torn.py", damaged="the log is not whole: line 3 is damaged")])

    def refuse(choice: Choosable) -> str:
        raise OutputError("there is nothing to be read of it", hint="compile it again")

    app = app_of(refuse)
    async with app.run_test(size=SMALL) as pilot:
        rows = await shown(pilot)
        assert "torn.py" in rows[2] and "damaged" in rows[2] and "the log is not whole: line 3" in rows[3]
        await pilot.press("enter")
        for _ in range(50):
            await pilot.pause(0.02)
            if "nothing to be read" in footer(app):
                break
        assert "there is nothing to be read of it" in footer(app) and not app._exit
        await pilot.press("down")
        assert "enter opens it" in footer(app)


async def test_a_folder_that_cannot_be_read_is_told_and_examples_are_still_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(output: Path) -> list[SessionSummary]:
        raise OutputError("cannot read the output folder x: Permission denied", hint="name another")

    monkeypatch.setattr(welcome_app, "sessions", refuse)
    async with app_of().run_test(size=SMALL) as pilot:
        rows = await shown(pilot)
        assert "Permission denied" in rows[0] and any("small.py" in row for row in rows)


async def test_an_example_that_lacks_a_package_says_how_to_get_it_and_is_not_opened() -> None:
    app = app_of()
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press(*"resnet", "enter")
        await pilot.pause()
        assert "resnet.py needs torchvision: pip install 'idbg[examples]'" in footer(app)
        assert not app._exit


@pytest.mark.parametrize("size", [SMALL, (200, 50)])
async def test_hostile_names_stay_one_row_each_and_nothing_is_wider_than_the_screen(
    there: Callable[[list[SessionSummary]], None], size: tuple[int, int]
) -> None:
    there(
        [
            saved("a", program="\x1b[31mred\n[bold]x", result="[/]" * 500, started=float("inf")),
            saved("b" * 5000, damaged="\x1b]0;title\x07" * 100, started=-1e300),
            saved("c", program="模型" * 100, started=time.time() - 90),
        ]
    )
    app = app_of()
    async with app.run_test(size=size) as pilot:
        rows = await shown(pilot)
        assert len(rows) >= 6
        lines = app.query_one(OfferLines)
        assert all(lines.line(y).cell_length == lines.line_width for y in range(5))


async def test_the_sessions_are_sorted_by_a_key_and_by_a_click(
    there: Callable[[list[SessionSummary]], None],
) -> None:
    there([saved(f"s{number}", program=f"{9 - number}.py", bytes=number) for number in range(9)])
    app = app_of()
    async with app.run_test(size=SMALL) as pilot:
        assert "8.py" in (await shown(pilot))[3]
        await pilot.press("ctrl+s")
        await pilot.press(*"program", "enter")
        rows = await shown(pilot)
        assert "1.py" in rows[2] and "sorted by program" in footer(app)
        assert "8.py" in rows[9], "the one that is left out is now another"
        await pilot.click(OfferLines, offset=(rows[1].index("program"), 1))
        assert "9.py" in (await shown(pilot))[2]


def test_ten_thousand_sessions_are_filtered_at_once() -> None:
    many = [saved(f"s-{number}", program=f"net{number}.py") for number in range(10_000)]
    offers = Offers(Path("x"), many, EXAMPLES)
    section, work = lines_run(lambda: offers.section("net99"))
    (table,) = section.body
    assert isinstance(table, Table) and len(table.rows) == 111 and work < 10 * 10_000


def test_a_recorded_session_is_offered_by_the_real_index(tmp_path: Path) -> None:
    from idbg.session.index import sessions

    (tmp_path / "attention-1").mkdir()
    (tmp_path / "attention-1" / "events.jsonl").write_bytes((RECORDINGS / "attention.jsonl").read_bytes())
    (found,) = sessions(tmp_path)
    offers = Offers(tmp_path, [found])
    (table,) = offers.section("attention").body
    assert isinstance(table, Table) and offers.chosen(table.rows[0].key) is found and found.result
