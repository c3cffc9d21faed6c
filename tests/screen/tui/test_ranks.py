"""The second view of the pane of processes compares the ranks of a job."""

from pathlib import Path

import pytest

from idbg.config.settings import Settings
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from tests.harness.rank_logs import session_of_ranks
from tests.harness.screen import SMALL, WIDE, ReadyApp, bar, settle, texts, until


def other_graph(rank: int, text: str) -> str:
    return text.replace("aten.sub.Tensor", "aten.div.Tensor") if rank == 1 else text


def app_of_job(folder: Path) -> IdbgApp:
    session = session_of_ranks(folder / "job", 4, change=other_graph)
    return ReadyApp(lambda: Session.open(session), Settings())


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_ranks_are_compared_and_the_processes_are_there_again(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_of_job(tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("number_sign")
        await settle(pilot)
        assert any("rank3" in row for row in texts(app, "processes"))
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: any("graphs" in row for row in texts(app, "processes")))
        await settle(pilot)
        rows = texts(app, "processes")
        assert "4 ranks" in rows[0]
        assert any("rank 1" in row and "aten.div.Tensor" in row for row in rows)
        assert any("ranks 0, 2-3" in row and "rank 1" in row for row in rows), "the heads of the matrix"
        assert any("other" in row and "graph" in row for row in rows)
        await pilot.press("left_square_bracket")
        await settle(pilot)
        assert any("rank3" in row for row in texts(app, "processes"))


async def test_a_session_of_one_process_has_no_ranks(tmp_path: Path) -> None:
    app = ReadyApp(lambda: Session.open(session_of_ranks(tmp_path / "job", 0)), Settings())
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("number_sign", "right_square_bracket")
        await settle(pilot)
        assert "one process" in bar(app, "footer")
