"""Values of nodes in ranks: what must agree and does not is named, what follows from it is not."""

from collections.abc import Mapping

from msgspec.structs import replace

from idbg.analysis.ranks.compare import compare
from idbg.analysis.ranks.digest import digest
from idbg.render.text import text
from idbg.schema import events
from idbg.schema.graphs import Frame, Graph, GraphId, Node
from idbg.schema.node_values import CallValues, NodeValue
from idbg.schema.programs import Program, Target
from idbg.schema.ranks import RankComparison, RankDigest
from idbg.schema.runs import Run
from idbg.views import ranks as view


def node(name: str, *inputs: str) -> Node:
    if not inputs:
        return Node(name=name, op="placeholder", target=name)
    return Node(name=name, op="call_function", target=name, inputs=inputs, file="/app/train.py", line=len(name))


GRAPH = (node("weight"), node("x"), node("linear", "weight", "x"), node("scale", "weight"), node("sum", "linear"))


def rank(at: int, *calls: Mapping[str, str | NodeValue]) -> RankDigest:
    """The digest of a rank with these values in its calls: checksums, or whole records."""
    run = Run(number=1, program=Program("/app/train.py", cwd="/app"), target=Target(), started=0.0)
    run.apply(events.FrameStarted(run=1, frame=Frame("0/0", "forward", "/app/train.py", 3)))
    run.apply(events.GraphCaptured(run=1, graph=Graph(GraphId("0/0", "dynamo"), GRAPH)))
    for number, values in enumerate(calls, 1):
        measured = tuple(
            replace(value, node=name) if isinstance(value, NodeValue) else NodeValue(node=name, checksum=value)
            for name, value in values.items()
        )
        run.apply(events.NodeValuesMeasured(run=1, values=CallValues(frame="0/0", call=number, values=measured)))
    return digest(run, f"rank{at}", at)


def found(*digests: RankDigest) -> list[tuple[str, str, int]]:
    return [(each.kind, each.what, each.number) for each in compared(*digests).differences]


def compared(*digests: RankDigest) -> RankComparison:
    return compare(digests, len(digests))


SAME = {"weight": "w", "x": "x", "linear": "l", "scale": "s", "sum": "t"}


def test_equal_values_are_no_difference() -> None:
    assert found(rank(0, SAME), rank(1, SAME)) == []


def test_what_other_batches_lead_to_is_no_difference() -> None:
    other = {**SAME, "x": "y", "linear": "m", "sum": "u"}
    assert found(rank(0, SAME), rank(1, other)) == []


def test_a_node_whose_inputs_agree_is_named_once() -> None:
    other = {**SAME, "linear": "m", "sum": "u"}
    digests = rank(0, SAME), rank(1, other), rank(2, SAME)
    assert found(*digests) == [("node", "linear", 1)]
    (difference,) = compared(*digests).differences
    assert [side.ranks for side in difference.sides] == [(1,), (0, 2)]
    assert difference.place == ("/app/train.py", len("linear")) and view.level(difference) == "warning"


def test_replicas_that_part_at_a_later_call() -> None:
    def weight(checksum: str, mean: float) -> NodeValue:
        return NodeValue(node="", checksum=checksum, mean=mean, std=1.0, max_abs=2.0, equal_in=(0, 1))

    one = rank(0, {**SAME, "weight": weight("w", 0.5)}, {"weight": weight("w2", 0.25), "x": "a"})
    two = rank(1, {**SAME, "weight": weight("w", 0.5)}, {"weight": weight("w3", 0.75), "x": "b"})
    whole = compared(one, two)
    (difference,) = whole.differences
    assert (difference.kind, difference.what, difference.number) == ("replica", "weight", 2)
    assert view.level(difference) == "error" and view.view(whole).verdict == "error"
    assert difference.place == ("/app/train.py", len("linear")), "that of the first node that reads it"
    assert "rank 1 mean 0.75, std 1, largest 2; rank 0 mean 0.25" in view.sentence(difference)
    drawn = text(view.view(whole))
    assert "weight is not the same in all replicas (call 2 of forward)" in drawn
    assert whole.columns == ((0,), (1,)) and "2 groups of equal ranks" in drawn
    assert drawn.count("other values: weight") == 1


def test_parameters_that_part_between_the_same_ranks_are_one_row() -> None:
    def values(rank: int) -> dict[str, NodeValue]:
        mean = 0.5 + rank * 1e-9
        value = NodeValue(node="", checksum=f"c{rank}", mean=mean, std=1.0, max_abs=2.0, equal_in=(0, 1))
        return {"weight": value, "x": value}

    whole = compared(rank(0, values(0)), rank(1, values(1)))
    (difference,) = whole.differences
    assert (difference.what, difference.more) == ("weight", 1)
    sentence = view.sentence(difference)
    assert "weight and 1 more are not the same in all replicas" in sentence
    assert "rank 1 mean 0.500000001" in sentence and "rank 0 mean 0.5," in sentence, "digits in which they differ"
    assert "other values: weight +1" in text(view.view(whole))


def test_a_parameter_of_another_group_may_differ() -> None:
    values = [NodeValue(node="", checksum=f"w{at}", equal_in=(0, 1) if at < 2 else (2, 3)) for at in range(4)]
    same = [NodeValue(node="", checksum=f"w{at // 2}", equal_in=value.equal_in) for at, value in enumerate(values)]
    assert found(*(rank(at, {"weight": value}) for at, value in enumerate(same))) == []
    parted = compared(*(rank(at, {"weight": value}) for at, value in enumerate(values))).differences
    assert [[side.ranks for side in each.sides] for each in parted] == [[(1,), (0,)], [(3,), (2,)]]
    second = compared(*(rank(at, {"weight": value}) for at, value in enumerate([*same[:2], *values[2:]]))).differences
    assert [[side.ranks for side in each.sides] for each in second] == [[(3,), (2,)]], "of the second group alone"


def test_random_and_unread_values_are_not_accused() -> None:
    drawn: list[Mapping[str, str | NodeValue]] = [
        {**SAME, "linear": NodeValue(node="", checksum=f"r{at}", random=True), "sum": f"t{at}"} for at in range(2)
    ]
    assert found(*(rank(at, values) for at, values in enumerate(drawn))) == []
    unread: list[Mapping[str, str | NodeValue]] = [{**SAME, "linear": "", "sum": f"t{at}"} for at in range(2)]
    assert found(*(rank(at, values) for at, values in enumerate(unread))) == []


def test_the_result_of_a_collective_must_agree() -> None:
    results = [NodeValue(node="", checksum=f"t{at}", equal_in=(0, 1)) for at in range(2)]
    sums: list[Mapping[str, str | NodeValue]] = [
        {**SAME, "x": f"x{at}", "linear": f"l{at}", "sum": results[at]} for at in range(2)
    ]
    assert found(*(rank(at, values) for at, values in enumerate(sums))) == [("result", "sum", 1)]


def test_ranks_without_values_are_equal_as_before() -> None:
    assert found(rank(0), rank(1)) == [] and found(rank(0, SAME), rank(1)) == []
