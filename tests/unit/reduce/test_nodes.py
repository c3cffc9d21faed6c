"""Few questions where few nodes matter, and always no node too many."""

from collections.abc import Callable

import pytest

from idbg.reduce.nodes import Flow, Nodes, reduce_nodes


class Counted:
    """An oracle that counts, and remembers what it was asked."""

    def __init__(self, fails: Callable[[Nodes], bool]) -> None:
        self.asked: list[Nodes] = []
        self.fails = fails

    def __call__(self, kept: Nodes) -> bool:
        self.asked.append(kept)
        return self.fails(kept)


def chain(length: int) -> Flow:
    return Flow({f"n{place}": (f"n{place - 1}",) if place else () for place in range(length)})


def apart(length: int) -> Flow:
    return Flow({f"n{place}": () for place in range(length)})


def names(*places: int) -> Nodes:
    return frozenset(f"n{place}" for place in places)


def needs(*places: int) -> Counted:
    return Counted(lambda kept: names(*places) <= kept)


def test_an_unknown_culprit_takes_its_logarithm() -> None:
    oracle = needs(1000)
    assert reduce_nodes(chain(1934), oracle).kept == names(1000)
    assert len(oracle.asked) <= 12


def test_a_way_through_the_graph_is_found_by_its_two_ends() -> None:
    oracle = needs(1000, 1001, 1002, 1003)
    found = reduce_nodes(chain(1934), oracle)
    assert found.kept == names(1000, 1001, 1002, 1003)
    assert found.passing is not None and len(found.passing) == 3
    assert len(oracle.asked) <= 30


@pytest.mark.parametrize("graph", [chain(491), apart(491)], ids=["chain", "apart"])
def test_two_culprits_take_a_logarithm_each(graph: Flow) -> None:
    oracle = needs(83, 360)
    assert reduce_nodes(graph, oracle).kept == names(83, 360)
    assert len(oracle.asked) <= 25


def test_the_shortest_way_is_tried_where_much_lies_between() -> None:
    reads: dict[str, tuple[str, ...]] = {"first": ()}
    for branch in range(100):
        for step in range(5):
            reads[f"b{branch}_{step}"] = (f"b{branch}_{step - 1}" if step else "first",)
    reads["short"] = ("first",)
    reads["last"] = ("short", *(f"b{branch}_4" for branch in range(100)))
    oracle = Counted(lambda kept: {"first", "short", "last"} <= kept)
    assert reduce_nodes(Flow(reads), oracle).kept == {"first", "short", "last"}
    assert len(oracle.asked) <= 26


def test_what_cannot_be_an_input_comes_along() -> None:
    flow = Flow({"a": (), "body": (), "b": ("a",), "hop": ("b", "body"), "c": ("hop",)}, frozenset({"body"}))
    oracle = Counted(lambda kept: "hop" in kept)
    found = reduce_nodes(flow, oracle)
    assert found.kept == {"body", "hop"}
    assert all("body" in asked for asked in oracle.asked if "hop" in asked)
    assert found.passing == {"body"}


def test_a_graph_that_fails_with_any_node_is_one_node() -> None:
    assert len(reduce_nodes(chain(50), Counted(bool)).kept) == 1


def test_where_all_is_needed_all_stays_in_about_a_question_a_node() -> None:
    oracle = needs(*range(100))
    assert len(reduce_nodes(chain(100), oracle).kept) == 100
    assert len(oracle.asked) <= 130


def test_stopping_keeps_the_smallest_that_failed() -> None:
    best: list[Nodes] = []

    def fails(kept: Nodes) -> bool:
        if len(kept) < 45:
            raise KeyboardInterrupt
        return names(10, 40) <= kept

    with pytest.raises(KeyboardInterrupt):
        reduce_nodes(chain(100), fails, better=best.append)
    assert best and names(10, 40) <= best[-1]
    assert [len(kept) for kept in best] == sorted({len(kept) for kept in best}, reverse=True)


def test_what_fails_otherwise_is_not_shown_as_passing() -> None:
    oracle = needs(1, 2, 3)
    found = reduce_nodes(chain(4), oracle, passes=lambda kept: "n3" not in kept)
    assert found.passing == names(1, 2)


def test_the_questions_that_are_left_are_told_and_come_near() -> None:
    told: list[tuple[str, int]] = []
    oracle = needs(1000, 1001, 1002, 1003)
    reduce_nodes(chain(1934), oracle, doing=lambda words, calls: told.append((words, calls)))
    assert len(told) == len(oracle.asked)
    assert told[0][0] == "the shortest failing prefix"
    assert told[-1][0] == "each single node"
    assert told[-1][1] <= 4
    assert 0.5 < told[0][1] / len(oracle.asked) < 2


def test_ten_thousand_nodes_are_no_work_for_the_search() -> None:
    flow = Flow({f"n{place}": names_read(place) for place in range(10_000)})
    oracle = needs(17, 4_000, 9_000)
    assert reduce_nodes(flow, oracle).kept == names(17, 4_000, 9_000)
    assert len(oracle.asked) <= 60


def names_read(place: int) -> tuple[str, ...]:
    return tuple(f"n{source}" for source in {place - 1, place // 2, place // 3} if 0 <= source < place)
