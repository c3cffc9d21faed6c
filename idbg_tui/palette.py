"""The command palette: every action, node, kernel and file by name."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.types import IgnoreReturnCallbackType

from idbg.format.amounts import counted
from idbg.schema.code import Kernel
from idbg.schema.graphs import Graph
from idbg_tui import keymap
from idbg_tui.messages import EditorRequest, KernelChosen, NodeChosen, ReproRequest
from idbg_tui.panes.graph.node_search import NodeSearch
from idbg_tui.state import repro_targets
from idbg_tui.state.state import State

_BEST = 200
"""Candidates that are ranked: ranking 100,000 names takes a quarter of a second, finding them a few milliseconds."""

Command = tuple[str, str, IgnoreReturnCallbackType]
"""Title, help and what to do."""


class Host(Protocol):
    """What the palette needs of the app over which it opens."""

    state: State
    keys: dict[str, str]
    theme: str

    @property
    def available_themes(self) -> Mapping[str, object]:
        """Every theme by its name."""

    def post_message(self, message: Message) -> bool:
        """Have the app do what a message asks for."""

    def action_do(self, name: str) -> None:
        """Do what a key of keymap.KEYS does, by its name."""


class IdbgCommands(Provider):
    """Actions first; then nodes of the shown graph, kernels and the user's files."""

    _index: tuple[Graph, NodeSearch] | None = None  # made once: a letter must not index the graph again

    @property
    def _host(self) -> Host:
        return cast(Host, self.app)

    async def discover(self) -> Hits:
        for title, words, do in self._actions():
            yield DiscoveryHit(Content(title), do, title, Content(words))  # type: ignore[arg-type]  # str is markup

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, words, do in (
            *self._actions(),
            *self._repros(),
            *self._kernels(),
            *self._files(),
            *self._nodes(query),
        ):
            score, places = matcher.fuzzy_search.match(query, title)
            if score > 0:
                yield Hit(score, _lit(title, places, matcher.match_style), do, title, Content(words))  # type: ignore[arg-type]

    def _actions(self) -> Iterator[Command]:
        host = self._host
        for key in keymap.KEYS:
            words = f"go to {key.words}" if key.leads_to_pane else key.words
            keys = keymap.spelled(host.keys[key.name])
            yield f"{key.group}: {words}", keys, partial(host.action_do, key.name)
        for theme in sorted(host.available_themes):
            yield f"Theme: {theme}", "colours", partial(setattr, host, "theme", theme)

    def _nodes(self, query: str) -> Iterator[Command]:
        state = self._host.state
        graph = state.graph
        if graph is None:
            return
        if self._index is None or self._index[0] is not graph:
            self._index = graph, NodeSearch(graph)
        for index in self._index[1].find(query)[:_BEST]:
            node = graph.nodes[index]
            words = f"node {node.target} {node.tensor or ''}"
            message = NodeChosen(graph.node_id(node.name), jump=True)
            yield node.name, words, partial(self._host.post_message, message)

    def _repros(self) -> Iterator[Command]:
        """What x and X are not about where the cursor is: each by its name."""
        state = self._host.state
        commands = []
        if state.live and (failed := repro_targets.of_failure(state)) is not None:
            commands += [
                ("of how the run failed", "written, and tried once", ReproRequest(failed)),
                ("the smallest of how the run failed", "searched for", ReproRequest(failed, smallest=True)),
            ]
        if state.live and (fed := repro_targets.of_node(state)) is not None and fed.node is not None:
            commands.append((f"from here: what feeds {fed.node.name}", "written, and tried once", ReproRequest(fed)))
        for title, words, message in commands:
            yield f"Repros: {title}", words, partial(self._host.post_message, message)

    def _kernels(self) -> Iterator[Command]:
        shown = self._host.state.shown
        kernels: list[Kernel] = shown.kernels if shown else []
        for kernel in kernels:
            message = KernelChosen(kernel.frame, kernel.part, kernel.name)
            nodes = counted(len(kernel.nodes), "node")
            yield kernel.name, f"kernel, {kernel.language}, {nodes}", partial(self._host.post_message, message)

    def _files(self) -> Iterator[Command]:
        graph = self._host.state.graph
        files = dict.fromkeys(node.file for node in graph.nodes if node.file) if graph else {}
        for file in files:
            yield file, "file: opens in $EDITOR", partial(self._host.post_message, EditorRequest(file))


def _lit(title: str, places: Sequence[int], style: Style) -> Content:
    """A name with the typed letters marked; Textual's own takes it for markup."""
    content = Content(title)
    for place in places:
        content = content.stylize(style, place, place + 1)
    return content
