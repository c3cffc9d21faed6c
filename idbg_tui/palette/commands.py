"""What the palette lists: actions with their keys, and all that has a name in the session."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Protocol

from textual.dom import DOMNode
from textual.message import Message

from idbg.accelerators import registry
from idbg.format.amounts import counted
from idbg.schema.graphs import Graph
from idbg.views import compared
from idbg.views.frame_graphs import graph_words
from idbg.views.switches import value_words
from idbg_tui import bound_keys, choices, keymap
from idbg_tui.layout import Body
from idbg_tui.messages import (
    AcceleratorChosen,
    BackendChosen,
    BesideRequest,
    EditorRequest,
    KernelChosen,
    NodeChosen,
    NumberRequest,
    ReproRequest,
    RowRequest,
    SourceRequest,
)
from idbg_tui.palette.screen import Command
from idbg_tui.panes.base import Pane, PaneId
from idbg_tui.panes.findings.pane import FindingsPane
from idbg_tui.panes.graph.node_search import NodeSearch
from idbg_tui.state import queries, repro_targets
from idbg_tui.state.state import State

_BEST = 200
"""Nodes that are ranked: ranking 100,000 names takes a quarter of a second, finding them a few milliseconds."""
_FINDINGS = 1000  # that are listed


class Host(Protocol):
    """What the palette needs of the app over which it opens."""

    state: State
    keys: dict[str, str]
    theme: str
    body: Body

    @property
    def available_themes(self) -> Mapping[str, object]:
        """Every theme by its name."""

    def post_message(self, message: Message) -> bool:
        """Have the app do what a message asks for."""

    def action_do(self, name: str) -> None:
        """Do what a key of keymap.KEYS does, by its name."""

    def action_view(self, pane: PaneId, view: str) -> None:
        """Go to a view of a pane."""

    def action_stage(self, index: int) -> None:
        """Show a stage of the frame."""

    def action_compiler_stage(self, index: int) -> None:
        """Show a stage of another compiler."""

    def do_in(self, pane: Pane, node: DOMNode, action: str) -> None:
        """Go to a pane, and do what a key does there."""


class Everything:
    """Lists the commands of the app as it is now; the graph's nodes are indexed once for each graph."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._index: tuple[Graph, NodeSearch] | None = None

    def always(self) -> Iterator[Command]:
        """What is listed before anything is typed: the current pane's keys, then those that work everywhere."""
        host = self._host
        current = host.body.panes[host.body.current]
        yield from self._of_pane(current)
        for key in keymap.KEYS:
            words = f"go to {key.words}" if key.leads_to_pane else key.words
            yield Command(key.group, words, partial(host.action_do, key.name), keymap.spelled(host.keys[key.name]))
        yield from self.repros()
        for pane in host.body.panes.values():
            if pane is not current:
                yield from self._of_pane(pane)

    def things(self) -> Iterator[Command]:
        """All that has a name, but for nodes."""
        yield from self._views()
        yield from self._kernels()
        yield from self._findings()
        yield from self._runs()
        yield from self._switches()
        yield from self._targets()
        yield from self._files()
        host = self._host
        for theme in sorted(host.available_themes):
            yield Command("Theme", theme, partial(setattr, host, "theme", theme), words="colours")

    def found(self, typed: str) -> Iterator[Command]:
        """The row of a number, and the nodes of the shown graph that match."""
        host, state = self._host, self._host.state
        if re.fullmatch(r"[+-]?\d+|\$", typed):
            pane = host.body.panes[host.body.current]
            where = {"+": "rows down", "-": "rows up", "$": "the last row"}.get(typed[0], "that row")
            do = partial(host.post_message, NumberRequest(typed))
            yield Command("Go", typed, do, words=f"{where} of {pane.label}")
        graph, search = state.graph, self._search()
        if graph is None or search is None:
            return
        for index in search.find(typed)[:_BEST]:
            node = graph.nodes[index]
            message = NodeChosen(graph.node_id(node.name), jump=True)
            words = f"{node.target} {node.tensor or ''}"
            yield Command("node", node.name, partial(host.post_message, message), words=words)

    def prepare(self, seconds: float) -> bool:
        """Index the nodes of the shown graph for so long; True when all are."""
        search = self._search()
        return search is None or search.prepare(seconds)

    def _search(self) -> NodeSearch | None:
        graph = self._host.state.graph
        if graph is None:
            return None
        if self._index is None or self._index[0] is not graph:
            self._index = graph, NodeSearch(graph)
        return self._index[1]

    # ---------------------------------------------------------------- each kind

    def _of_pane(self, pane: Pane) -> Iterator[Command]:
        """What keys do in a pane, but for the cursor."""
        for offer in bound_keys.of_chain(pane.chain()):
            if not bound_keys.MOVES.issuperset(offer.keys):
                do = partial(self._host.do_in, pane, offer.node, offer.action)
                yield Command(pane.label, offer.words, do, keymap.spelled(",".join(offer.keys)))

    def repros(self) -> Iterator[Command]:
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
            yield Command("Repros", title, partial(self._host.post_message, message), words=words)

    def _views(self) -> Iterator[Command]:
        """The views of panes, and the stages of the frame."""
        for pane in self._host.body.panes.values():
            for view in pane.views:
                yield Command(pane.label, f"view {view}", partial(self._host.action_view, pane.ID, view))
        for index, graph in enumerate(queries.stages_of_frame(self._host.state)):
            yield Command("stage", graph_words(graph), partial(self._host.action_stage, index))
            if graph != self._host.state.graph_id:
                beside = partial(self._host.post_message, BesideRequest(stage=graph))
                yield Command("beside", f"{graph_words(graph)} beside this stage", beside)

        yield from self._compiler_stages()

    def _compiler_stages(self) -> Iterator[Command]:
        """The stages of other compilers."""
        state = self._host.state
        shown = queries.shown_stage(state)
        for index, stage in enumerate(queries.compiler_stages(state)):
            name = f"{stage.compiler}: {stage.name}"
            yield Command("stage", name, partial(self._host.action_compiler_stage, index), words=stage.language)
            if shown is not None and stage is not shown:
                beside = partial(self._host.post_message, BesideRequest(compiler_stage=stage.key))
                yield Command("beside", f"{name} beside {shown.name}", beside, words=stage.language)

    def _kernels(self) -> Iterator[Command]:
        shown = self._host.state.shown
        for kernel in shown.kernels if shown else ():
            do = partial(self._post, KernelChosen(kernel.frame, kernel.part, kernel.name), SourceRequest())
            words = f"{kernel.language}, {counted(len(kernel.nodes), 'node')}"
            yield Command("kernel", kernel.name, do, words=words)
            if kernel.source:
                beside = partial(self._host.post_message, BesideRequest(kernel=kernel))
                yield Command("beside", f"{kernel.name} beside this kernel", beside, words=words)

    def _findings(self) -> Iterator[Command]:
        pane = self._host.body.panes["findings"]
        if isinstance(pane, FindingsPane):
            files = queries.source_files(self._host.state)
            for key, text in pane.every_finding(files, _FINDINGS):
                yield Command("finding", text, self._row("findings", key))

    def _runs(self) -> Iterator[Command]:
        runs = queries.ended_runs(self._host.state)
        for run in runs:
            words = compared.run_words(run)
            yield Command("run", f"run {run.number} in the log", self._row("log", run.number), words=words)
            if run is not self._host.state.shown:
                beside = partial(self._host.post_message, BesideRequest(run=run.number))
                yield Command("beside", f"run {run.number} beside this run, at this stage", beside, words=words)
            if run is not runs[-1]:
                title = f"compare run {run.number} with run {runs[-1].number}"
                yield Command("run", title, self._row("switches", (run.number, runs[-1].number)), words=words)

    def _switches(self) -> Iterator[Command]:
        state = self._host.state
        for switch in state.history.switches:
            words = f"{value_words(switch, switch.default)} by default. {' '.join(switch.meaning.split())}"
            key = "switch", switch.place, switch.name
            yield Command("switch", switch.name, self._row("switches", key), words=words)

    def _targets(self) -> Iterator[Command]:
        state = self._host.state
        for name in registry.names():
            message = AcceleratorChosen(name)
            yield Command("accelerator", name, partial(self._host.post_message, message), words=choices.describe(name))
        for backend in choices.backends(state.history.worker, state.target.backend):
            do = partial(self._host.post_message, BackendChosen(backend.name))
            yield Command("backend", backend.name, do, words=backend.error or backend.about)

    def _files(self) -> Iterator[Command]:
        graph = self._host.state.graph
        files = dict.fromkeys(node.file for node in graph.nodes if node.file) if graph else {}
        for file in files:
            yield Command("file", file, partial(self._post, EditorRequest(file)), words="opens in $EDITOR")

    def _row(self, pane: PaneId, key: Hashable) -> Callable[[], object]:
        return partial(self._host.post_message, RowRequest(pane, key))

    def _post(self, *messages: Message) -> None:
        for message in messages:
            self._host.post_message(message)
