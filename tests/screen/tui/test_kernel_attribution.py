"""`x` on a kernel of the KernelDiff pane requests whose its error is, and the verdict is listed above the kernels."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from idbg.schema import events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.diff import Comparison, DiffReport, KernelError
from idbg.schema.programs import Failure, Program
from idbg_tui.app import IdbgApp
from idbg_tui.state.state import State
from idbg_tui.status_bar import flashes
from idbg_tui.status_bar.footer import footer_progress
from tests.harness.live import FakeSession, living
from tests.harness.screen import WIDE, settle, texts


def launch(name: str, *, bad: bool = False) -> KernelError:
    return KernelError(frame="0/0", part="inference", name=name, observed=True, error=0.1, bad=bad, nodes=("mul",))


REPORT = DiffReport(
    test="inductor",
    reference="eager",
    verdict="failed",
    mode="float64",
    kernels=(launch("extern_kernels.mm"), launch("cpp_fused_0", bad=True), launch("cpp_fused_1")),
    first_bad_kernel=1,
)
OWNER = KernelAttribution(
    launch=1, name="cpp_fused_0", kind="compiler", sentence="the compiler's: alone cpp_fused_0 is wrong", error=0.1
)


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[IdbgApp, FakeSession, Pilot[None]]]:
    app, session = living()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        run = session.run(comparison=Comparison(per_kernel=True))
        session.emit(events.Compared(run=run, report=REPORT))
        session.emit(events.RunEnded(run=run, verdict="clean", seconds=1.0))
        await settle(pilot)
        await pilot.press("5", "z")
        await settle(pilot)
        yield app, session, pilot


async def test_the_key_requests_the_kernel_under_the_cursor_and_the_verdict_is_listed_above_the_kernels() -> None:
    async with opened() as (app, session, pilot):
        await pilot.press("x")
        await settle(pilot)
        assert session.calls[-1] == "owner 1"  # the cursor is on the first bad kernel
        session.emit(events.OwnerStarted(run=session.runs, launch=1))
        session.emit(events.OwnerJudged(run=session.runs, owner=OWNER))
        await settle(pilot)
        rows = texts(app, "kernel_diff")
        owner = next(row for row, text in enumerate(rows) if text.strip().startswith("✘ the compiler's: alone"))
        launches = next(row for row, text in enumerate(rows) if "3 kernel launches" in text)
        assert owner < launches and "cpp_fused_0" in rows[app.body.panes["kernel_diff"].lines.cursor]  # type: ignore[attr-defined]
        await pilot.press("j", "x")  # the cursor had stayed where it was
        await settle(pilot)
        assert session.calls[-1] == "owner 2"


async def test_elsewhere_the_key_writes_a_repro_as_ever() -> None:
    async with opened() as (_, session, pilot):
        await pilot.press("g", "g", "x")
        await settle(pilot)
        assert not any(call.startswith("owner") for call in session.calls)


def test_while_it_is_found_out_the_footer_says_so_and_at_its_end_what_came_of_it() -> None:
    state = State()
    state.apply([events.RunStarted(run=1, program=Program("m.py"), target=state.target)])
    state.apply([events.OwnerStarted(run=1, launch=1)])
    assert state.trying and "whose error" in footer_progress(state, 100)[0][0]
    judged, ended = events.OwnerJudged(run=1, owner=OWNER), events.OwnerEnded(run=1, owner=OWNER)
    state.apply([judged, ended])
    assert not state.trying
    assert flashes.of_event(judged) == (f"{OWNER.sentence}; a script of it is tried", "error")
    failure = Failure(kind="idbg", message="the worker no longer holds run 1", hint="compare its kernels again (D)")
    assert flashes.of_event(events.OwnerEnded(run=1, failure=failure)) == (
        "the worker no longer holds run 1; compare its kernels again (D)",
        "error",
    )
