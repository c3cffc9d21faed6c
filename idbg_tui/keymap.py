"""The keys that work everywhere: data for the bindings, the footer, the help and the settings file.

Panes add keys of their own (see their BINDINGS); where a pane has the focus, its keys come first. A key means the same
in every pane, so that none that edits or deletes is harmless elsewhere (tests/screen/tui/test_one_meaning_a_key.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from textual.binding import Binding, BindingType

from idbg.format.spelling import did_you_mean
from idbg.schema.errors import SettingsError


@dataclass(frozen=True)
class Key:
    """One action of the program. `name` is what the settings file calls it: [keys] run = "R"; the app knows by it what
    to do.
    """

    name: str
    keys: str
    words: str
    group: str
    priority: bool = False

    @property
    def leads_to_pane(self) -> bool:
        """Whether the words are a pane's label, and no sentence."""
        return self.name.removeprefix("pane_").isdigit()


KEYS: tuple[Key, ...] = (
    Key("run", "r", "compile again", "Compile"),
    Key("cancel", "c", "cancel the compile; stop measuring, or the search for a smaller script", "Compile"),
    Key("strict", "semicolon", "strict or warning: whether a violation stops the compile", "Compile"),
    Key("backend", "b", "choose the backend", "Compile"),
    Key("accelerator", "a", "choose the accelerator", "Compile"),
    Key("compare", "d", "compare the outputs with eager and float64", "Compile"),
    Key("compare_kernels", "D", "compare each stage and kernel too: where the numbers go wrong", "Compile"),
    Key("pass_diff", "p", "before and after: the graph around the pass that made the numbers wrong", "Compile"),
    Key("repro", "x", "write a repro of what the cursor is on, and try it once", "Repros"),
    Key("minify", "X", "minify it: search for the smallest script that still fails so", "Repros"),
    Key("measure", "B", "measure the program: eager, inductor, the target's backend", "Measure"),
    Key("time_kernels", "R", "time each kernel: its share, and what bounds it (roofline)", "Measure"),
    Key("measured_backends", "T", "choose on which backends it is measured", "Measure"),
    Key("charts", "C", "charts of what was measured now and before", "Measure"),
    Key("stage_before", "left_square_bracket", "the stage before this; in a pane with views, the view", "Graph"),
    Key("stage_after", "right_square_bracket", "the next stage, or view", "Graph"),
    Key("frame_before", "left_curly_bracket", "the frame before", "Graph"),
    Key("frame_after", "right_curly_bracket", "the next frame", "Graph"),
    Key("input", "i", "go to the node's first input", "Graph"),
    Key("other_input", "I", "go on to the next input", "Graph"),
    Key("user", "u", "go to the node's first user", "Graph"),
    Key("other_user", "U", "go on to the next user", "Graph"),
    Key("broken", "v", "the next node that breaks a rule", "Graph"),
    Key("broken_before", "V", "the node before that breaks a rule", "Graph"),
    Key("memory", "M", "the peak of memory: what is alive then", "Graph"),
    Key("partitions", "P", "the partitions: what runs on the host, and what crosses", "Graph"),
    Key("why", "W", "why: every decision of the compiler about the node, kernel or line", "Graph"),
    Key("why_not", "w", "why are these not one kernel? the selected node and one that you pick", "Graph"),
    Key("back", "backspace,ctrl+o", "back to where you jumped from", "Graph"),
    Key("forward", "F,ctrl+i", "forward again", "Graph"),
    Key("mark", "m", "set a mark: the next key is its letter", "Graph"),
    Key("go_to_mark", "apostrophe", "go to a mark: the next key is its letter; ' again goes back", "Graph"),
    Key("copy", "y", "copy what the cursor is on", "Files"),
    Key("edit", "e", "open the node's line in $EDITOR", "Files"),
    Key("edit_kernel", "E", "edit the kernel's source in $EDITOR, and run it in its place: numbers and times", "Files"),
    Key("report", "O", "write a file: the session as one page (report.html); a chart, an error map, a trace", "Files"),
    Key("pane_1", "1", "Graph", "Panes"),
    Key("pane_2", "2", "Source", "Panes"),
    Key("pane_3", "3", "Node", "Panes"),
    Key("pane_4", "4", "Findings", "Panes"),
    Key("pane_5", "5,K", "KernelDiff", "Panes"),
    Key("pane_6", "6", "Benchmarks", "Panes"),
    Key("pane_7", "7", "Log", "Panes"),
    Key("pane_8", "8", "Rules", "Panes"),
    Key("pane_9", "9", "Repros", "Panes"),
    Key("pane_10", "0", "Why", "Panes"),
    Key("pane_11", "minus", "Switches", "Panes"),
    Key("pane_12", "number_sign", "Processes", "Panes"),
    Key("main_process", "Q", "back from a process to the main one", "Panes"),
    Key("next_pane", "tab", "the next pane", "Panes"),
    Key("pane_before", "shift+tab", "the pane before", "Panes"),
    Key("zoom", "z", "one pane on the whole screen, and back", "Panes"),
    Key("grow", "greater_than_sign", "make the pane larger", "Panes"),
    Key("shrink", "less_than_sign", "make the pane smaller", "Panes"),
    Key("even", "equals_sign", "the sizes as they were at first", "Panes"),
    Key("tour_skip", "ctrl+n,f8", "on the tour: the next step", "Tour"),
    Key("tour_back", "ctrl+r,f7", "on the tour: the step before", "Tour"),
    Key("tour_leave", "ctrl+t,f9", "on the tour: leave it", "Tour"),
    Key("help", "question_mark,f1", "help: every key", "Program"),
    Key(
        "menu",
        "exclamation_mark,shift+f10,menu",
        "what can be done with what the cursor is on; also the right button",
        "Program",
    ),
    Key(
        "palette",
        "ctrl+p,colon",
        "every action, node, kernel, finding, file, switch, run and theme by name; :42 goes to row 42 (a count)",
        "Program",
    ),
    Key("suspend", "ctrl+z", "suspend: `fg` brings it back", "Program"),
    Key("redraw", "ctrl+l", "draw the whole screen anew", "Program"),
    Key("quit", "q,ctrl+q", "quit", "Program"),
    Key("interrupt", "ctrl+c", "cancel the compile; when idle, quit", "Program", priority=True),
)

