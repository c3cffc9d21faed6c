"""Ranks of recorded compiles: equal where only device, address or rank differ, else the first difference is named."""

from dataclasses import replace as with_fields
from pathlib import Path

from msgspec.structs import replace

from idbg.analysis.ranks.compare import LEAST_SLOWER, compare
from idbg.analysis.ranks.digest import digest
from idbg.analysis.ranks.nodes import RankRun, with_nodes
from idbg.render.text import text
from idbg.schema import events
from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.decisions.dynamo import FrameResult, StackLine
from idbg.schema.graphs import Node
from idbg.schema.ranks import RankComparison, RankDigest
from idbg.schema.runs import Run, fold
from idbg.views import ranks as view
from tests.harness.event_lines import events_of

RECORDINGS = Path(__file__).parents[2] / "recordings"
WORLD = ProcessGroup("0", "default_pg", (0, 1))


def run_of(name: str = "mlp_train", **replacing: str) -> Run:
    """A recorded run, with texts of its log replaced."""
    text = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8")
    for old, new in replacing.items():
        assert old in text
        text = text.replace(old, new)
    run = fold(events_of(text.encode().splitlines(keepends=True))).last
    assert run is not None
    return run


def replaced(name: str, pairs: dict[str, str]) -> Run:
    return run_of(name, **pairs)


def changed(run: Run, name: str, **fields: object) -> Run:
    """The run with this node changed wherever it is."""

    def change(node: Node) -> Node:
        return replace(node, **fields) if node.name == name else node

    graphs = {key: replace(graph, nodes=tuple(map(change, graph.nodes))) for key, graph in run.graphs.items()}
    return with_fields(run, graphs=graphs)


def with_calls(run: Run, *ops: str, pending: int = 0, about: ProcessGroup = WORLD) -> Run:
    """The run with these collectives, each at the line of its number; the last `pending` are not completed."""
    calls = [
        Collective(group=about.name, number=at, op=op, inputs=("f32[8]",), file="/app/train.py", line=at, began=100.0)
        for at, op in enumerate(ops, 1)
    ]
    seen = events.CollectivesSeen(
        run=run.number, began=tuple(calls), groups=(about,), pending=tuple(calls[len(calls) - pending :])
    )
    run.apply(seen)
    return run


def ranks(*runs: Run, **fields: object) -> RankComparison:
    digests = [replace(digest(run, f"rank{at}", at), **fields) for at, run in enumerate(runs)]
    return compare(digests, len(runs))


def test_ranks_on_different_devices_are_equal() -> None:
    found = ranks(run_of("mlp_train_cuda"), replaced("mlp_train_cuda", {"cuda:0": "cuda:3"}))
    assert found.differences == () and found.columns == ((0, 1),)
    assert "equal in all that is compared" in view.summary(found)
    assert view.view(found).verdict == "ok"


def test_a_rank_that_is_not_seen_is_not_equal() -> None:
    found = compare([digest(run_of(), "rank0", 0)], 3)
    assert found.unseen == (1, 2)
    assert view.view(found).verdict == "unknown" and "ranks 1-2 not seen" in view.summary(found)


def test_the_first_node_that_differs_is_named_with_the_users_line() -> None:
    one = run_of()
    frame = next(iter(one.frames))
    node = next(node for node in one.graphs[next(iter(one.graphs))].nodes if node.op == "call_function" and node.file)
    other = changed(run_of(), node.name, target="aten.sin.default")
    found = ranks(one, other)
    first = found.differences[0]
    assert (first.kind, first.what) == ("graph", "dynamo")
    runs = {0: one, 1: other}
    pair = [RankRun(side.ranks[0], runs[side.ranks[0]], frame) for side in first.sides]
    named = with_nodes(first, pair[0], pair[1])
    assert named.place == (node.file, node.line)
    assert "aten.sin.default" in view.sentence(named) and node.target in view.sentence(named)
    assert len(found.columns) == 2 and found.rows[0].groups[0][0] == (0,)


