"""Look up what the kernels that compute a node, or a module's nodes, come to."""

from collections.abc import Mapping, Sequence

from idbg.analysis.outline import ModuleHeading
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.diff import KernelError
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.kernel_times import KernelTime
from idbg.views.module import NO_TOTALS, ModuleTotals
from idbg_tui.state import queries
from idbg_tui.state.state import State

Use = tuple[Kernel, KernelCall]


class GraphFigures:
    """The figures of one graph as of the versions of a state; those of a launch stand at the first of its nodes."""

    def __init__(self, state: State, graph: Graph, index: Mapping[str, int]) -> None:
        self._state, self._graph, self._index = state, graph, index
        self._first_of: dict[tuple[str, str, str], int] = {}
        self._of_module: dict[str, ModuleTotals] = {}
        self._provenance = state.provenance if queries.has_kernels(state) else None
        self.wrong = _wrong_nodes(state, graph.id, index)
        """The error of each node since which the numbers are wrong, by its place."""
        self.versions = versions_of(state)

    def launches(self, at: int) -> Sequence[Use]:
        """The launches that compute a node."""
        return self._provenance.kernels_of(self._graph.node_id(self._graph.nodes[at].name)) if self._provenance else ()

    def firsts(self, at: int, launches: Sequence[Use]) -> list[Use]:
        """Those of a node's launches whose first node it is."""
        return [launch for launch in launches if self._first(*launch) == at]

    def times(self, launches: Sequence[Use]) -> list[KernelTime]:
        """The times of those that were timed."""
        return [time for each in launches if (time := queries.time_of(self._state, *each)) is not None]

    def errors(self, launches: Sequence[Use]) -> list[KernelError]:
        """The errors of those that were compared."""
        return [error for each in launches if (error := queries.error_of(self._state, *each)) is not None]

    def of_module(self, heading: ModuleHeading) -> ModuleTotals:
        """What the launches of a module's nodes come to."""
        if heading.key not in self._of_module:
            about = queries.module_context(self._state, heading)
            self._of_module[heading.key] = about.totals if about is not None else NO_TOTALS
        return self._of_module[heading.key]

    def _first(self, kernel: Kernel, call: KernelCall) -> int:
        """The index of the first node of the graph that a launch computes; -1 if there is none."""
        known, key = self._first_of, (kernel.frame, kernel.part, f"{call.handle}:{call.line}")
        if key not in known:
            assert self._provenance is not None
            below = GraphId(kernel.frame, "post_grad", kernel.part)
            places = [NodeId(below, name) for name in call.nodes]
            if self._graph.id != below:
                places = [same for place in places for same in self._provenance.counterparts(place, self._graph.id)]
            known[key] = min((self._index[place.name] for place in places if place.name in self._index), default=-1)
        return known[key]


def _wrong_nodes(state: State, graph: GraphId, index: Mapping[str, int]) -> dict[int, float]:
    """The first bad node of each wrong stage of a graph: its own error where that was measured, else its graph's."""
    compared = queries.compared_run(state)
    report = compared.diff if compared is not None and compared is state.shown else None
    if report is None or report.verdict != "failed":
        return {}
    bad = (stage for stage in report.stages if stage.bad and stage.graph == graph and stage.node in index)
    return {index[stage.node]: stage.node_error or stage.added or 0.0 for stage in bad}


def versions_of(state: State) -> tuple[int, int]:
    """What the figures depend on."""
    return state.versions.graphs, state.versions.run
