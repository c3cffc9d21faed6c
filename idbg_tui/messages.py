"""What can a user do in a pane? Panes post these; the app alone decides what follows."""

from textual.message import Message

from idbg.analysis.decisions.suggestions import Suggestion
from idbg.analysis.outline import ModuleHeading
from idbg.schema.code import Kernel
from idbg.schema.decisions.switches import Switch
from idbg.schema.graphs import NodeId, Part
from idbg.schema.kept import KeptRepro
from idbg.schema.programs import OptionValue
from idbg.schema.repros import OtherFailure, Sought
from idbg_tui.widgets.notices import CopyAsked as CopyAsked
from idbg_tui.widgets.notices import Flash as Flash


class NodeChosen(Message):
    """The user moved to a node. `jump` puts the place that was left on the jump list: for enter and links, not for a
    step of the cursor. With a `heading` the cursor is on that module, and the node is one of it."""

    def __init__(self, node: NodeId, *, jump: bool = False, heading: ModuleHeading | None = None) -> None:
        super().__init__()
        self.node = node
        self.jump = jump
        self.heading = heading


class KernelChosen(Message):
    """The user moved to a kernel, or to one launch of it: its nodes are marked in the graph.

    A launch is told by its `handle`, or by its `line` in the wrapper where Inductor gave none.
    """

    def __init__(self, frame: str, part: Part, name: str, handle: str = "", line: int = 0) -> None:
        super().__init__()
        self.frame = frame
        self.part = part
        self.name = name
        self.handle = handle
        self.line = line


class SourceAsked(Message):
    """The user wants to see the source of what they chose."""


class WhyAsked(Message):
    """The user wants to know what the compiler decided about a node, a kernel (frame, part, name) or a line (1-based)
    of their own file."""

    def __init__(
        self,
        *,
        node: NodeId | None = None,
        kernel: tuple[str, Part, str] | None = None,
        file: str = "",
        line: int = 0,
    ) -> None:
        super().__init__()
        self.node = node
        self.kernel = kernel
        self.file = file
        self.line = line


class TryAsked(Message):
    """The user wants to run again with what a decision suggests, and to be told what that changed."""

    def __init__(self, suggestion: Suggestion) -> None:
        super().__init__()
        self.suggestion = suggestion


class PairAsked(Message):
    """The user wants to know why two nodes or kernels are not one; without the `other` it is picked in a list."""

    def __init__(self, one: NodeId | Kernel, other: NodeId | Kernel | None = None) -> None:
        super().__init__()
        self.one = one
        self.other = other


class HintsChanged(Message):
    """The keys that a pane names in the footer are others now."""


class LineChosen(Message):
    """The user moved to a line (1-based) of their own Python file; the first node made there is selected. `jump`: they
    want to see it, and not only go on."""

    def __init__(self, file: str, line: int, *, jump: bool = False) -> None:
        super().__init__()
        self.file = file
        self.line = line
        self.jump = jump


class RulesChanged(Message):
    """The text of the rules was edited; it may be invalid. `origin` is "editor" or the path that it was read from."""

    def __init__(self, text: str, origin: str = "editor") -> None:
        super().__init__()
        self.text = text
        self.origin = origin


class SwitchAsked(Message):
    """The user sets a switch of torch's to a value, or turns it round (`flip`)."""

    def __init__(self, switch: Switch, value: OptionValue = None, *, flip: bool = False) -> None:
        super().__init__()
        self.switch = switch
        self.value = value
        self.flip = flip


class DefaultsAsked(Message):
    """The user wants every switch as torch has it by itself."""


class ReproAsked(Message):
    """The user wants a script that shows this again: one that is written and tried at once, or the `smallest`. `run` is
    the number of the run that it is of, 0 of the last."""

    def __init__(self, sought: Sought, *, smallest: bool = False, run: int = 0) -> None:
        super().__init__()
        self.sought = sought
        self.smallest = smallest
        self.run = run


class ScriptAsked(Message):
    """The user wants to read a repro's script, or that of an `other` failure that its search met."""

    def __init__(self, repro: KeptRepro, other: OtherFailure | None = None) -> None:
        super().__init__()
        self.repro = repro
        self.other = other


class DiffAsked(Message):
    """The user wants to look into the comparison: one output ("tensor", with its name) or stage ("stage"), why a side
    failed ("failure"), or the "chart"; or "steps": to train; or the comparison "before" or "after" the shown one."""

    def __init__(self, what: str, name: str = "") -> None:
        super().__init__()
        self.what = what
        self.name = name


class OwnerAsked(Message):
    """The user wants to know whose the error of this launch of the comparison's `kernels` is."""

    def __init__(self, launch: int) -> None:
        super().__init__()
        self.launch = launch


class BenchAsked(Message):
    """The user wants to look into a measurement: the key of its row."""

    def __init__(self, row: tuple[object, ...]) -> None:
        super().__init__()
        self.row = row


class TraceAsked(Message):
    """The user wants where the time of this run went as a file for Perfetto."""

    def __init__(self, run: int) -> None:
        super().__init__()
        self.run = run


class EditorAsked(Message):
    """Open a file in $EDITOR at a line (1-based). With `text` there is no file yet: the text is edited in a temporary
    one named `path`, and what comes back becomes the rules."""

    def __init__(self, path: str, line: int = 1, text: str | None = None) -> None:
        super().__init__()
        self.path = path
        self.line = line
        self.text = text


class LowerAsked(Message):
    """The user wants to see what the compilers made of a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel


class ActionAsked(Message):
    """The user wants what a key does that works everywhere: its `name` in keymap.KEYS."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
