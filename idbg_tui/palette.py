"""What can be reached by name? The palette: every action, node, kernel and file."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.types import IgnoreReturnCallbackType

from idbg.schema.code import Kernel
from idbg.schema.graphs import Graph
from idbg_tui import keymap
from idbg_tui.messages import EditorAsked, KernelChosen, NodeChosen
from idbg_tui.panes.graph.node_search import NodeSearch

if TYPE_CHECKING:
    from idbg_tui.app import IdbgApp

_BEST = 200
"""Candidates that are ranked: ranking 100,000 names takes a quarter of a second, finding them a few milliseconds."""

_PANES = frozenset(f"pane_{number}" for number in range(1, 9))

Command = tuple[str, str, IgnoreReturnCallbackType]
"""Title, help and what to do."""


class IdbgCommands(Provider):
    """Actions first; then nodes of the shown graph, kernels and the user's files."""

    _index: tuple[Graph, NodeSearch] | None = None  # made once: a letter must not index the graph again

    @property
    def _idbg(self) -> "IdbgApp":
        return cast("IdbgApp", self.app)

    async def discover(self) -> Hits:
        for title, words, do in self._actions():
            yield DiscoveryHit(title, do, help=words)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, words, do in (*self._actions(), *self._kernels(), *self._files(), *self._nodes(query)):
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, matcher.highlight(title), do, help=words)

    def _actions(self) -> Iterator[Command]:
        app = self._idbg
        for key in keymap.KEYS:
            words = f"go to {key.words}" if key.name in _PANES else key.words
            keys = keymap.spelled(app.keys[key.name])
            yield f"{key.group}: {words}", keys, partial(app.run_action, key.action)
        for theme in sorted(app.available_themes):
            yield f"Theme: {theme}", "colours", partial(setattr, app, "theme", theme)

    def _nodes(self, query: str) -> Iterator[Command]:
        state = self._idbg.state
        graph = state.graph
        if graph is None:
            return
        if self._index is None or self._index[0] is not graph:
            self._index = graph, NodeSearch(graph)
        for index in self._index[1].find(query)[:_BEST]:
            node = graph.nodes[index]
            words = f"node {node.target} {node.tensor or ''}"
            message = NodeChosen(graph.node_id(node.name), jump=True)
            yield node.name, words, partial(self._idbg.post_message, message)

    def _kernels(self) -> Iterator[Command]:
        shown = self._idbg.state.shown
        kernels: list[Kernel] = shown.kernels if shown else []
        for kernel in kernels:
            message = KernelChosen(kernel.frame, kernel.part, kernel.name)
            nodes = f"{len(kernel.nodes)} node" + ("" if len(kernel.nodes) == 1 else "s")
            yield kernel.name, f"kernel, {kernel.language}, {nodes}", partial(self._idbg.post_message, message)

    def _files(self) -> Iterator[Command]:
        graph = self._idbg.state.graph
        files = dict.fromkeys(node.file for node in graph.nodes if node.file) if graph else {}
        for file in files:
            yield file, "file: opens in $EDITOR", partial(self._idbg.post_message, EditorAsked(file))
