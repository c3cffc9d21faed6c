"""Colour the nodes of a graph by what the user wants to see: a sign and a colour each, and a legend of them."""

from collections.abc import Callable, Iterable, Sequence
from math import log10
from typing import Literal, get_args

from idbg.format.amounts import duration, figure, size
from idbg.format.glyphs import JOINTS, LEVELS, MARKS, SEVERITY_SIGNS
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.graphs import Graph
from idbg.schema.violations import SEVERITIES, Severity
from idbg.views.module import ModuleTotals
from idbg_tui.panes.graph.columns import kernel_mark
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import StyledRow

ColourBy = Literal["", "finding", "error", "time", "memory", "kernel"]
ABOUT: dict[ColourBy, str] = {
    "": "none: names are plain",
    "finding": "the severest rule that a node breaks",
    "error": "the error of the kernel that computes a node",
    "time": "the time of the kernel that computes a node",
    "memory": "what is in memory while a node runs",
    "kernel": "nodes of one kernel have one colour",
}
assert set(ABOUT) == set(get_args(ColourBy))
HEATS, HUES = 5, 6
SEVERAL = JOINTS[3]
"""The sign of a folded module that several kernels compute."""
Launches = Sequence[tuple[Kernel, KernelCall]]
Mark = tuple[str, str]
"""A sign of one cell, and the name of its look."""
NO_MARK: Mark = (" ", "")


class Scale:
    """Levels between the least and the most of some figures, by their logarithm or as they are."""

    def __init__(self, figures: Iterable[float], spelled: Callable[[float], str], *, of_log: bool) -> None:
        known = [each for each in figures if each > 0 or not of_log]
        self.least, self.most = min(known, default=0.0), max(known, default=0.0)
        self._spelled, self._of_log = spelled, of_log
        self.is_empty = not known

    def mark(self, figure: float) -> Mark:
        """The sign and the heat of a figure; one above the scale, which a module's total may be, has the most."""
        if self._of_log:
            low, high, value = log10(self.least), log10(self.most), log10(max(figure, self.least))
        else:
            low, high, value = self.least, self.most, figure
        part = min((value - low) / (high - low), 1.0) if high > low else 1.0
        return LEVELS[round(part * (len(LEVELS) - 1))], f"heat {round(part * (HEATS - 1))}"

    def legend(self, words: str) -> StyledRow:
        """The ends of the scale, and what is between."""
        steps = [(LEVELS[at * (len(LEVELS) - 1) // (HEATS - 1)], f"heat {at}") for at in range(HEATS)]
        return [(f"{self._spelled(self.least)} ", ""), *steps, (f" {self._spelled(self.most)}  {words}", "")]


class Colours:
    """The marks of the nodes of one graph, as of one state."""

    def __init__(self, state: State, graph: Graph, by: ColourBy) -> None:
        self._state, self.by = state, by
        self._live = profile.live_bytes if (profile := state.costs.profile(graph)) is not None else None
        self._scale = self._made_scale()
        mine = (each for each in state.shown.kernels if each.frame == graph.id.frame) if state.shown else ()
        self._kernels = {each.name: each for each in mine} if by == "kernel" else {}
        self._hue_of = {name: f"hue {at % HUES}" for at, name in enumerate(self._kernels)}

    def _made_scale(self) -> Scale:
        state = self._state
        if self.by == "memory":
            return Scale(self._live or (), lambda nbytes: size(int(nbytes)), of_log=False)
        if self.by == "time":
            times = queries.kernel_times(state)
            known = [one.median_us for one in times.kernels] if times is not None else []
            return Scale(known, lambda us: duration(us / 1e3), of_log=True)
        compared = queries.compared_run(state)
        report = compared.diff if compared is not None and compared is state.shown else None
        errors = [one.error for one in report.kernels if one.error is not None] if report is not None else []
        return Scale(errors if self.by == "error" else (), figure, of_log=True)

    def mark(self, index: int, launches: Launches, severity: Severity | None, *, wrong: bool = False) -> Mark:
        """The mark of a node that these launches compute, and that breaks rules of this severity; since one that is
        `wrong` the numbers are.
        """
        state = self._state
        match self.by:
            case "finding":
                return (SEVERITY_SIGNS[severity], severity) if severity is not None else NO_MARK
            case "memory" if self._live is not None:
                return self._scale.mark(self._live[index])
            case "kernel" if launches:
                return MARKS["bar"], self._hue_of.get(launches[0][0].name, "hue 0")
            case "time":
                times = [time.median_us for each in launches if (time := queries.time_of(state, *each)) is not None]
                return self._scale.mark(max(times)) if times else NO_MARK
            case "error":
                errors = [error for each in launches if (error := queries.error_of(state, *each)) is not None]
                known = [error.error for error in errors if error.error is not None]
                if wrong or any(error.bad for error in errors):
                    return SEVERITY_SIGNS["reject"], "reject"
                return self._scale.mark(max(known)) if known and not self._scale.is_empty else NO_MARK
        return NO_MARK

    def mark_of_module(self, first: int, last: int, worst: Severity | None, totals: ModuleTotals) -> Mark:
        """The mark of a folded module: the severest rule that its nodes break, the most memory while they run, and of
        its kernels the time of all, the worst error, or the one with the longest time.
        """
        match self.by:
            case "memory" if self._live is not None and first < last:
                return self._scale.mark(max(self._live[first:last]))
            case "time" if totals.microseconds is not None and not self._scale.is_empty:
                return self._scale.mark(totals.microseconds)
            case "error" if totals.wrong:
                return SEVERITY_SIGNS["reject"], "reject"
            case "error" if (launch := totals.worst) is not None and launch.error is not None:
                error = launch.error.error
                return NO_MARK if error is None or self._scale.is_empty else self._scale.mark(error)
            case "kernel" if kernels := totals.by_kernel:
                sign = MARKS["bar"] if len(kernels) == 1 else SEVERAL
                return sign, self._hue_of.get(kernels[0][0].kernel.name, "hue 0")
        return self.mark(first, (), worst) if self.by == "finding" else NO_MARK

    def legend(self) -> StyledRow:
        """What the marks mean, or why there are none."""
        state, scale = self._state, self._scale
        match self.by:
            case "finding":
                found = queries.counts_of_graph(state)
                known = [(f"{SEVERITY_SIGNS[each]} {each}  ", each) for each in SEVERITIES if each in found]
                return known or [("no rule is broken here", "dim")]
            case "memory":
                none = "memory is not counted yet"
                return scale.legend("live while a node runs") if not scale.is_empty else [(none, "dim")]
            case "time":
                none = "not measured" + ": R times each kernel" * state.live
                of = "a launch of the kernel; folded: all of its kernels"
                return scale.legend(of) if not scale.is_empty else [(none, "dim")]
            case "error":
                wrong = f"of RMS; {SEVERITY_SIGNS['reject']} the first wrong node, or a kernel that is wrong by itself"
                none = "not compared" + ": D compares each kernel" * state.live
                return scale.legend(wrong) if not scale.is_empty else [(none, "dim")]
            case "kernel":
                listed = [
                    (f"{MARKS['bar']}{_spelled(kernel)} ", self._hue_of[name]) for name, kernel in self._kernels.items()
                ]
                several = f"{SEVERAL} folded, several: the slowest" if listed else "no kernel yet"
                return [*listed, (several, "dim")]
        return []


def _spelled(kernel: Kernel) -> str:
    """As in the column of kernels, and an extern one by its function."""
    mark = kernel_mark([kernel])
    return mark if kernel.source else kernel.name.rpartition(".")[2]
