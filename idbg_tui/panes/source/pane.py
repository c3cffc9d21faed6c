"""The pane Source: the code of the selected node, as kernel, wrapper, FX code and the user's Python."""

from collections.abc import Sequence
from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from idbg.format.glyphs import MARKS, plain
from idbg.schema.code import StageKey
from idbg_tui.messages import (
    ActionRequest,
    EditorRequest,
    Flash,
    KernelChosen,
    LineChosen,
    LowerRequest,
    NodeChosen,
    StageChosen,
    WhyRequest,
)
from idbg_tui.panes.base import Pane
from idbg_tui.panes.source import sheets
from idbg_tui.panes.source.sheets import Sheet, SheetView
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.clicks import choice
from idbg_tui.widgets.code import CodeView
from idbg_tui.widgets.lines import cut
from idbg_tui.widgets.search import Searching

_TWO = 140  # cells, from which two texts have room beside one another


class Caption(Widget):
    """A name and the facts about it: in one line where both have room, else in a line each. The name alone is cut."""

    DEFAULT_CSS = """
    Caption { height: auto; padding: 0 1; color: $foreground 60%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown, self._words = "", ""

    def show(self, name: str, words: str) -> None:
        """Show the name and the facts; words without a name take the lines that they need."""
        if (name, words) != (self._shown, self._words):
            height = self.get_content_height(self.size, self.size, self.size.width)
            self._shown, self._words = name, words
            self.refresh(layout=height != self.get_content_height(self.size, self.size, self.size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def _lines(self, width: int) -> list[Content]:
        width = max(width, 1)
        whole = Content("  ".join(part for part in (self._shown, self._words) if part))
        if whole.cell_length <= width or not self._shown:
            return whole.wrap(width)
        return [Content(cut(self._shown, width, MARKS["ellipsis"])), *Content(self._words).wrap(width)]

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.size.width))


class SheetSide(Vertical):
    """One text under its caption."""

    DEFAULT_CSS = """
    SheetSide { width: 1fr; }
    SheetSide > CodeView { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.view: SheetView = "FX"
        self.sheet = Sheet("")
        self.caption, self.code = Caption(), CodeView()

    def compose(self) -> ComposeResult:
        yield self.caption
        yield self.code

    def show(self, view: SheetView, sheet: Sheet) -> None:
        """Show a text; nothing moves unless it or its lines are others."""
        before, self.view, self.sheet = self.sheet, view, sheet
        self.caption.show(sheet.name, plain(sheet.caption))
        fresh = self.code.load(sheet.text, sheet.language, first=sheet.first)
        self.code.mark(sheet.marks)
        moved = fresh or (sheet.line, sheet.marks) != (before.line, before.marks)
        if sheet.line and moved and (fresh or self.code.line not in sheet.marks):
            self.code.go(sheet.line, top=sheet.top)


class SourcePane(Pane, Searching):
    """A text with the selected node's lines marked, in a wide pane another view of it beside it; moving in it selects
    what the line belongs to.
    """

    ID = "source"
    HINTS = (
        ("[ ]", "view"),
        (", .", "kernel"),
        ("o", "lowered"),
        ("W", "why"),
        ("/", "find"),
        ("y", "copy"),
        ("e", "edit"),
        ("E", "edit kernel"),
    )
    DEFAULT_CSS = """
    SourcePane { layout: horizontal; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "view(-1)", "the view before", show=False),
        Binding("right_square_bracket", "view(1)", "the next view", show=False),
        Binding("comma", "kernel(-1)", "the kernel before", show=False),
        Binding("full_stop", "kernel(1)", "the next kernel", show=False),
        Binding("o", "lower", "the kernel as its compilers made it: TTIR, PTX, assembly", show=False),
        Binding("W", "why", "why: every decision about the kernel or line", show=False),
        Binding("e", "edit", "open the line in $EDITOR", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._chosen: SheetView | None = None
        self._sides = SheetSide(), SheetSide()
        self._state: State | None = None
        self._seen: tuple[object, ...] = ()
        self._level = 0  # of what a kernel was lowered to; 0 is its source
        self._stage: StageKey | None = None  # of another compiler, that was chosen last

    def compose(self) -> ComposeResult:
        yield from self._sides

    def on_mount(self) -> None:
        self._sides[1].display = False

    def on_resize(self) -> None:
        """Two texts where both have room."""
        two = self.size.width >= _TWO
        if self._sides[1].display != two:
            self._sides[1].display = two
            self._seen = ()
            if self._state is not None:
                self.show(self._state)

    @property
    def _view(self) -> SheetView:
        return self._sides[0].view

    @property
    def _side(self) -> SheetSide:
        """The text that takes the keys."""
        return self._sides[1] if self._sides[1].code.has_focus else self._sides[0]

    def show(self, state: State) -> None:
        """Show the selected node's text; nothing moves unless what is selected, or the text, has changed."""
        self._state = state
        versions = state.versions
        seen = (self._chosen, versions.graphs, versions.selection, versions.run)
        if seen != self._seen and self.is_mounted:
            self._seen = seen
            self._show(state)

    def _show(self, state: State) -> None:
        if state.stage != self._stage:  # chosen, or given up, elsewhere: the view follows
            self._stage, self._chosen = state.stage, "stages" if state.stage else None
        view = self._chosen or sheets.default_view(state)
        self._sides[0].show(view, self._lowered(view, state) or sheets.make(view, state))
        self.set_title(self._views())
        if self._sides[1].display:
            beside: SheetView = "python" if view != "python" else sheets.default_view(state)
            self._sides[1].show(beside, sheets.make(beside, state))

    def _lowered(self, view: SheetView, state: State) -> Sheet | None:
        """What the shown kernel was lowered to, where that is wanted and known."""
        kernel = queries.shown_kernel(state)
        if view != "kernel" or not self._level or kernel is None:
            return None
        lowered = sheets.known_lowered(state, kernel)
        return sheets.lowered_sheet(kernel, lowered, min(self._level, len(lowered.texts))) if lowered else None

    def _views(self) -> Content:
        """The border's title: number and label, then the views, that of the shown text in brackets."""
        views = sheets.views(self._state)
        of_text = self._sides[0].sheet.instead or self._view
        shown = (choice(view, f"app.view('source', '{view}')", shown=view == of_text) for view in views)
        return Content.assemble(self.heading(), f" {MARKS['rule']} ", *shown)

    @property
    def views(self) -> Sequence[str]:
        return sheets.views(self._state)

    def choose_view(self, view: str) -> None:
        """Show another view of the same node."""
        self._chosen = cast(SheetView, view)
        if self._state is not None:
            self.show(self._state)

    def action_view(self, step: int) -> None:
        views = sheets.views(self._state)
        self.choose_view(views[(views.index(self._view) + step) % len(views)])

    def action_kernel(self, step: int) -> None:
        state = self._state
        if self._view == "stages":
            self.post_message(StageChosen(step=step))
            return
        kernels = sheets.kernels(state) if state else []
        if state is None or not kernels:
            self.post_message(Flash(self._why_no_kernel("this run has no kernels to go through")))
            return
        keys = [kernel.key for kernel in kernels]
        shown = queries.shown_kernel(state)
        key = shown.key if shown else None
        index = (keys.index(key) + step) % len(keys) if key in keys else 0
        kernel = kernels[index]
        self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name))

    def action_lower(self) -> None:
        """Go a level down in what the compilers made of the kernel; from the lowest back to its source. Of the stages
        of another compiler the next one.
        """
        state = self._state
        if self._view == "stages":
            self.post_message(StageChosen(step=1))
            return
        kernel = queries.shown_kernel(state) if state else None
        if state is None or kernel is None or not kernel.source:
            self.post_message(Flash(self.why_off("lower")))
            return
        lowered = sheets.known_lowered(state, kernel)
        if lowered is None:
            self._level = 1
            self.post_message(LowerRequest(kernel))
        else:
            self._level = (min(self._level, len(lowered.texts)) + 1) % (len(lowered.texts) + 1)
        self._seen = ()
        self.choose_view("kernel")

    def why_off(self, action: str) -> str:
        kernel = queries.shown_kernel(self._state) if self._state else None
        if action == "lower" and self._view == "stages":
            return ""
        if action == "lower" and (kernel is None or not kernel.source):
            return self._why_no_kernel("only a generated kernel was lowered here: , and . go to one")
        if action == "edit" and self._line_to_edit is None:
            return "this node has no line in your program to edit"
        return ""

    def _why_no_kernel(self, otherwise: str) -> str:
        """That no kernel was made yet is another thing than that there is none."""
        state = self._state
        unmade = state is not None and (state.shown is None or not state.shown.codes)
        return sheets.why_no_kernel(state) if state is not None and unmade else otherwise

    def action_why(self) -> None:
        """What was decided about the kernel, or the line of the user's, that is shown; else about the selected node."""
        state, kernel = self._state, queries.shown_kernel(self._state) if self._state else None
        if self._side.sheet.path:
            self.post_message(WhyRequest(file=self._side.sheet.path, line=self._side.code.line))
        elif self._side.view == "kernel" and kernel is not None:
            self.post_message(WhyRequest(kernel=kernel.key))
        elif state is not None and state.selected is not None:
            self.post_message(WhyRequest(node=state.selected))
        else:
            self.post_message(ActionRequest("why"))

    def action_edit(self) -> None:
        """Open the user's file: at the cursor if it is the text shown, else at the selected node's line."""
        line = self._line_to_edit
        self.post_message(EditorRequest(*line) if line is not None else Flash(self.why_off("edit")))

    @property
    def _line_to_edit(self) -> tuple[str, int] | None:
        node = self._state.node if self._state else None
        if self._side.sheet.path:
            return self._side.sheet.path, self._side.code.line
        return (node.file, node.line) if node is not None and node.file else None

    def on_code_view_moved(self, event: CodeView.Moved) -> None:
        event.stop()
        state = self._state
        side = next(side for side in self._sides if side.code is event.view)
        if state is None or event.line in side.sheet.marks:
            return
        place = sheets.place_at(side.view, state, event.line)
        if place is None:
            return
        if place.node is not None:
            self.post_message(NodeChosen(place.node))
        elif place.kernel is not None:
            kernel = place.kernel
            self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name))
        else:
            self.post_message(LineChosen(place.file, place.line))
