"""Compare a run with a reference, and show the details of the comparison."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from idbg.schema.diff import Comparison
from idbg.schema.graphs import NodeId
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.controllers.listings import Listings
from idbg_tui.messages import DiffRequest
from idbg_tui.state import queries
from idbg_tui.widgets.listing import Listing, Reading
from idbg_tui.widgets.section_rows import Look, Row, sentences

CHART_KEY = "C"  # of the KernelDiff pane
STEPS = 10  # of a training that is compared from the screen


class Comparing:
    """Compares, and lists what was found of an output, of a side that failed, and from kernel to kernel."""

    def __init__(self, context: Context, listings: Listings, keys: dict[str, str]) -> None:
        """`keys` are those in force, by the names of keymap.KEYS."""
        self._keys = keys
        self._context, self._session, self._state = context, context.session, context.state
        self._listings = listings

    def actions(self) -> Actions:
        """What the keys do."""
        return {
            "compare": self.compare,
            "compare_kernels": partial(self.compare, per_kernel=True),
            "pass_diff": self.show_pass,
        }

    def compare(self, *, per_kernel: bool = False, steps: int = 0) -> None:
        """Run again and compare with eager and float64: outputs, each kernel's too, or `steps` of a training."""
        comparison = Comparison(per_kernel=per_kernel, steps=steps)
        if self._context.attempt(lambda: self._session.run(comparison=comparison)):
            self._context.body.go("kernel_diff")
            self._context.show()

    def find_owner(self, launch: int) -> None:
        """Call the launch alone, on its real arguments, to find the origin of its error."""
        compared = queries.compared_run(self._state)
        if compared is not None and compared is not self._state.run:
            self._context.flash("another run came after the one that was compared: D compares again", "warning")
        elif self._context.attempt(lambda: self._session.find_owner(launch)):
            self._context.flash("the program runs again, and then the kernel alone: whose error is it?")

    def look_into(self, request: DiffRequest) -> None:
        """Open the requested details over the screen."""
        match request.what:
            case "chart":
                self._listings.open(
                    Listing("The error from kernel to kernel, and from step to step", CHART_KEY, self.chart)
                )
            case "steps":
                self.compare(steps=STEPS)
            case "before" | "after":
                if self._state.step_comparison(-1 if request.what == "before" else 1):
                    self._context.show()
                else:
                    self._context.flash(f"no comparison {request.what} this one: d and D compare")
            case "failure":
                failed = f"{request.name or 'The program'} failed"
                self._listings.open(Reading(failed, "", partial(self._failure, request.name)))
            case "tensor":
                self._look_into_tensor(request.name)

    def show_pass(self) -> None:
        """Show the graph before and after the pass that is to blame."""
        from idbg_tui.panes.kernel_diff import overlays

        run = queries.compared_run(self._state)
        whole = overlays.whole_diff(run.diff) if run is not None and run.diff is not None else ""
        title = "The graph before (-) and after (+) the pass" if whole else "No pass to show"
        self._listings.open(Listing(title, self._keys["pass_diff"], self._passes, whole))

    def _passes(self, look: Look) -> Sequence[Row]:
        from idbg_tui.panes.kernel_diff import overlays

        run, shown = queries.compared_run(self._state), self._state.shown
        if run is None or run.diff is None:
            return list(sentences("nothing was compared yet: D finds the stage that is wrong", look, "dim"))
        graphs = shown.graphs if shown is run else {}  # of another run the nodes are others

        def known(node: NodeId) -> bool:
            return node.graph in graphs and node.name in graphs[node.graph].by_name

        return overlays.pass_diffs(run.diff, look, known)

    def _look_into_tensor(self, name: str) -> None:
        from idbg_tui.panes.kernel_diff.tensor import TensorListing, tensor_of

        diff = tensor_of(self._state, name)
        if diff is None:
            return
        listing = TensorListing(name, self._state, self._session.map_errors, Path(self._session.folder))
        self._listings.open(listing)
        if listing.error_map is None and diff.worst is not None and self._session.live:
            index = diff.worst.index[:-2]
            self._context.attempt(lambda: self._session.map_errors(name, index))

    def chart(self, look: Look) -> Sequence[Row]:
        """The last comparison's errors from kernel to kernel, as rows that lead to the kernels' nodes."""
        from idbg_tui.panes.kernel_diff import overlays

        run = queries.compared_run(self._state)
        report = run and run.diff
        if run is None or not report:
            return list(sentences("nothing was compared yet: D compares every kernel", look, "dim"))
        look = replace(look, files=queries.source_files(self._state))
        rows = overlays.growth(report, look, self._context.app.size.height)
        first = report.kernels[0] if report.kernels else None
        if first is None or queries.has_code_of(self._state, run, first.frame, first.part):
            return rows
        return [replace(row, nodes=()) for row in rows]  # another run is shown: its nodes are others

    def _failure(self, side: str, look: Look) -> Sequence[Row]:
        """All that is known of why a side failed; "" is the program, of the run in hand."""
        from idbg_tui.panes.kernel_diff import overlays

        compared, run = queries.compared_run(self._state), self._state.run
        report = compared.diff if compared else None
        failures = {one.name: one.failure for one in report.sides} if report else {}
        failure = failures.get(side) or (report.failure if report and run is compared else run and run.failure)
        return overlays.failure_rows(failure, look) if failure else []
