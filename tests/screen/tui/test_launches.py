"""Does enter on a launch go to that launch, and not to another of the same name?"""

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from idbg.schema import events
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.kernel_times import KernelTime, KernelTimes, Peaks
from idbg.views import kernel_times
from idbg_tui.panes.benchmarks.pane import BenchmarksPane
from idbg_tui.panes.source import sheets
from idbg_tui.state import navigation, queries
from idbg_tui.state.state import State
from idbg_tui.widgets.section_rows import Look
from tests.harness.compared import row_of
from tests.harness.node_facts import facts
from tests.harness.recorded import app_of, state_of
from tests.harness.screen import settle, until

SESSIONS = ("attention", "mlp_train", "planted", "resnet")


def launches(state: State) -> list[tuple[Kernel, KernelCall]]:
    return [(kernel, call) for kernel in (state.shown.kernels if state.shown else ()) for call in kernel.calls]


def timed(state: State, **other: str) -> events.KernelsTimed:
    """As if every launch had been timed; `other` is what they are of, if not of what is shown."""
    assert state.shown is not None
    kernels = tuple(
        KernelTime(
            frame=kernel.frame, part=kernel.part, name=kernel.name, kind="cpp", handle=call.handle, line=call.line,
            samples_us=(1.0 + place,), share=0.1,
        )
        for place, (kernel, call) in enumerate(launches(state))
    )  # fmt: skip
    times = KernelTimes(
        kernels=kernels, samples_us=(40.0,), hooked_samples_us=(41.0,), peaks=Peaks(device="a CPU", torch="2.15")
    )
    place: dict[str, Any] = {"program": state.shown.program.label, "backend": state.shown.target.backend, **other}
    return events.KernelsTimed(times=times, **place)


def chosen(state: State, kernel: Kernel, call: KernelCall) -> bool:
    return navigation.choose_kernel(state, kernel.frame, kernel.part, kernel.name, call.handle, call.line)


@pytest.mark.parametrize("name", SESSIONS)
def test_every_launch_is_told_from_the_others_by_its_nodes_and_its_line(name: str) -> None:
    state = state_of(name)
    assert any(len(kernel.calls) > 1 for kernel, _ in launches(state))
    for kernel, call in launches(state):
        assert chosen(state, kernel, call)
        assert state.kernel is kernel and state.launch is call
        sheet = sheets.make("wrapper", state)
        assert (sheet.line, sheet.marks) == (call.line, {call.line})
        if call.nodes:
            assert state.selected is not None and state.selected.name in queries.marked_nodes(state)
            below = [other for _, other in queries.launches_of_node(state)]
            assert call in below, "the node that is selected is one that this launch computes"


def test_without_a_handle_a_launch_is_told_by_its_line() -> None:
    state = state_of("attention")
    kernel, call = next(
        (kernel, call) for kernel, call in launches(state) if call is kernel.calls[-1] is not kernel.calls[0]
    )
    assert navigation.choose_kernel(state, kernel.frame, kernel.part, kernel.name, "", call.line)
    assert state.launch is call


def test_a_launch_that_the_run_does_not_have_changes_nothing() -> None:
    state = state_of("attention")
    kernel, call = launches(state)[0]
    before = state.selected
    assert not navigation.choose_kernel(state, kernel.frame, kernel.part, kernel.name, f"{call.handle}9", call.line)
    assert (state.kernel, state.launch, state.selected) == (None, None, before)


def test_a_node_that_is_chosen_after_it_forgets_the_launch() -> None:
    state = state_of("attention")
    kernel, call = launches(state)[-1]
    assert chosen(state, kernel, call) and state.graph is not None
    state.choose(state.graph.node_id(state.graph.nodes[0].name))
    assert (state.kernel, state.launch) == (None, None)


def test_a_launch_that_the_shown_graph_has_no_node_of_is_shown_in_its_own() -> None:
    state = state_of("mlp_train")  # the forward graph is shown
    kernel, call = next((kernel, call) for kernel, call in launches(state) if kernel.part == "backward" and call.nodes)
    state.choose_graph(next(graph for graph in state.shown.graphs if graph.stage == "forward"))  # type: ignore[union-attr]
    assert chosen(state, kernel, call)
    assert state.graph_id is not None and state.graph_id.part == "backward"
    assert state.selected is not None and state.selected.name in call.nodes


def test_a_kernel_fact_of_a_node_leads_to_the_launch_that_computes_it() -> None:
    state = state_of("attention")
    _, call = next((kernel, call) for kernel, call in launches(state) if call is not kernel.calls[0] and call.nodes)
    assert state.provenance is not None
    assert state.selected is not None and queries.launches_of_node(state)
    opened = [fact.row.key for fact in facts(state) if fact.row.opens == "kernel"]
    assert opened == [("launch", call.handle, call.line) for _, call in queries.launches_of_node(state)]
    assert call.nodes


async def entered(pilot: Pilot[None], item: KernelTime) -> None:
    """Enter on the launch, below the row of all launches of its kernel if it has several."""
    lines = pilot.app.query_one(BenchmarksPane).lines
    if kernel_times.key(item) not in [row.key for row in lines.items]:
        lines.place_cursor([row.key for row in lines.items].index(("kernels", item.name)))
        lines.action_open()
        await settle(pilot)
    lines.place_cursor([row.key for row in lines.items].index(kernel_times.key(item)))
    lines.action_open()


async def test_enter_in_benchmarks_goes_to_the_launch_in_the_row(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        event = timed(app.state)
        app.state.apply([event])
        app.show()
        for number, (kernel, call) in enumerate(launches(app.state)):
            await pilot.press("6")
            await settle(pilot)
            assert event.times is not None
            await entered(pilot, event.times.kernels[number])
            await until(pilot, lambda call=call: app.body.current == "source" and app.state.launch is call)  # type: ignore[misc]
            assert app.state.kernel is kernel


async def test_enter_on_kernels_of_another_backend_says_so_and_goes_nowhere(tmp_path: Path) -> None:
    app = app_of("attention", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        event = timed(app.state, backend="inductor")
        app.state.apply([event])
        app.show()
        await pilot.press("6")
        await settle(pilot)
        assert event.times is not None
        await entered(pilot, event.times.kernels[0])
        await settle(pilot)
        assert app.body.current == "benchmarks" and app.state.kernel is None
        assert app.bars.flashed is not None and "kernels of inductor, and aot is shown" in app.bars.flashed[0]


async def test_enter_in_the_comparison_goes_to_the_launch_in_the_row(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        report = queries.compared_run(app.state) and queries.compared_run(app.state).diff
        assert report
        for one in report.kernels:
            await pilot.press("5")
            await settle(pilot)
            lines = app.body.panes["kernel_diff"].lines  # type: ignore[attr-defined]
            lines.place_cursor(row_of(lines, report, one))
            lines.action_open()
            await until(pilot, lambda one=one: app.state.launch is not None and app.state.launch.handle == one.handle)  # type: ignore[misc]


async def test_the_chart_of_a_comparison_leads_nowhere_while_another_runs_code_is_shown(tmp_path: Path) -> None:
    app = app_of("planted", tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await settle(pilot)
        assert any(row.nodes for row in app.controllers.comparing.chart(Look(120)))
        other = state_of("attention").shown
        assert other is not None
        app.state.shown = other
        assert not any(row.nodes for row in app.controllers.comparing.chart(Look(120)))
