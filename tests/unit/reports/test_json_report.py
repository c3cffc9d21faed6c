"""The JSON report has the documented keys, is strict, and says what the run says."""

import json
import re
from math import inf, nan
from pathlib import Path

import msgspec
import pytest

from idbg.reports import json as report
from idbg.schema import events, strict_json
from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.graphs import Frame, Graph, GraphId, Links, Node, NodeId, Sym, TensorMeta
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import Run, fold
from idbg.schema.violations import Violation
from tests.harness.event_lines import events_of

ROOT = Path(__file__).parents[3]
INFERENCE, POST = GraphId("0/0", "inference"), GraphId("0/0", "post_grad", "inference")
RELU = Node(
    name="relu",
    op="call_function",
    target="aten.relu.default",
    args="x",
    inputs=("x",),
    tensors=(TensorMeta("float32", (Sym("s0", hint=10), 8), (8, 1), "cpu"),),
    module="layer1.0",
    module_class="torch.nn.ReLU",
    file="m.py",
    line=7,
    code="relu(x)",
)
KERNEL = Kernel(
    frame="0/0",
    part="inference",
    name="fused",
    language="cpp",
    source="void",
    line=3,
    calls=(KernelCall("fused:1", 9, ("relu",)),),
)


def finished() -> Run:
    run = Run(3, Program("m.py", argv=("--fast",)), Target(rules="", options={"x": inf, "y": nan}), 0.0)
    for event in (
        events.FrameStarted(run=3, frame=Frame("0/0", "forward", "m.py", 5)),
        events.OutputWritten(run=3, stream="stdout", text="hello "),
        events.OutputWritten(run=3, stream="stderr", text="a warning\n"),
        events.OutputWritten(run=3, stream="stdout", text="world\n"),
        events.GraphCaptured(run=3, graph=Graph(INFERENCE, (RELU,), "def forward(): ...")),
        events.GraphCaptured(run=3, graph=Graph(POST, (RELU,))),
        events.LinksCaptured(run=3, links=Links(INFERENCE, POST, (("relu", "relu"),))),
        events.CodeCaptured(run=3, code=OutputCode("0/0", "inference", "wrapper", (KERNEL,))),
        events.GraphBroke(run=3, graph_break=GraphBreak("print", "m.py", 6, "0/0")),
        events.Recompiled(run=3, frame="0/1", reason="x.size(0) was 8"),
        events.ViolationsFound(
            run=3,
            violations=(
                Violation(
                    rule="alignment",
                    severity="reject",
                    node=NodeId(INFERENCE, "relu"),
                    found="dim 0 is s0 (hint 10)",
                    wanted="a multiple of 16",
                    file="m.py",
                    line=7,
                ),
            ),
        ),
        events.RunEnded(run=3, verdict="violations", seconds=1.5, failure=Failure("constraints", "1 violation")),
    ):
        run.apply(event)
    return run


def encoded(run: Run) -> dict[str, object]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"not strict JSON: {constant}")

    return json.loads(strict_json.formatted(report.run_report(run)), parse_constant=refuse)  # type: ignore[no-any-return]


def test_the_keys_of_the_issue_are_all_there() -> None:
    told = json.loads(strict_json.formatted(report.run_report(finished())))
    assert {"schema", "program", "target", "verdict", "error", "frames", "violations", "output"} <= set(told)
    (frame,) = told["frames"]
    assert {"function", "file", "line", "graphs", "kernels"} <= set(frame)
    node = frame["graphs"][0]["nodes"][0]
    named = "name op target dtype shape stride device module file line inputs kernels"
    assert set(named.split()) <= set(node)
    assert {"name", "language", "source", "stage", "nodes"} <= set(frame["kernels"][0])
    keys = "rule severity frame stage node found wanted file line"
    assert set(keys.split()) <= set(told["violations"][0])


