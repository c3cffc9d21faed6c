"""Sessions recorded from real compiles (tests/recordings), as states and as apps."""

import json
from collections.abc import Mapping
from pathlib import Path

from idbg.checking.rule_costs import cost_answers
from idbg.config.settings import Settings
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, GraphId, Node, TensorMeta
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from idbg_tui.state import queries
from idbg_tui.state.costs import AT_ONCE
from idbg_tui.state.state import State
from tests.harness.event_lines import events_of
from tests.harness.screen import ReadyApp

RECORDINGS = Path(__file__).parents[1] / "recordings"
INFERENCE = GraphId("0/0", "inference")


def log(name: str) -> list[SessionEvent]:
    with (RECORDINGS / f"{name}.jsonl").open("rb") as file:
        return events_of(file)


def state_of(name: str) -> State:
    """The state after everything that was recorded."""
    state = State(live=False)
    state.apply(log(name))
    return state


def count(state: State) -> None:
    """Have everything counted at once, as the app does beside the screen."""
    while asked := queries.cost_questions(state):
        for question in asked:
            for answer in cost_answers(question):
                state.take_cost(question.findings, answer)


def under(name: str, rules: str) -> State:
    """A recorded session with other rules in force, and all costs counted."""
    state = state_of(name)
    state.apply([events.RulesEdited(text=rules, origin="editor")])
    count(state)
    return state


def app_of(
    name: str, folder: Path, settings: Settings | None = None, *, replacing: Mapping[str, str] | None = None
) -> IdbgApp:
    """The app over a saved session made of a recording, with some of its texts replaced."""
    saved = folder / name
    saved.mkdir()
    text = (RECORDINGS / f"{name}.jsonl").read_text()
    for old, new in (replacing or {}).items():
        text = text.replace(json.dumps(old), json.dumps(new))
    (saved / "events.jsonl").write_text(text)
    scripts = RECORDINGS / f"{name}.json"  # those that it names
    for path, script in json.loads(scripts.read_text()).items() if scripts.exists() else ():
        (saved / path).parent.mkdir(parents=True, exist_ok=True)
        (saved / path).write_text(script)
    return ReadyApp(lambda: Session.open(saved), settings or Settings())


def chain(count: int, module: str = "") -> Graph:
    """A graph of `count` relus, one after the other."""
    tensor = TensorMeta("float32", (4, 8), (8, 1), "cpu")
    nodes = tuple(
        Node(
            name=f"relu_{index}",
            op="call_function",
            target="aten.relu.default",
            inputs=(f"relu_{index - 1}",) if index else (),
            tensors=(tensor,),
            module=module.format(index=index),
            file="model.py",
            line=index + 1,
            code=f"x = relu(x)  # {index}",
        )
        for index in range(count)
    )
    return Graph(INFERENCE, nodes)


def big(rules: str) -> State:
    state = State(live=False)
    graph = chain(AT_ONCE + 1)
    start = [events.GraphCaptured(run=1, graph=graph), events.RunEnded(run=1, verdict="clean", seconds=1.0)]
    program = state_of("resnet").program
    assert program is not None
    recorded = events.RunStarted(run=1, program=program, target=state_of("resnet").target)
    state.apply([recorded, events.RulesEdited(text=rules, origin="editor"), *start])  # type: ignore[list-item]
    return state