def test_another_shape_is_another_graph_and_a_constant_that_is_the_rank_is_not() -> None:
    one = run_of()
    graph = next(iter(one.graphs.values()))
    node = next(node for node in graph.nodes if node.op == "call_function" and node.tensor is not None)
    tensor = node.tensors[0]
    other = changed(run_of(), node.name, tensors=(replace(tensor, shape=(*tensor.shape, 7)),))
    assert ranks(one, other).differences[0].kind == "graph"

    own = [changed(run_of(), node.name, args=f"({rank}, x)") for rank in (0, 1)]
    found = ranks(*own)
    first = found.differences[0]
    assert first.kind == "constants"
    key = next(iter(one.frames))
    pair = [RankRun(side.ranks[0], own[side.ranks[0]], key) for side in first.sides]
    named = with_nodes(first, pair[0], pair[1])
    assert named.follows_rank and view.level(named) == "unknown"
    assert found.columns == ((0, 1),), "folded: the same graph but for the rank"

    unlike = [changed(run_of(), node.name, args=f"({value}, x)") for value in (5, 9)]
    first = ranks(*unlike).differences[0]
    pair = [RankRun(side.ranks[0], unlike[side.ranks[0]], key) for side in first.sides]
    assert not with_nodes(first, pair[0], pair[1]).follows_rank
    assert view.level(first) == "warning"


def test_a_function_that_one_rank_does_not_compile() -> None:
    one, other = run_of("breaking"), run_of("breaking")
    gone = next(frame for frame in list(other.frames.values())[:-1])
    other.frames = {key: frame for key, frame in other.frames.items() if frame is not gone}
    first = next(each for each in ranks(one, other).differences if each.kind == "absent")
    assert first.sides[0].ranks == (1,) and first.place == (gone.file, gone.line)


def test_what_a_rank_has_not_come_to_yet_is_not_absent() -> None:
    one, other = run_of("breaking"), run_of("breaking")
    other.frames = dict(list(other.frames.items())[:1])
    other.ended = None
    assert not [each for each in ranks(one, other).differences if each.kind == "absent"]


def test_a_collective_out_of_order_is_named_with_both_lines() -> None:
    one = with_calls(run_of(), "all_reduce", "broadcast", "all_reduce", pending=1)
    other = with_calls(run_of(), "all_reduce", "all_reduce", "broadcast", pending=1)
    found = ranks(one, other)
    first = next(each for each in found.differences if each.kind == "collective")
    assert first.number == 2 and first.place == ("/app/train.py", 2)
    assert {side.value for side in first.sides} == {"broadcast f32[8]", "all_reduce f32[8]"}
    assert view.level(first) == "error" and "train.py:2" in view.summary(found)


def test_who_waits_for_whom() -> None:
    waiting = with_calls(run_of(), "all_reduce", "all_reduce", pending=1)
    late = with_calls(run_of(), "all_reduce")
    late.collectives.stack = (StackLine("/app/train.py", 40, "main", "time.sleep(60)"),)
    for run in (waiting, late):
        run.ended = None
    digests = [replace(digest(run, f"rank{at}", at), seen=130.0) for at, run in enumerate((waiting, late))]
    first = next(each for each in compare(digests, 2).differences if each.kind == "wait")
    assert (first.sides[0].ranks, first.to_ranks, first.number) == ((0,), (1,), 2)
    assert "rank 0 waits in all_reduce f32[8]" in view.sentence(first)
    assert "for rank 1" in view.sentence(first) and "train.py:40" in view.sentence(first)
    assert not compare([replace(each, seen=101.0) for each in digests], 2).differences, "it has only begun"


def test_collectives_that_are_counted_alone_differ_once_a_rank_did_not_end_well() -> None:
    digests = []
    for rank, count in enumerate((7, 6)):
        run = run_of()
        stack = (StackLine("/app/train.py", 10 + rank, "step"),)
        run.apply(events.CollectivesSeen(run=run.number, groups=(WORLD,), counts={"0": count - 1}))
        run.apply(events.CollectivesSeen(run=run.number, counts={"0": count}, stack=stack))
        digests.append(replace(digest(run, f"rank{rank}", rank, world_size=2), ended="ended"))
    assert not [each for each in compare(digests).differences if each.kind == "count"]
    assert not any(each.recorded for each in digests)
    digests[0] = replace(digests[0], ended="killed", signal="SIGTERM")
    (found,) = (each for each in compare(digests).differences if each.kind == "count")
    assert view.sentence(found) == (
        "unequal numbers of collectives began in default_pg, which torch does not record: "
        "rank 1 6 at /app/train.py:11; rank 0 7 at /app/train.py:10"
    )
    assert view.level(found) == "warning"
    assert "7, not recorded" in text(view.view(compare(digests)))


