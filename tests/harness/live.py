"""The app over a live session that has no worker."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from idbg.analysis.decisions.suggestions import Suggestion
from idbg.analysis.decisions.trials import trial
from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import NodeId
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Budget, Sought
from idbg.schema.runs import History, Run, fold
from idbg_tui.app import IdbgApp
from tests.harness.screen import ReadyApp


class FakeSession:
    """A live session without a worker: what the app calls is remembered, and `emit` makes things happen."""

    def __init__(self) -> None:
        self.events: list[SessionEvent] = []
        self.live = True
        self.target = Target(rules='[[rules]]\nkind = "unsupported_ops"\ndeny = ["relu"]\n')
        self.folder = Path("/nowhere")
        self.calls: list[str] = []
        self.listener: Callable[[SessionEvent], None] = self.events.append
        self.runs = 0
        self.arriving = ""

    @property
    def history(self) -> History:
        return fold(self.events)

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> Callable[[], None]:
        self.listener = listener
        return lambda: None

    def emit(self, event: SessionEvent) -> None:
        self.events.append(event)
        self.listener(event)

    def start(self) -> None:
        self.calls.append("start")

    def run(self, target: Target | None = None, comparison: Comparison | None = None, *, asked: bool = True) -> int:
        self.target = target or self.target
        self.runs += 1
        how = "" if comparison is None else " kernels compared" if comparison.per_kernel else " compared"
        self.calls.append(f"run {self.target.backend} {'strict' if self.target.strict else 'warn'}{how}")
        started = events.RunStarted(run=self.runs, program=Program("m.py"), target=self.target, comparison=comparison)
        self.emit(started)
        return self.runs

    def typical(self) -> dict[str, float]:
        return {"lowering": 2.0}

    def aim(self, target: Target) -> None:
        self.target = target

    def try_out(self, run: Run, suggestion: Suggestion) -> int:
        mine = self.target
        number = self.run(replace(suggestion.tried(run.target), rules=mine.rules))
        self.aim(mine)
        return number

    def tried(self, before: Run, after: Run, suggestion: Suggestion) -> None:
        self.emit(events.SuggestionTried(trial=trial(before, after, suggestion)))

    def cancel(self) -> None:
        self.calls.append("cancel")

    def edit_rules(self, text: str, origin: str = "editor") -> object:
        self.target = replace(self.target, rules=text)
        self.emit(events.RulesEdited(text=text, origin=origin))
        return object()

    def find_owner(self, launch: int) -> None:
        self.calls.append(f"owner {launch}")

    def export_repro(self, node: NodeId | None, rule: str = "") -> None:
        self.calls.append(f"repro {node} {rule}")
        if node is None:
            raise BadInput("nothing to reproduce", hint="run it")

    def minify(self, sought: Sought, budget: Budget | None = None, *, keep_data: bool = True) -> None:
        calls = "" if budget is None else " the first" if budget.first else f" {budget.calls} try"
        what = sought.node or sought.place or ("" if sought.launch is None else sought.launch)
        self.calls.append(f"minify {sought.kind} {what} {sought.rule}".rstrip() + calls)


def living() -> tuple[IdbgApp, FakeSession]:
    session = FakeSession()
    return ReadyApp(lambda: session, Settings()), session  # type: ignore[arg-type, return-value]
