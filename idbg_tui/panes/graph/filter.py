"""Filter the nodes of a graph, and keep the place of the cursor."""

from dataclasses import dataclass

from idbg.schema.graphs import Graph, NodeId
from idbg_tui.panes.graph.node_search import NodeSearch
from idbg_tui.panes.graph.rows import GraphLines


@dataclass(frozen=True)
class Viewpoint:
    """Where the graph is looked at: what a filter that finds nothing, or is given up, gives back."""

    node: NodeId | None = None
    cursor: int = -1  # a row; none: the node's own
    top: int = 0  # the first row that is seen
    folded: frozenset[str] = frozenset()


class GraphFilter:
    """Narrows the rows of a graph to the nodes that match. `query` is "" while all rows are shown.

    `settle` and `cancel` take the selected node, and return the one that is to be selected instead, if any.
    """

    def __init__(self, lines: GraphLines) -> None:
        self.query = ""
        self.matched = 0
        self._lines = lines
        self._search: NodeSearch | None = None
        self._begun_at = Viewpoint()
        self._asked: NodeId | None = None  # what the filter chose last; the state may not have it yet

    def take_graph(self, graph: Graph) -> None:
        """Filter another graph from now on, by the same query."""
        self._search = NodeSearch(graph)
        if self.query:
            self.apply(self.query)

    def prepare(self, seconds: float) -> bool:
        """Make the graph searchable, for about this long. True when nothing is left to do."""
        return self._search is None or self._search.prepare(seconds)

    def begin(self, selected: NodeId | None) -> None:
        """Remember where the graph is looked at, before a filter is typed or edited."""
        if not self.query:
            folded = frozenset(self._lines.outline.folded)
            self._begun_at = Viewpoint(selected, self._lines.cursor, self._lines.scroll_offset.y, folded)
        elif selected not in (self._begun_at.node, self._asked):
            self._begun_at = Viewpoint(selected)  # the user went there among the matches
        self._asked = selected

    def apply(self, query: str) -> None:
        """Show the nodes that match; with an empty query, all rows."""
        if self._search is None:
            return
        matches = self._search.find(query, self._lines.term) if query.strip() else None
        self.matched = len(matches) if matches is not None else 0
        self.query = query if matches is not None else ""
        self._lines.empty = f"no node matches {query}: esc clears the filter"
        self._lines.filter(matches)

    def settle(self, selected: NodeId | None) -> NodeId | None:
        """Go to the node that the filter was begun at if it matches, or if nothing does; else to the first that does.

        Never to what half of the text found: the state hears of that later than the next letter comes.
        """
        graph = self._lines.graph
        if graph is None:
            return None
        begun = self._begun_at.node
        begun = begun if begun and begun.graph == graph.id else selected
        if begun is not None and (self._lines.reveal(begun.name) or not self.matched):
            return self._chosen(begun, selected)
        first = self._lines.next_node(-1, 1)
        self._lines.place_cursor(first)
        index = self._lines.node_at(first)
        return None if index is None else self._chosen(graph.node_id(graph.nodes[index].name), selected)

    def cancel(self, selected: NodeId | None) -> NodeId | None:
        """Show all rows again, as they were when the filter was begun."""
        begun, graph = self._begun_at, self._lines.graph
        if graph is None or begun.node is None or begun.node.graph != graph.id:
            self.apply("")
            return None
        if begun.folded:
            self._lines.outline.folded.clear()
            self._lines.outline.folded.update(begun.folded)
        self.apply("")
        if begun.cursor < 0:
            self._lines.reveal(begun.node.name)
        else:
            self._lines.place_cursor(begun.cursor)
            self._lines.scroll_to(y=begun.top, animate=False, immediate=True)
        return self._chosen(begun.node, selected)

    def _chosen(self, node: NodeId, selected: NodeId | None) -> NodeId | None:
        """The node, unless it is selected already and no other choice of the filter's is on its way."""
        if node == self._asked and node == selected:
            return None
        self._asked = node
        return node
