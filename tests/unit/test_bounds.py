"""A saved session that says what cannot be opens up to there, and nothing is made of the rest."""

import json
import re
from pathlib import Path

import pytest

from idbg.schema.events import GraphCaptured
from idbg.schema.graphs import MOST_DIMS, MOST_STORAGES, Graph, GraphId, Node, Sym, TensorMeta
from idbg.session import reading
from idbg.session.reading import impossible

RECORDING = Path(__file__).parents[1] / "recordings" / "attention.jsonl"


def saved(folder: Path, **changes: object) -> Path:
    """A recorded session with some fields of one node replaced."""
    lines = [json.loads(line) for line in RECORDING.read_text().splitlines()]
    graph = next(line["graph"] for line in lines if line["type"] == "graph_captured")
    graph["nodes"][3] |= changes
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def tensors(*shape: object) -> list[object]:
    return [{"dtype": "float32", "shape": shape}]


def captured(**fields: object) -> GraphCaptured:
    node = Node(name="a", op="call_function", target="aten.relu.default", **fields)  # type: ignore[arg-type]
    return GraphCaptured(run=1, graph=Graph(GraphId("0/0", "inference"), (node,)))


def test_recorded_sessions_are_within_bounds(tmp_path: Path) -> None:
    assert reading.load(saved(tmp_path))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"storages": [-1]}, r"line \d+ is damaged: Expected `int` >= 0 - at `\$.graph.nodes\[3\].storages"),
        ({"storages": [MOST_STORAGES]}, "Expected `int` <= "),
        ({"storage_bytes": [-5]}, "Expected `int` >= 0"),
        ({"tensors": tensors(*[1] * 5000)}, "Expected `array` of length <= 1000"),
        ({"tensors": tensors(-1)}, "Expected `int` >= 0"),
        ({"tensors": tensors(10**40)}, "Expected `int` <= "),
        (
            {"tensors": tensors(1 << 62, 1 << 62)},
            r"says what cannot be: a tensor of the .* has 2\*\*63 elements or more",
        ),
        ({"tensors": tensors({"expr": "s", "hint": -(10**60)})}, r"2\*\*63 elements"),
        ({"storages": [0, 1, 2]}, "has not one storage for each of its tensors"),
    ],
    ids=str,
)
def test_a_session_opens_up_to_a_node_that_cannot_be_and_says_where_it_stands(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    found, missing = reading.read(saved(tmp_path, **changes))
    assert re.search(why, missing) and "\n" not in missing
    assert found and not any(isinstance(event, GraphCaptured) for event in found)


def test_what_can_be_is_not_refused() -> None:
    wide = TensorMeta("float32", (1,) * MOST_DIMS)
    largest = TensorMeta("float32", ((1 << 63) - 1, 1))
    unknown = TensorMeta("float32", (Sym("u0"), 1 << 62, 1 << 62))
    empty = TensorMeta("float32", (1 << 62, 1 << 62, 0))
    for tensor in (wide, largest, unknown, empty):
        assert not impossible(captured(tensors=(tensor,)))
    assert not impossible(captured(tensors=(wide, wide), storages=(3, 3), storage_bytes=(4, None)))
    assert impossible(captured(tensors=(wide,), storages=(3,), storage_bytes=(4, 4)))
