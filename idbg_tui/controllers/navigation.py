"""Move the selection: by keys, rows and names."""

from collections import deque
from functools import partial

from textual.timer import Timer

from idbg_tui.controllers.context import Actions, Context, Reasons
from idbg_tui.messages import KernelChosen, LineChosen, NodeChosen, NumberRequest, RowRequest, StageChosen
from idbg_tui.panes.base import Pane
from idbg_tui.state import navigation, queries
from idbg_tui.state.jumps import Relation
from idbg_tui.state.sentences import why_no_graph, why_no_node
from idbg_tui.status_bar import flashes
from idbg_tui.widgets.numbered import Numbered

FOLLOW = 0.05  # seconds after the last step of the cursor, when the other panes follow it
_NEXT = 0.001  # seconds between two of them: a key that came meanwhile is first

_NO_NEIGHBOUR: dict[Relation, str] = {
    "input": "this node has no inputs",
    "user": "nothing in this graph uses this node",
}


class Navigation:
    """Selects nodes, kernels, stages and frames, and flashes why where a key leads nowhere."""

    def __init__(self, context: Context) -> None:
        self._context, self._state, self._body = context, context.state, context.body
        self._following: Timer | None = None

    def actions(self) -> Actions:
        """What the keys do."""
        return {
            "stage_before": partial(self._step_stage, -1),
            "stage_after": partial(self._step_stage, 1),
            "frame_before": partial(self._step_frame, -1),
            "frame_after": partial(self._step_frame, 1),
            "input": partial(self._walk, "input", 0),
            "other_input": partial(self._walk, "input", 1),
            "user": partial(self._walk, "user", 0),
            "other_user": partial(self._walk, "user", 1),
            "broken": partial(self._step_broken, 1),
            "broken_before": partial(self._step_broken, -1),
            "back": partial(self.jump, back=True),
            "forward": partial(self.jump, back=False),
        }

    def reasons(self) -> Reasons:
        return {"input": partial(self._why_no_step, "input"), "user": partial(self._why_no_step, "user")}

    def _why_no_step(self, relation: Relation) -> str:
        graph, node = self._state.graph, self._state.node
        if graph is None or node is None:
            return why_no_node(self._state)
        near = node.inputs if relation == "input" else graph.users.get(node.name, ())
        return "" if near else _NO_NEIGHBOUR[relation]

    # ---------------------------------------------------------------- keys

    def _step_stage(self, step: int) -> None:
        self._moved(navigation.step_stage(self._state, step), "there is no further stage of this frame")

    def _step_frame(self, step: int) -> None:
        self._moved(navigation.step_frame(self._state, step), "there is no further frame")

    def _walk(self, relation: Relation, turn: int) -> None:
        self._moved(self._state.walk(relation, turn), _NO_NEIGHBOUR[relation])

    def _step_broken(self, step: int) -> None:
        before = self._state.graph_id
        so_far = " that was captured so far" if self._state.running else ""
        self._moved(navigation.step_broken(self._state, step), f"no node of any graph{so_far} breaks a rule")
        if self._state.graph_id != before:
            self._context.flash(flashes.arrived(self._state))

    def jump(self, *, back: bool) -> None:
        """Go back to where the last jump began, or forward again."""
        self._moved(self._state.step_jump(back=back), f"no place to go {'back' if back else 'forward'} to")

    def _moved(self, moved: bool, why_not: str) -> None:
        if moved:
            self._context.show()
        elif self._state.graph is None:
            self._context.flash(why_no_graph(self._state))
        else:
            self._context.flash(why_not)

    # ---------------------------------------------------------------- what panes and the palette choose

    def choose_node(self, chosen: NodeChosen) -> None:
        """Select a node of the shown run."""
        known = self._state.choose(chosen.node, jump=chosen.jump, heading=chosen.heading)
        if not known:
            self._context.flash(f"the graphs that are shown have no node {chosen.node.name}")
        self._show_selection()
        if known and chosen.jump:
            self._show_node()

    def choose_kernel(self, chosen: KernelChosen) -> None:
        """Mark the nodes of a kernel, or of one launch of it."""
        launch = chosen.handle, chosen.line
        if not navigation.choose_kernel(self._state, chosen.frame, chosen.part, chosen.name, *launch):
            name = chosen.handle or chosen.name
            self._context.flash(f"the code that is shown does not launch {name}: r compiles again")
        self._context.show()

    def choose_line(self, chosen: LineChosen) -> None:
        """Select the first node that was made at a line of the user's."""
        known = navigation.choose_line(self._state, chosen.file, chosen.line)
        self._show_selection()
        if chosen.jump and known:
            self._show_node()
        elif chosen.jump:
            self._context.flash("no node of the shown run was made at that line")

    def go_to_stage(self, index: int) -> None:
        """Show one of the frame's stages."""
        graphs = queries.stages_of_frame(self._state)
        if index < len(graphs) and self._state.choose_graph(graphs[index]):
            self._context.show()

    def choose_stage(self, chosen: StageChosen) -> None:
        """Show a stage of another compiler."""
        if chosen.step:
            moved = navigation.step_compiler_stage(self._state, chosen.step)
        else:
            moved = self._state.choose_stage(chosen.key)
        self._moved(moved, "the shown run has no such stage of another compiler")

    def go_to_compiler_stage(self, index: int) -> None:
        """Show one of the other compilers' stages of the frame, in the pane Source."""
        stages = queries.compiler_stages(self._state)
        if index < len(stages):
            self.choose_stage(StageChosen(stages[index].key))
            self._body.go("source")

    def go_to_row(self, request: RowRequest) -> None:
        """Go to a row of a pane, whatever hides it."""
        pane = next(pane for name, pane in self._body.panes.items() if name == request.pane)
        self._body.go(pane.ID)
        if not pane.reveal(request.key):
            self._context.flash(f"{pane.label} has no row of it now")

    def go_to_number(self, request: NumberRequest) -> None:
        """Go to a row of the current pane by its number."""
        pane = self._body.panes[self._body.current]
        rows = pane.focus_target()
        if not isinstance(rows, Numbered):
            self._context.flash(f"rows of {pane.label} have no numbers")
        elif request.number == "$":
            rows.go_to(rows.last_number)
        else:
            start = rows.number if request.number[0] in "+-" else 0
            rows.go_to(max(1, min(start + int(request.number), rows.last_number)))

    def _show_node(self) -> None:
        """Where one pane has the screen: go where the node that was chosen can be seen."""
        if self._body.alone and self._body.current not in ("graph", "node"):
            self._body.go("graph")

    def _show_selection(self) -> None:
        """Show a step of the cursor where it was made at once, and in the other panes when it rests."""
        self._body.panes[self._body.current].show(self._state)
        if self._following is not None:
            self._following.stop()
        followers = deque(pane for pane in self._body.panes.values() if pane.display)
        self._following = self._context.app.set_timer(FOLLOW, partial(self._follow, followers))

    def catch_up(self) -> None:
        """Show the selection in the current pane, if that has yet to follow: the next key may be about it."""
        if self._following is not None:
            self._body.panes[self._body.current].show(self._state)

    def _follow(self, followers: deque[Pane]) -> None:
        """Show the selection in one pane after the other: a key that comes meanwhile is answered between two."""
        if not followers:
            self._following = None
            self._context.show()
            return
        followers.popleft().show(self._state)
        self._following = self._context.app.set_timer(_NEXT, partial(self._follow, followers))
