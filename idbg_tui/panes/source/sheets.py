"""Find the text that a view shows for the selected node, and which of its lines are the node's."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from idbg.analysis.kernel_definition import first_line
from idbg.analysis.output_code import is_cpp
from idbg.format import file_names
from idbg.format.amounts import counted, size
from idbg.format.kernels import language_of, resource_words
from idbg.schema.code import CompilerStage, Kernel, KernelCall, Lowered, OutputCode
from idbg.schema.graphs import Graph, GraphId, Node, NodeId
from idbg.session.stage_texts import text_of
from idbg.views import kernel_edits, kernel_times
from idbg.views.stages import ORIGINS
from idbg_tui import user_files
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State

SheetView = Literal["kernel", "wrapper", "FX", "stages", "python"]
VIEWS: tuple[SheetView, ...] = ("kernel", "wrapper", "FX", "stages", "python")

_LINES = 3  # of a kernel's calls, as many are named in the caption


@dataclass(frozen=True)
class Sheet:
    """A text to show. `line` is where to look, 0 for nowhere; `marks` are the lines of the selected node (1-based).

    `caption` has the facts about the text, or the sentence why there is none. `name` is what the text shows. `path` is
    set for a file that can be edited. `top` is set where what stands above `line` is of less use than what follows it.
    `instead` is the view whose text it is, where the requested one has none of its own.
    """

    caption: str
    name: str = ""
    text: str = ""
    language: str = ""
    line: int = 0
    marks: frozenset[int] = frozenset()
    first: int = 1
    path: str = ""
    top: bool = False
    instead: SheetView | None = None


@dataclass(frozen=True)
class LineOwner:
    """What a line of a sheet belongs to: a node, a kernel, or a line of the user's file."""

    node: NodeId | None = None
    kernel: Kernel | None = None
    file: str = ""
    line: int = 0


def default_view(state: State) -> SheetView:
    """The view until the user picks one: kernels where the run has any, else what another compiler made of it."""
    if state.stage is not None:
        return "stages"
    if state.graph is None and failing_line(state) is not None:
        return "python"
    if state.shown is not None and state.shown.codes:
        return "kernel"
    return "stages" if queries.compiler_stages(state) else "FX"


def views(state: State | None) -> tuple[SheetView, ...]:
    """The views that there are: that of other compilers' stages where the shown run has some."""
    has_stages = state is not None and state.shown is not None and bool(state.shown.stages)
    return VIEWS if has_stages else tuple(view for view in VIEWS if view != "stages")


def kernels(state: State) -> list[Kernel]:
    """The kernels to go through: those of the selected node if it has several, else all those of the run."""
    mine = list({kernel.key: kernel for kernel, _ in queries.launches_of_node(state)}.values())
    everything = state.shown.kernels if state.shown else []
    chosen = state.kernel
    if len(mine) > 1 and (chosen is None or chosen.key in (each.key for each in mine)):
        return mine
    return everything


def make(view: SheetView, state: State) -> Sheet:
    """The sheet of one view for what is selected."""
    return _MAKERS[view](state)


def place_at(view: SheetView, state: State, line: int) -> LineOwner | None:
    """What a line of the view's text belongs to, or None."""
    match view:
        case "wrapper":
            return _wrapper_place(state, line)
        case "FX":
            graph = state.graph
            name = _names_by_line(graph).get(line) if graph else None
            return LineOwner(node=graph.node_id(name)) if graph and name else None
        case "python":
            node, provenance = state.node, state.provenance
            if node is None or provenance is None or not provenance.nodes_at(node.file, line):
                return None
            return LineOwner(file=node.file, line=line)
        case "stages":
            stage = queries.shown_stage(state)
            found = queries.node_at(state, stage, line) if stage is not None else None
            return LineOwner(node=found) if found is not None else None
        case "kernel":
            return None


# ---------------------------------------------------------------- the views


def _kernel(state: State) -> Sheet:
    kernel = queries.shown_kernel(state)
    if kernel is None:
        return replace(_fx(state), name="", caption=why_no_kernel(state), instead="FX")
    if not kernel.source:
        wrapper = _wrapper(state)
        lines = _some(call.line for call in _calls(state, kernel))
        where = f"called at wrapper line {lines} · " if lines else ""
        return replace(wrapper, name=kernel.name, caption=f"{where}extern: no generated source", instead="wrapper")
    edit = queries.shown_edit(state, kernel)
    if edit is not None:
        line, failed = edit.line or first_line(edit.text), frozenset({edit.line} - {0})
        caption = f"version {edit.version} · {kernel_edits.brief(edit)}"
        return Sheet(caption, kernel.name, edit.text, kernel.source_language, line, failed, top=not failed)
    line, known = first_line(kernel.source), len(state.shown.edits_of(*kernel.key)) if state.shown else 0
    edited = f" · {counted(known, 'edited version')} in 6" if known else ""
    top = kernel.source_language != "cpp"  # the loops around its first computation are worth reading
    return Sheet(_about(state, kernel) + edited, kernel.name, kernel.source, kernel.source_language, line, top=top)


