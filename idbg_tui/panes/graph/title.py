"""The title of the graph browser, and what it says where there is no graph."""

from collections.abc import Iterator
from typing import Literal

from textual.content import Content

from idbg.analysis.decisions.frames import spoken
from idbg.format.failures import headline
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.verdicts import verdict_words
from idbg.schema.graphs import Graph, GraphId
from idbg.schema.programs import Failure
from idbg.views.frame_graphs import graph_words
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.clicks import choice

Below = Literal["", "names", "count"]
_SHORT = {"dynamo": "dyn", "forward": "fwd", "backward": "bwd", "inference": "inf", "post-grad": "post"}
_SHORT |= {"post-fwd": "p-fwd", "post-bwd": "p-bwd"}


def titles(state: State, label: str, filtered: str) -> Iterator[Content]:
    """The title, longest first. `label` is the pane's, `filtered` what a filter leaves: "12 of 240  /conv", or "".

    Stages, the shown one in brackets, then how many nodes, which frame, and which run if it is not the last.
    """
    if state.graph is None:
        yield Content(label)
        return
    if queries.compiler_stages(state):
        yield _title(state, state.graph, label, filtered, between="  ", below="names")
        yield _title(state, state.graph, label, filtered, between="  ", below="count")
        yield _title(state, state.graph, label, filtered, between="  ", terse=True, below="count")
    yield _title(state, state.graph, label, filtered, between=f" {MARKS['rule']} ", named=True)
    yield _title(state, state.graph, label, filtered, between=f" {MARKS['rule']} ")
    yield _title(state, state.graph, label, filtered, between="  ")
    yield _title(state, state.graph, label, filtered, between="  ", short=True)
    yield _title(state, state.graph, label, filtered, between=" ", short=True, bare=True)
    yield _title(state, state.graph, label, filtered, between="  ", terse=True)


def list_title(words: str, state: State) -> str:
    """The title of a list about the shown graph, which names its stage."""
    return words + (f" {MARKS['rule']} {graph_words(state.graph.id)}" if state.graph else "")


def _title(
    state: State,
    graph: Graph,
    label: str,
    filtered: str,
    *,
    between: str,
    terse: bool = False,
    short: bool = False,
    bare: bool = False,
    named: bool = False,
    below: Below = "",
) -> Content:
    """A `short` one has short names of the stages that are not shown, a `bare` one no more than a number beside them,
    and a `terse` one names the shown stage only, and its place among the others. A `named` one names the frame's
    function. `below`: how other compilers' are.
    """
    gap = (between, "dim")
    pieces: list[tuple[str, str] | Content] = [(label, ""), gap]
    all_stages = queries.stages_of_frame(state)
    for stage in [graph.id] if terse else all_stages:
        name = _stage_name(stage, alone=sum(one.stage == "post_grad" for one in all_stages) < 2)
        name = _SHORT.get(name, name) if short and stage != graph.id else name
        pieces.append(choice(name, f"app.stage({all_stages.index(stage)})", shown=stage == graph.id))
    if terse and len(all_stages) > 1:
        pieces.append((f" {all_stages.index(graph.id) + 1} of {len(all_stages)}", "not bold dim"))
    pieces += _below(state, below)
    nodes = filtered or f"{len(graph.nodes):,}{'' if bare else ' nodes'}"
    run = state.run
    if run is not None and "backward" in (graph.id.stage, graph.id.part) and graph.id.frame in run.backwards_idle:
        nodes += ", never run"
    frames = queries.frames(state)
    if filtered or not bare or len(frames) < 2:
        pieces += [gap, (nodes, "not bold")]
    if len(frames) > 1:
        known = state.shown.frames.get(graph.id.frame) if named and state.shown is not None else None
        of = f" {spoken(known)}" if known is not None else ""
        name = "frame " if terse or short else f"frame {graph.id.frame}{of}, "
        pieces += [gap, (f"{name}{frames.index(graph.id.frame) + 1} of {len(frames)}", "not bold")]
    if state.shown is not None and run is not state.shown:
        pieces += [gap, (f"run {state.shown.number}", "$warning")]
    return Content.assemble(*pieces)


def _below(state: State, how: Below) -> Iterator[tuple[str, str] | Content]:
    """The stages of other compilers, under their compilers' names; or the chosen one, and how many there are."""
    stages, compiler = queries.compiler_stages(state), ""
    chosen = next((index for index, stage in enumerate(stages) if stage.key == state.stage), -1)
    if how == "count":
        name = f"{stages[chosen].name} {chosen + 1} of {len(stages)}" if chosen >= 0 else f"{len(stages)} stages"
        yield f" {stages[chosen].compiler} ", "not bold dim"
        yield choice(name, f"app.compiler_stage({max(chosen, 0)})", shown=chosen >= 0)
        return
    for index, stage in enumerate(stages if how else ()):
        if stage.compiler != compiler:
            compiler = stage.compiler
            yield f" {compiler} ", "not bold dim"
        yield choice(stage.name, f"app.compiler_stage({index})", shown=index == chosen)


def _stage_name(graph: GraphId, *, alone: bool) -> str:
    if graph.stage != "post_grad":
        return graph.stage
    return "post-grad" if alone else {"forward": "post-fwd", "backward": "post-bwd"}.get(graph.part, "post-grad")


def why_empty(state: State) -> str:
    """Why there is no graph, in the lines that there is room for where one would be."""
    run = state.run
    if run is not None and run.failure is not None:
        return _why_failed(run.failure)
    if state.beginning or (not state.live and run is None):
        return why_no_graph(state)
    if state.running:
        return "compiling: each graph is shown as soon as it is captured"
    if run is not None and run.ended is not None and run.program.is_trace:
        return f"{verdict_words(run)}: what was left out is in Log"
    if run is not None and run.ended is not None:
        return "the program ran, and torch.compile compiled nothing in it"
    return "no graph yet: r compiles the program"


def _why_failed(failure: Failure) -> str:
    """What went wrong, where, and what to do."""
    if failure.kind == "cancelled":
        return "cancelled before a graph was captured: r runs again"
    line = headline(failure)
    place = f"{line.place}\n" if line.place else ""
    hint = f"{failure.hint}\n" if failure.hint else ""
    return f"{VERDICT_SIGNS['failed']} {line.what}\n{line.cause}\n{place}\n{hint}7 Log has the rest, r tries again"
