"""List the partitions that fallbacks to the host cut the shown graph into, and what crosses between them."""

from collections.abc import Sequence

from idbg.views import partitions
from idbg_tui.panes.graph.title import list_title
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Look, Row, sentences


def title(state: State) -> str:
    """The title of the list, with the stage of the graph that it is about."""
    return list_title("Partitions", state)


def rows(state: State, look: Look) -> Sequence[Row]:
    """The partitions of the shown graph, then those of other graphs of its level."""
    graph = state.graph
    if graph is None:
        return list(sentences(why_no_graph(state), look, "dim"))
    findings = state.checks.findings(graph)
    selected = state.selected.name if state.selected else ""
    section = partitions.view(findings, state.costs.of_rules(findings), queries.rule_costs(state) or (), selected)
    return sections.rows(section, look) if section.body else list(sentences(section.summary, look, "dim"))
