"""Messages that panes post for what the user does; the app handles them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass

from textual.message import Message

from idbg.analysis.decisions.suggestions import Suggestion
from idbg.analysis.outline import ModuleHeading
from idbg.schema.code import Kernel, StageKey
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.programs import OptionValue, Switch
from idbg.schema.repros import OtherFailure, Sought
from idbg.schema.session_repros import SessionRepro
from idbg_tui.widgets.line_pairs import LinePairs, PairedText
from idbg_tui.widgets.notices import CopyRequest as CopyRequest
from idbg_tui.widgets.notices import Flash as Flash


@dataclass
class NodeChosen(Message):
    """The user moved to a node. `jump` puts the place that was left on the jump list: for enter and links, not for a
    step of the cursor. With a `heading` the cursor is on that module, and the node is one of it."""

    node: NodeId
    _: KW_ONLY
    jump: bool = False
    heading: ModuleHeading | None = None


@dataclass
class KernelChosen(Message):
    """The user moved to a kernel, or to one launch of it: its nodes are marked in the graph.

    A launch is identified by its `handle`, or by its `line` in the wrapper where Inductor gave none.
    """

    frame: str
    part: Part
    name: str
    handle: str = ""
    line: int = 0


class SourceRequest(Message):
    """The user wants to see the source of what they chose."""


@dataclass
class WhyRequest(Message):
    """The user wants to know what the compiler decided about a node, a kernel (frame, part, name) or a line (1-based)
    of their own file."""

    _: KW_ONLY
    node: NodeId | None = None
    kernel: tuple[str, Part, str] | None = None
    file: str = ""
    line: int = 0


@dataclass
class DecisionRequest(Message):
    """The user wants to see the row with this key in a view of the pane Why, named as in `idbg.views`."""

    view: str
    key: Hashable


@dataclass
class RowRequest(Message):
    """The user wants to see the row with this key in a pane, named as in `PaneId`."""

    pane: str
    key: Hashable


@dataclass
class BesideRequest(Message):
    """The user wants to see something beside what is shown: another stage of the frame, the same stage of a run, a
    kernel, or a stage of another compiler.
    """

    stage: GraphId | None = None
    run: int = 0
    kernel: Kernel | None = None
    compiler_stage: StageKey | None = None


@dataclass
class StageChosen(Message):
    """The user chose a stage of another compiler: `key`, or so many after the shown one."""

    key: StageKey | None = None
    step: int = 0


@dataclass
class SidesRequest(Message):
    """The user wants to see two texts side by side, or one alone: `pair` finds which of their lines belong together;
    None: none do. `line`: where to begin in the first.
    """

    texts: Sequence[PairedText]
    pair: Callable[[], LinePairs] | None = None
    line: int = 0


@dataclass
class NumberRequest(Message):
    """The user wants to go to a row of the current pane, by its number from 1: "42", "+5" or "-5" from here, "$"."""

    number: str


@dataclass
class AcceleratorChosen(Message):
    """The user chose an accelerator by its name."""

    name: str


@dataclass
class BackendChosen(Message):
    """The user chose a backend by its name."""

    name: str


@dataclass
class TryRequest(Message):
    """The user wants to run again with what a decision suggests, and to see what that changed."""

    suggestion: Suggestion


@dataclass
class PairRequest(Message):
    """The user wants to know why two nodes or kernels are not one; without the `other` it is picked in a list."""

    one: NodeId | Kernel
    other: NodeId | Kernel | None = None


class HintsChanged(Message):
    """The keys that a pane names in the footer are others now."""


@dataclass
class LineChosen(Message):
    """The user moved to a line (1-based) of their own Python file; the first node made there is selected. `jump`: they
    want to see it, and not only go on."""

    file: str
    line: int
    _: KW_ONLY
    jump: bool = False


@dataclass
class RulesChanged(Message):
    """The text of the rules was edited; it may be invalid. `origin` is "editor" or the path that it was read from."""

    text: str
    origin: str = "editor"


@dataclass
class SwitchRequest(Message):
    """The user sets a switch of torch's to a value, or turns it round (`flip`)."""

    switch: Switch
    value: OptionValue = None
    _: KW_ONLY
    flip: bool = False


class SwitchUndo(Message):
    """The user takes the last change of switches back."""


class DefaultsRequest(Message):
    """The user wants every switch as torch has it by itself."""


@dataclass
class ReproRequest(Message):
    """The user wants a script that shows this again: one that is written and tried at once, or the `smallest`. `run` is
    the number of the run that it is of, 0 of the last."""

    sought: Sought
    _: KW_ONLY
    smallest: bool = False
    run: int = 0


@dataclass
class ScriptRequest(Message):
    """The user wants to read a repro's script, or that of an `other` failure that its search met."""

    repro: SessionRepro
    other: OtherFailure | None = None


@dataclass
class DiffRequest(Message):
    """The user wants to look into the comparison: one output ("tensor", with its name), why a side
    failed ("failure"), or the "chart"; or "steps": to train; or the comparison "before" or "after" the shown one."""

    what: str
    name: str = ""


@dataclass
class AttributionRequest(Message):
    """The user wants to know whose the error of this launch of the comparison's `kernels` is."""

    launch: int


@dataclass
class BenchRequest(Message):
    """The user wants to look into a measurement: the key of its row."""

    row: tuple[object, ...]


@dataclass
class TraceRequest(Message):
    """The user wants where the time of this run went as a file for Perfetto."""

    run: int


@dataclass
class ProcessChosen(Message):
    """The user wants to see a process of the session on the whole screen; "" is the main one."""

    name: str


@dataclass
class EditorRequest(Message):
    """Open a file in $EDITOR at a line (1-based). With `text` there is no file yet: the text is edited in a temporary
    one named `path`, and what comes back becomes the rules."""

    path: str
    line: int = 1
    text: str | None = None


@dataclass
class LowerRequest(Message):
    """The user wants to see what the compilers made of a kernel."""

    kernel: Kernel


@dataclass
class VersionChosen(Message):
    """Show this version of the source of a run's kernel; 0 is the original."""

    run: int
    kernel: tuple[str, Part, str]
    version: int


@dataclass
class ActionRequest(Message):
    """The user wants what a key does that works everywhere: its `name` in keymap.KEYS."""

    name: str