def _about(state: State, kernel: Kernel) -> str:
    facts = f"{language_of(kernel)} · {counted(len(kernel.nodes), 'node')} · {counted(len(kernel.calls), 'call')}"
    mine = [other.key for other, _ in queries.launches_of_node(state)]
    unique = list(dict.fromkeys(mine))
    key = kernel.key
    if len(unique) > 1 and key in unique:
        facts += f" · {unique.index(key) + 1} of this node's {len(unique)}"
    times = [time for call in _calls(state, kernel) if (time := queries.time_of(state, kernel, call)) is not None]
    return f"{kernel_times.sentence(times[0])} · {facts}" if times else facts


def _wrapper(state: State) -> Sheet:
    code = _code(state)
    if code is None:
        return Sheet(why_no_kernel(state))
    kernel = queries.shown_kernel(state)
    calls = _calls(state, kernel) if kernel else []
    lines = [call.line for call in calls] or ([kernel.line] if kernel and kernel.line else [])
    if kernel is None:
        name, caption = "Inductor's wrapper", "no call in it is known to compute this node"
    else:
        name = kernel.name
        caption = f"called at {_some(lines)}" if calls else f"defined at {_some(lines)}"
    caption += f" · {counted(len(code.kernels), 'kernel')}"
    language = "cpp" if is_cpp(code.text) else "python"
    return Sheet(caption, name, code.text, language, min(lines, default=0), frozenset(lines))


def _calls(state: State, kernel: Kernel) -> list[KernelCall]:
    """The launch that was chosen; else the calls that compute the selected node, or all of a kernel chosen by hand."""
    if state.launch is not None:
        return [state.launch]
    mine = [call for other, call in queries.launches_of_node(state) if other.key == kernel.key]
    return mine or list(kernel.calls)


def _code(state: State) -> OutputCode | None:
    run, graph = state.shown, state.graph_id
    if run is None:
        return None
    kernel = queries.shown_kernel(state)
    if kernel is not None:
        return run.codes.get((kernel.frame, kernel.part))
    if graph is None:
        return None
    mine = [code for (frame, _), code in run.codes.items() if frame == graph.frame]
    part = graph.part or graph.stage
    return next((code for code in mine if code.part == part), mine[0] if mine else None)


def _wrapper_place(state: State, line: int) -> LineOwner | None:
    code = _code(state)
    if code is None or state.shown is None:
        return None
    for kernel in code.kernels:
        for call in kernel.calls:
            if call.line == line:
                return _call_place(state, kernel, call)
        if kernel.line <= line <= kernel.line + kernel.source.count("\n") and kernel.source:
            return LineOwner(kernel=kernel)
    return None


def _call_place(state: State, kernel: Kernel, call: KernelCall) -> LineOwner:
    """The node of the shown graph that this call computes; the kernel where the graph has none."""
    provenance, shown = state.provenance, state.graph_id
    below = GraphId(kernel.frame, "post_grad", kernel.part)
    for name in call.nodes if provenance and shown else ():
        node = NodeId(below, name)
        assert provenance is not None and shown is not None
        same = [node] if below == shown else provenance.counterparts(node, shown)
        if same:
            return LineOwner(node=same[-1])
    return LineOwner(kernel=kernel)


def _fx(state: State) -> Sheet:
    graph = state.graph
    if graph is None:
        return Sheet(why_no_graph(state))
    if not graph.code:
        return Sheet(f"the {graph.id.stage} graph was captured without its text")
    lines = {node.code_line for node in _marked_nodes(state) if node.code_line}
    node = state.node
    facts = f"{graph.id}, {counted(len(graph.nodes), 'node')}"
    if node is None or not node.code_line:
        return Sheet(facts, "", graph.code, "python", 0, frozenset(lines))
    caption = f"at {node.code_line} · {facts}"
    return Sheet(caption, node.name, graph.code, "python", node.code_line, frozenset(lines))


def _stages(state: State) -> Sheet:
    stage = queries.shown_stage(state)
    if stage is None:
        return Sheet(why_no_graph(state) if state.graph is None else "no other compiler shows a stage of this frame")
    stages = queries.compiler_stages(state)
    text, note = text_of(stage, state.folder)
    lines = state.stage_lines.lines(stage, queries.nodes_in_stage(state, stage))
    words = [
        f"{stages.index(stage) + 1} of {len(stages)}",
        ORIGINS[stage.origin],
        note or size(stage.size),
        f"at {_some(lines, 1)}" if lines else _why_no_line(state, stage),
    ]
    name = f"{stage.compiler}: {stage.name}"
    return Sheet(" · ".join(filter(None, words)), name, text, stage.language, min(lines, default=0), lines)