def test_a_rank_that_ended_well_waits_for_nobody() -> None:
    runs = [with_calls(run_of(), "all_reduce", "all_reduce", pending=1), with_calls(run_of(), "all_reduce")]
    digests = [digest(run, f"rank{at}", at) for at, run in enumerate(runs)]
    assert [each.ended for each in digests] == ["ended", "ended"] and digests[0].pending
    assert not [each for each in compare(digests, 2).differences if each.kind == "wait"]


def test_a_killed_rank_comes_before_those_that_its_death_ended() -> None:
    whole = [digest(run_of(), f"rank{at}", at) for at in range(3)]
    ended: list[RankDigest] = [
        replace(whole[0], ended="failed", failure="Connection closed by peer", seen=1.0),
        replace(whole[1], ended="killed", signal="SIGKILL", seen=2.0),
        replace(whole[2], ended="killed", signal="SIGTERM", seen=3.0),
    ]
    found = [each for each in compare(ended, 3).differences if each.kind == "ended"]
    assert [each.sides[0].ranks for each in found] == [(1,), (0,)]
    assert view.sentence(found[0]) == "rank 1 was killed: SIGKILL"


def test_a_rank_that_compiles_longer() -> None:
    slow = run_of("breaking")
    frame = next(iter(slow.decided.last(FrameResult)))
    usual = slow.decided.last(FrameResult)[frame]
    slow.decided.last(FrameResult)[frame] = replace(usual, seconds=2 * (usual.seconds or 0) + LEAST_SLOWER + 10)
    found = ranks(run_of("breaking"), run_of("breaking"), slow)
    first = next(each for each in found.differences if each.kind == "time")
    assert first.sides[0].ranks == (2,) and first.frame == slow.frames[frame].function
    assert ranks(run_of("breaking"), run_of("breaking")).differences == ()


def test_many_ranks_are_two_columns_where_one_differs() -> None:
    same = digest(run_of(), "rank0", 0)
    graph = next(iter(run_of().graphs.values()))
    node = next(node for node in graph.nodes if node.op == "call_function")
    other = digest(changed(run_of(), node.name, target="aten.sin.default"), "rank7", 7)
    digests = [replace(same, rank=rank, name=f"rank{rank}") for rank in range(64) if rank != 7]
    found = compare([*digests, other], 64)
    assert sorted(map(len, found.columns)) == [1, 63]
    table = view.view(found).body[-1]
    assert [column.head for column in table.columns] == ["ranks 0-6, 8-63", "rank 7"]  # type: ignore[union-attr]


def test_every_difference_has_a_sentence_and_json_has_them_all() -> None:
    one = with_calls(run_of(), "all_reduce", pending=1)
    other = with_calls(changed(run_of(), "relu", target="aten.sin.default"), "broadcast", pending=1)
    found = ranks(one, other, ended="killed", signal="SIGSEGV")
    record = view.as_json(found)
    assert isinstance(record, dict)
    assert len(record["differences"]) == len(found.differences) >= 2
    assert all(each["sentence"] for each in record["differences"])


def test_what_the_launcher_ends_comes_after_why() -> None:
    waiting = with_calls(run_of(), "all_reduce", "all_reduce", pending=1)
    runs = [waiting, with_calls(run_of(), "all_reduce")]
    ended = [replace(digest(run, f"rank{at}", at), ended="killed", signal="SIGTERM") for at, run in enumerate(runs)]
    found = compare(ended, 2)
    assert [each.kind for each in view.listed(found)] == ["wait", "ended"]
    assert view.sentence(view.listed(found)[1]) == "ranks 0-1 were killed: SIGTERM"