def test_the_report_says_what_the_run_says() -> None:
    told = json.loads(strict_json.formatted(report.run_report(finished())))
    frame, node = told["frames"][0], told["frames"][0]["graphs"][0]["nodes"][0]
    assert (told["schema"], told["verdict"], told["run"]) == ("idbg.run/1", "violations", 3)
    assert (told["program"]["path"], told["program"]["argv"]) == ("m.py", ["--fast"])
    assert told["error"]["kind"] == "constraints"
    assert (told["output"], told["stderr"]) == ("hello world\n", "a warning\n")
    assert [graph["stage"] for graph in frame["graphs"]] == ["inference", "post_grad"]
    assert (node["dtype"], node["stride"], node["device"], node["kernels"]) == ("float32", [8, 1], "cpu", ["fused"])
    assert (frame["kernels"][0]["stage"], frame["kernels"][0]["nodes"]) == ("inference", ["relu"])
    assert (told["breaks"][0]["reason"], told["recompiles"][0]["frame"]) == ("print", "0/1")


def test_a_symbolic_size_is_a_string_and_its_hint_stands_beside_it() -> None:
    node = json.loads(strict_json.formatted(report.run_report(finished())))["frames"][0]["graphs"][0]["nodes"][0]
    assert node["shape"] == ["s0", 8] and node["hints"] == [10, 8]


def test_numbers_that_are_not_finite_are_null() -> None:
    assert encoded(finished())["target"]["options"] == {"x": None, "y": None}  # type: ignore[index]


def test_every_key_is_there_also_where_nothing_is_known() -> None:
    empty = Run(1, Program("m.py"), Target(), 0.0)
    empty.graphs[INFERENCE] = Graph(INFERENCE, (Node(name="a", op="output", target="output"),))
    told, full = encoded(empty), encoded(finished())
    assert set(told) == set(full) and told["verdict"] == "waiting" and told["error"] is None
    assert set(told["program"]) == set(full["program"]) and set(told["target"]) == set(full["target"])  # type: ignore[call-overload]
    nodes = [each["frames"][0]["graphs"][0]["nodes"][0] for each in (told, full)]  # type: ignore[index]
    assert set(nodes[0]) == set(nodes[1]) and nodes[0]["shape"] is None


def test_a_report_is_read_again_as_it_was() -> None:
    run = finished()
    run.target = Target()
    told = report.run_report(run)
    assert msgspec.json.decode(strict_json.formatted(told), type=report.RunReport) == told


def test_the_document_names_every_key() -> None:
    document = (ROOT / "docs" / "json-schema.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)(?:\[\])?`", document))

    def keys(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(keys, value))
        if not isinstance(value, dict):
            return set()
        return set(value) | set().union(
            *(keys(each) for name, each in value.items() if name not in ("phases", "options"))
        )

    assert keys(encoded(finished())) - documented == set()


def test_what_a_terminal_would_obey_is_escaped() -> None:
    text = "a\u202eb\x9b\x7f\u200f\u2028\u2066\uffff\x1b é漢😀"
    encoded = strict_json.encode({"text": text})
    assert json.loads(encoded) == {"text": text}
    assert b"\\u202e" in encoded and b"\\u009b" in encoded and "é漢😀" in encoded.decode()
    assert encoded.decode().isprintable()


@pytest.mark.parametrize(
    "recording", sorted((ROOT / "tests" / "recordings").glob("*.jsonl")), ids=lambda path: path.stem
)
def test_a_real_run_becomes_strict_json(recording: Path) -> None:
    with recording.open("rb") as log:
        run = fold(events_of(log)).last
    assert run is not None
    told = encoded(run)
    graphs = [graph for frame in told["frames"] for graph in frame["graphs"]]  # type: ignore[attr-defined]
    assert sum(len(graph["nodes"]) for graph in graphs) == sum(len(graph.nodes) for graph in run.graphs.values())
    assert any(node["kernels"] for graph in graphs for node in graph["nodes"]) == bool(run.kernels)