def _some(lines: Iterable[int], most: int = _LINES) -> str:
    several = sorted(lines)
    return ", ".join(map(str, several[:most])) + (f" +{len(several) - most}" if len(several) > most else "")


def _why_no_line(state: State, stage: CompilerStage) -> str:
    if stage.binary or state.node is None:
        return ""
    return f"no line of it is known to be {state.node.name}" if stage.links else "its lines are not linked to nodes"


def _python(state: State) -> Sheet:
    node = state.node
    if node is None:
        failing = failing_line(state)
        return _users_file(state, *failing, "the run failed here") if failing else Sheet(why_no_graph(state))
    if not node.file:
        return Sheet(f"{node.name} ({node.role}) has no line in your program")
    return _users_file(state, node.file, node.line, node.module, node.code)


def _users_file(state: State, file: str, line: int, words: str, code: str = "") -> Sheet:
    """A file of the user's at a line; where it cannot be read, the line as it was recorded."""
    text, note = user_files.read(file, state.shown.started if state.shown else 0.0)
    if not text:
        caption = f"{note}; this line was kept with the run" if code else note
        return Sheet(caption, file, code, "python", line, frozenset({line}), first=line or 1)
    lines = frozenset(other.line for other in _marked_nodes(state) if other.file == file) or frozenset({line} - {0})
    caption = " · ".join(part for part in (words, note) if part)
    return Sheet(
        caption, file_names.place(file, line, queries.source_files(state)), text, "python", line, lines, path=file
    )


def failing_line(state: State) -> tuple[str, int] | None:
    """The user's line at which the last run failed; None where it did not, or the line is not known."""
    failure = state.run.failure or state.run.cause if state.run is not None else None
    return (failure.file, failure.line) if failure is not None and failure.file else None


_MAKERS: dict[SheetView, Callable[[State], Sheet]] = {
    "kernel": _kernel,
    "wrapper": _wrapper,
    "FX": _fx,
    "stages": _stages,
    "python": _python,
}


def _marked_nodes(state: State) -> Iterator[Node]:
    """The selected node, and with a kernel chosen by hand all the nodes that it computes."""
    graph, node = state.graph, state.node
    names = queries.marked_nodes(state) if state.kernel else frozenset()
    for other in graph.nodes if graph else ():
        if other is node or other.name in names:
            yield other


def _names_by_line(graph: Graph) -> dict[int, str]:
    return {node.code_line: node.name for node in graph.nodes if node.code_line}


# ---------------------------------------------------------------- what a kernel was lowered to


def known_lowered(state: State, kernel: Kernel) -> Lowered | None:
    """What the compilers made of the kernel; None before the worker has answered."""
    return state.shown.lowered.get(kernel.key) if state.shown else None


def lowered_sheet(kernel: Kernel, lowered: Lowered, level: int) -> Sheet:
    """What a kernel was lowered to at this level: 1 is just below its source, `len(lowered.texts)` the lowest."""
    if not lowered.texts:
        return Sheet("the compilers left nothing of it in their caches", kernel.name)
    text = lowered.texts[level - 1]
    words = [text.name, f"{level} of {len(lowered.texts)}", *resource_words(lowered.resources)]
    return Sheet(" · ".join(words), kernel.name, text.text, text.language, 1, top=True)


# ---------------------------------------------------------------- why there is nothing


def why_no_kernel(state: State) -> str:
    """Why no kernel is shown for the selected node: what has none, or what is not known yet."""
    run, node = state.shown, state.node
    if run is None:
        return why_no_graph(state)
    if not run.codes:
        if run.ended is None:
            return "no kernels yet: code is generated at the end of the compile"
        if run.failure:
            return "no kernels: the compile stopped before code was generated"
        return f"no kernels: the {run.backend} backend generated none"
    if node is None:
        return "no node is selected"
    if node.op == "placeholder":
        return f"{node.name} is an input of the graph ({node.role}): no kernel computes it"
    if node.op == "output":
        return "the output returns what the others computed: it has no kernel of its own"
    generated = [kernel for kernel in run.kernels if kernel.language != "extern"]
    if generated and not any(kernel.nodes for kernel in generated):
        return "the generated code does not name the nodes of its kernels: set INDUCTOR_PROVENANCE=1 beside TORCH_TRACE"
    why = "a view, folded away, or fused without a trace"
    return f"no kernel is known to compute {node.name}: {why}; ] shows the other views"
