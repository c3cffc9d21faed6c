"""The steps of the tour: their texts, and when each is done.

In the words, {name} is the key of an action of keymap.KEYS as it is in force, and `text` is emphasized as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from idbg.schema.graphs import NodeId
from idbg.schema.violations import Severity
from idbg_tui.panes.base import PaneId
from idbg_tui.state import queries
from idbg_tui.state.state import State


@dataclass(frozen=True)
class Before:
    """What was so when a step began: only what comes after it does the step."""

    pane: PaneId
    selected: NodeId | None = None
    edits: int = 0
    counts: dict[Severity, int] = field(default_factory=dict)
    last_run: int = 0
    repros: int = 0

    @classmethod
    def of(cls, state: State, pane: PaneId) -> "Before":
        """As it is now."""
        run = state.run
        return cls(
            pane=pane,
            selected=state.selected,
            edits=state.rules.edits,
            counts=dict(queries.counts(state)),
            last_run=run.number if run is not None else 0,
            repros=_repros_ended(state),
        )


@dataclass(frozen=True)
class Now:
    """What is so now, and the keys pressed since the step began, by the names of keymap.KEYS."""

    state: State
    pane: PaneId
    pressed: frozenset[str]
    before: Before


@dataclass(frozen=True)
class Step:
    """One thing to do. `done` is evaluated after each change; `praise` is shown beside the next step."""

    name: str
    words: str
    done: Callable[[Now], bool]
    praise: str = ""
    failed: Callable[[State], bool] = lambda _: False
    on_failure: str = ""  # the text where it failed


def _compiled(now: Now) -> bool:
    run = now.state.run
    return run is not None and run.ended is not None and not _failed(now.state)


def _failed(state: State) -> bool:
    return state.worker_died is not None or (state.run is not None and state.run.failure is not None)


def _walked(now: Now) -> bool:
    return now.state.selected is not None and now.state.selected != now.before.selected


def _met_a_violation(now: Now) -> bool:
    selected = now.state.selected
    went = selected != now.before.selected or not now.pressed.isdisjoint({"broken", "broken_before"})
    return went and selected is not None and bool(queries.violations_of(now.state, selected))


def _verdict_changed(now: Now) -> bool:
    return now.state.rules.edits > now.before.edits and dict(queries.counts(now.state)) != now.before.counts


def _compared(now: Now) -> bool:
    runs = now.state.history.runs.values()
    return any(run.number > now.before.last_run and run.diff is not None and run.ended is not None for run in runs)


def _wrote_a_repro(now: Now) -> bool:
    return _repros_ended(now.state) > now.before.repros and not now.state.repro_running


def _repros_ended(state: State) -> int:
    return sum(1 for repro in state.history.repros if repro.path)


def _goes_to(pane: PaneId, key: str) -> Callable[[Now], bool]:
    def done(now: Now) -> bool:
        return now.pane == pane and (now.before.pane != pane or key in now.pressed)

    return done


STEPS: tuple[Step, ...] = (
    Step(
        "compile",
        "idbg compiles a small model now, in a process of its own: that takes some seconds. "
        "The first line of the screen shows which program, for what hardware, and at its right end what came of it.",
        _compiled,
        "it has compiled",
        _failed,
        "The model did not compile: press {pane_7}, 7 Log has the reason. Where it is a C++ compiler that is missing, "
        "install one. {run} compiles again, and the tour goes on by itself when that has worked.",
    ),
    Step(
        "walk",
        "1 Graph has what torch captured, an operation a row. The arrows walk over it, {user} goes to what uses a "
        "result, {input} to where it comes from; the other panes follow. Press {user}.",
        _walked,
        "selected, and 3 Node has its facts",
    ),
    Step(
        "violation",
        "What the hardware cannot do is marked in the column `rule`. {broken} goes to the next node that breaks a "
        "rule, in whichever graph it is. Press {broken}.",
        _met_a_violation,
        "this node breaks a rule",
    ),
    Step(
        "why it breaks",
        "3 Node shows everything about the selected node: its rule, what was found and what was wanted, how to fix it, "
        "and the line of the model that it comes from. Press {pane_3}.",
        _goes_to("node", "pane_3"),
        "that is what it breaks, and why",
    ),
    Step(
        "edit a rule",
        "The rules are yours to edit. Press {pane_8}, go down to `unsupported_ops` and press `space`: it is off. "
        "Watch the first line of the screen: the rules are checked again at once.",
        _verdict_changed,
        "the verdict has changed",
    ),
    Step(
        "put it back",
        "idbg compiles by itself under the new rules. They are in no file until {=^s}. "
        "Press `space` once more: the rule is on, and the violation is back.",
        _verdict_changed,
        "and back again",
    ),
    Step(
        "source",
        "What became of the node? Press {pane_2}: 2 Source has the kernel that computes it. There, `]` goes on to the "
        "wrapper that calls it, to FX, and to your own line of Python.",
        _goes_to("source", "pane_2"),
        "the code of the selected node",
    ),
    Step(
        "compare",
        "Are its numbers right? {compare} runs the model compiled, in eager and in float64, and compares the three. "
        "Press {compare}; it takes some seconds.",
        _compared,
        "they were compared",
    ),
    Step(
        "the comparison",
        "5 KernelDiff has each output: how far it is from float64, and how far eager is. Were one wrong, "
        "{compare_kernels} would find the stage and the kernel. Next, its reasons: press {pane_10}.",
        _goes_to("why", "pane_10"),
        "each decision with its reason",
    ),
    Step(
        "why, and a repro",
        "0 Why has breaks, recompiles, guards, fusion, caches and times; `]` turns to the next view. Then take the "
        "violation to somebody else: {pane_1}, {broken} and {repro} write a script of it, and try it.",
        _wrote_a_repro,
        "a script that shows it: 9 Repros",
    ),
    Step(
        "where to go next",
        "That was the tour. {help} has every key, {palette} everything by name. After {quit}: `idbg-tui FILE.py` for a "
        "program of yours, `idbg check FILE.py` without a screen, `idbg --help` for the rest.",
        lambda _: False,
    ),
)
