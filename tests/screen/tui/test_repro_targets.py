"""What x and X ask for, wherever the cursor is: never something else than what is under it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from idbg.schema import events
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.diff import Comparison, DiffReport, KernelError, TensorDiff
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame
from idbg.schema.programs import Failure, Program
from idbg.schema.repros import MinifyProgress, Sought
from idbg_tui.app import IdbgApp
from idbg_tui.palette.commands import Everything
from idbg_tui.state import repro_targets
from idbg_tui.state.state import State
from tests.harness.compared import row_of
from tests.harness.live import FakeSession, living
from tests.harness.recorded import INFERENCE, chain
from tests.harness.screen import WIDE, bar, settle

FAILED = Failure(kind="torch", type="LoweringException", message="no lowering for relu")
DIED = Failure(kind="worker", message="the worker was killed by SIGSEGV")
DENIES_MM = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["mm"]\n'


def launch(name: str, *, bad: bool = False) -> KernelError:
    return KernelError(frame="0/0", part="inference", name=name, observed=True, error=0.1, bad=bad, nodes=("relu_1",))


WRONG = DiffReport(
    test="inductor",
    reference="eager",
    verdict="failed",
    mode="float64",
    outputs=(TensorDiff(name="out", passed=False, judged=True), TensorDiff(name="fine", passed=True, judged=True)),
    kernels=(launch("cpp_fused_0"), launch("cpp_fused_1", bad=True)),
    first_bad_kernel=1,
)


@asynccontextmanager
async def opened(*happened: SessionEvent, clean: bool = True, failure: Failure | None = None) -> AsyncIterator[
    tuple[IdbgApp, FakeSession, Pilot[None]]
]:  # fmt: skip
    """A live app after one run, which captured three relus; none breaks a rule, if `clean`."""
    app, session = living()
    if clean:
        session.target = replace(session.target, rules=DENIES_MM)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        run = session.run(comparison=Comparison(per_kernel=True)) if happened else session.runs
        session.emit(events.FrameStarted(run=run, frame=Frame("0/0", "f", "model.py", 4)))
        session.emit(events.GraphCaptured(run=run, graph=chain(3)))
        for event in happened:
            session.emit(replace(event, run=run))  # type: ignore[type-var]
        verdict = "failed" if failure else "clean"
        session.emit(events.RunEnded(run=run, verdict=verdict, seconds=1.0, failure=failure))  # type: ignore[arg-type]
        await settle(pilot)
        yield app, session, pilot


async def asked(pilot: Pilot[None], session: FakeSession, *keys: str) -> str:
    """What the last of these keys asks of the session; "" if nothing."""
    *before, last = keys
    await pilot.press(*before)
    await settle(pilot)
    count = len(session.calls)
    await pilot.press(last)
    await settle(pilot)
    return " | ".join(session.calls[count:])


async def test_on_a_node_that_breaks_a_rule_they_are_about_that_violation() -> None:
    async with opened(clean=False) as (_, session, pilot):
        assert await asked(pilot, session, "1", "x") == "repro relu_0 unsupported_ops"
        assert await asked(pilot, session, "j", "X") == "minify violation relu_1 unsupported_ops"
        assert await asked(pilot, session, "4", "g", "j", "j", "X") == "minify violation relu_1 unsupported_ops"
        assert await asked(pilot, session, "x") == "repro relu_1 unsupported_ops"


async def test_on_a_node_of_a_run_that_is_well_x_writes_what_feeds_it_and_X_has_nothing_to_do() -> None:
    async with opened() as (app, session, pilot):
        assert "x repro from here" in bar(app, "footer")
        assert await asked(pilot, session, "1", "j", "x") == "minify node relu_1 1 try"
        assert await asked(pilot, session, "X") == ""
        assert "nothing fails at relu_1" in bar(app, "footer") and "x writes what feeds it" in bar(app, "footer")


async def test_in_a_run_that_failed_they_are_about_the_failure_and_the_footer_says_so() -> None:
    async with opened(failure=FAILED) as (app, session, pilot):
        assert await asked(pilot, session, "1", "x") == "repro None "
        assert await asked(pilot, session, "X") == "minify failure"
        await pilot.press("1", "j")
        await settle(pilot)
        assert "x repro of the failure" in bar(app, "footer")
        titles = [command.name for command in Everything(app).repros()]
        assert titles == [
            "Repros: of how the run failed",
            "Repros: the smallest of how the run failed",
            "Repros: from here: what feeds relu_1",
        ]


async def test_what_took_the_worker_with_it_is_made_again_by_the_search_also_for_x() -> None:
    async with opened(failure=DIED) as (_, session, pilot):
        assert await asked(pilot, session, "1", "x") == "minify failure 1 try"


async def test_a_run_that_was_cancelled_has_not_failed() -> None:
    async with opened(failure=Failure(kind="cancelled", message="cancelled")) as (app, session, pilot):
        assert repro_targets.of_failure(app.state) is None
        assert not (await asked(pilot, session, "7", "X")).startswith("minify failure")


async def test_in_a_comparison_each_row_asks_for_what_it_shows() -> None:
    async with opened(events.Compared(run=1, report=WRONG)) as (app, session, pilot):
        await pilot.press("5", "z")
        lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
        subjects: list[TensorDiff | KernelError] = [*WRONG.outputs, *WRONG.kernels]
        rows = {about.name: row_of(lines, WRONG, about) for about in subjects}
        wanted = {
            ("out", "x"): "minify wrong the first",
            ("out", "X"): "minify wrong",
            ("fine", "X"): "",
            ("cpp_fused_1", "x"): "owner 1",
            ("cpp_fused_1", "X"): "minify wrong 1",
            ("cpp_fused_0", "x"): "owner 0",
            ("cpp_fused_0", "X"): "",
        }
        for (name, key), call in wanted.items():
            lines.go(rows[name])
            await settle(pilot)
            assert await asked(pilot, session, key) == call, (name, key)
        assert "cpp_fused_0 is not accused" in bar(app, "footer")
        session.run()
        lines.go(rows["out"])
        await settle(pilot)
        assert await asked(pilot, session, "X") == "" and "D compares again" in bar(app, "footer")


async def test_after_a_comparison_that_failed_x_on_a_node_is_about_what_is_wrong() -> None:
    async with opened(events.Compared(run=1, report=WRONG)) as (app, session, pilot):
        assert await asked(pilot, session, "1", "j", "x") == "minify wrong the first"
        assert "x repro of what is wrong" in bar(app, "footer")
        assert await asked(pilot, session, "X") == "minify wrong"


async def test_a_break_and_a_recompile_are_asked_for_at_their_line_of_the_log() -> None:
    broke = events.GraphBroke(run=1, graph_break=GraphBreak("print", "model.py", 7))
    recompiled = events.Recompiled(run=1, frame="0/0", reason="x.size(0) was 8, is 12")
    async with opened(broke, recompiled) as (app, session, pilot):
        await pilot.press("7", "z")
        rows = app.body.panes["log"].focus_target()
        texts = [line.content.text for line in rows.session_log.lines]  # type: ignore[attr-defined]
        for words, call in (("graph break", "break model.py:7"), ("recompiled", "recompile model.py:4")):
            rows.go(next(row for row, text in enumerate(texts) if words in text))  # type: ignore[attr-defined]
            await settle(pilot)
            assert await asked(pilot, session, "X") == f"minify {call}"
            assert await asked(pilot, session, "x") == f"minify {call} 1 try"
        session.run()  # another run takes its place
        await settle(pilot)
        rows.go(next(row for row, text in enumerate(texts) if "graph break" in text))  # type: ignore[attr-defined]
        assert await asked(pilot, session, "X") == "" and "is not in the worker any more" in bar(app, "footer")


async def test_while_a_search_goes_on_the_footer_counts_and_c_stops_it() -> None:
    async with opened(clean=False) as (app, session, pilot):
        await pilot.press("1", "X")
        await settle(pilot)
        assert "c stops" in bar(app, "footer")
        session.emit(events.MinifyStarted(run=1, sought=Sought("violation")))
        far = MinifyProgress("prefix", size=412, whole=1934, calls=17, budget=300, eta=40.0, others=2)
        session.emit(events.MinifyProgressed(run=1, progress=far))
        await pilot.press("j")
        await settle(pilot)
        said = bar(app, "footer")
        wanted = "minify  prefix  412 of 1,934 nodes  17 of 300 tries  about 40 s left  2 other failures"
        assert wanted in said and "c cancel" in said
        await pilot.press("c")
        await settle(pilot)
        assert session.calls[-1] == "cancel" and "the smallest script so far is kept" in bar(app, "footer")


@pytest.mark.parametrize("failure", [None, FAILED])
def test_of_a_run_that_goes_on_nothing_is_asked_for_but_violations(failure: Failure | None) -> None:
    state = State()
    state.apply([events.RunStarted(run=1, program=Program("m.py"), target=state.target)])
    state.apply([events.GraphCaptured(run=1, graph=chain(3))])
    assert state.choose(chain(3).node_id("relu_1")) and state.graph_id == INFERENCE
    assert repro_targets.of_selected(state) is None and "has not ended" in repro_targets.why_none(state)
    state.apply([events.RunEnded(run=1, verdict="clean", seconds=1.0, failure=failure)])
    found = repro_targets.of_selected(state)
    assert found is not None and found.kind == ("failure" if failure else "node")
