"""List over the screen what is in memory at the shown graph's peak, and the partitions that it is cut into."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

from idbg.format.amounts import size
from idbg.format.glyphs import LEVELS
from idbg.views import memory, partitions
from idbg.views.tree import Chart, Section
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Look, Row, picture, sentences


def rows(state: State, look: Look) -> Sequence[Row]:
    """Each tensor that is alive at the peak, below the graph's memory over time; the cursor is on the largest."""
    graph = state.graph
    if graph is None:
        return list(sentences(why_no_graph(state), look, "dim"))
    made = _rows(memory.view(graph, state.costs.profile(graph), queries.peak(state)), look)
    tensors = [isinstance(row.key, tuple) and row.key[0] == "tensor" for row in made]
    return [replace(row, here=True in tensors and at == tensors.index(True)) for at, row in enumerate(made)]


def partition_rows(state: State, look: Look) -> Sequence[Row]:
    """The partitions of the shown graph, then those of other graphs of its level."""
    graph = state.graph
    if graph is None:
        return list(sentences(why_no_graph(state), look, "dim"))
    findings = state.checks.findings(graph)
    selected = state.selected.name if state.selected else ""
    return _rows(
        partitions.view(findings, state.costs.of_rules(findings), queries.rule_costs(state) or (), selected), look
    )


def _rows(section: Section, look: Look) -> Sequence[Row]:
    return sections.rows(section, look, _over_time) if section.body else list(sentences(section.summary, look, "dim"))


def _over_time(chart: Chart, look: Look) -> list[Row]:
    """A line of bars over the graph's nodes in order: its height is the most bytes that are in memory there,
    from the least of the whole graph to the most.
    """
    live = cast("Sequence[int]", chart.data)
    least, top = min(live), max(live)
    ends = f" {size(least)} ", f" {size(top)}"
    cells = max(10, min(look.width - 1 - sum(map(len, ends)), len(live)))
    bounds = [index * len(live) // cells for index in range(cells + 1)]
    most = [max(live[first:last], default=least) for first, last in pairwise(bounds)]
    steps = [LEVELS[(one - least) * (len(LEVELS) - 1) // max(1, top - least)] for one in most]
    over = [(step, "accent" if one == top else "dim") for step, one in zip(steps, most, strict=True)]
    return picture([[(ends[0], ""), *over, (ends[1], "")]])