MOVING: tuple[tuple[str, str], ...] = (
    ("↑ ↓ j k", "move"),
    ("g G", "top, bottom"),
    (":42 :+5 :-5", "a count: go to row 42, five rows down, five up (5j in vim; a digit alone goes to a pane)"),
    ("^d ^u", "half a page"),
    ("PgUp PgDn", "a page"),
    ("enter", "go there"),
    ("/", "filter or find"),
    ("n N", "next and previous match"),
    ("\\", "show texts whole that are cut, or cut them"),
    ("h l", "fold, unfold"),
    ("f", "fold or unfold all"),
    ("s", "sort the table by a column, then the other way round; a click on its head does too"),
    ("esc", "clear the filter, leave the editor"),
)

_SPELLED = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "question_mark": "?",
    "plus": "+",
    "minus": "-",
    "number_sign": "#",
    "equals_sign": "=",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "underscore": "_",
    "slash": "/",
    "backspace": "⌫",
    "exclamation_mark": "!",
    "comma": ",",
    "full_stop": ".",
    "semicolon": ";",
    "colon": ":",
    "apostrophe": "'",
    "at": "@",
    "asterisk": "*",
    "backslash": "\\",
    "vertical_line": "|",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "escape": "esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}


def bindings() -> list[BindingType]:
    """The keys of KEYS as the app's bindings, each with its name as its id, which is what a keymap goes by."""
    return [
        Binding(key.keys, f"do('{key.name}')", key.words, show=False, id=key.name, priority=key.priority)
        for key in KEYS
    ]


def spelled(keys: str) -> str:
    """How a key reads on the screen: "ctrl+p" is ^p, "left_square_bracket" is [."""
    return " ".join(map(_spelled, keys.split(",")))


def _spelled(key: str) -> str:
    before, plus, last = key.rpartition("+")
    return ("^" if before == "ctrl" else before + plus) + _SPELLED.get(last, last)


def in_force(overrides: Mapping[str, str]) -> dict[str, str]:
    """Action name -> its keys, with the settings file's own. Raises SettingsError for a name that is no action."""
    known = {key.name: key.keys for key in KEYS}
    for name in overrides:
        if name not in known:
            hint = did_you_mean(name, known, f"there are: {', '.join(known)}")
            raise SettingsError(f"[keys] {name}: there is no such action", hint=hint)
    return known | dict(overrides)
