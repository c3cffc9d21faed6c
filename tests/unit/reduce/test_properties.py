"""What holds of every search, over graphs and oracles that nobody thought of: also those that are not monotone."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from idbg.reduce.ddmin import ddmin
from idbg.reduce.nodes import Nodes, Reduced, reduce_nodes
from idbg.reduce.tries import Judged, Stopped, Tries
from idbg.schema.repros import Budget
from tests.harness.oracles import Problem, problems

EXAMPLES = int(os.environ.get("IDBG_EXAMPLES", "60"))
checked = settings(max_examples=EXAMPLES, database=None, derandomize="IDBG_EXAMPLES" not in os.environ)


class Watched:
    """Asks an oracle; nothing twice, neither all nor nothing, and nothing that is no graph."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.asked: dict[Nodes, bool] = {}
        self.best: list[Nodes] = []

    def __call__(self, kept: Nodes) -> bool:
        assert kept
        assert kept < self.problem.whole
        assert kept not in self.asked
        assert self.problem.flow.closed(kept) == kept
        self.asked[kept] = self.problem.fails(kept)
        return self.asked[kept]


@checked
@given(problems())
def test_no_node_can_be_left_out_and_what_is_said_to_fail_does(problem: Problem) -> None:
    watched = Watched(problem)
    found = reduce_nodes(problem.flow, watched, better=watched.best.append)
    assert problem.fails(found.kept)
    for name in found.kept:
        assert not problem.fails(problem.without(found.kept, name)), (problem.told, name)
    assert all(watched.asked[kept] for kept in watched.best)
    assert [*watched.best, found.kept][-1] == (watched.best[-1] if watched.best else problem.whole) == found.kept
    sizes = [len(problem.whole), *map(len, watched.best)]
    assert sizes == sorted(set(sizes), reverse=True)


@checked
@given(problems())
def test_what_is_said_to_pass_was_asked_and_is_the_largest_part_that_did(problem: Problem) -> None:
    watched = Watched(problem)
    found = reduce_nodes(problem.flow, watched)
    passed = [kept for kept, failed in watched.asked.items() if not failed and kept < found.kept]
    if found.passing is None:
        assert not passed
    else:
        assert found.passing in passed
        assert len(found.passing) == max(map(len, passed))


def outcome(problem: Problem, kept: Nodes) -> Judged:
    """Fails as sought, or otherwise, or passes."""
    if problem.fails(kept):
        return Judged("same", "sought", "", 1.0)
    return Judged("other", f"other {len(kept) % 3}", "", 1.0) if len(kept) % 2 else Judged("passes", "", "", 1.0)


class Search:
    """A search whose tries are kept in a file, and which can be run again."""

    def __init__(self, problem: Problem, path: Path) -> None:
        self.problem, self.path = problem, path
        self.judged: list[Nodes] = []
        self.best = problem.whole

    def run(self, calls: int) -> Reduced | None:
        """None where it was stopped."""

        def judge(kept: Nodes) -> Judged:
            self.judged.append(kept)
            return outcome(self.problem, kept)

        tries = Tries[Nodes](judge, lambda kept: " ".join(sorted(kept)), Budget(calls=calls), path=self.path)

        def better(kept: Nodes) -> None:
            self.best = kept

        def passes(kept: Nodes) -> bool:
            return tries(kept).outcome == "passes"

        try:
            return reduce_nodes(
                self.problem.flow, lambda kept: tries(kept).outcome == "same", better=better, passes=passes
            )
        except Stopped:
            return None


@checked
@given(problems(), st.lists(st.integers(0, 12), max_size=3), st.integers(0, 200))
def test_a_search_that_is_stopped_and_resumed_ends_alike_and_tries_nothing_twice(
    problem: Problem, stops: list[int], torn: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = Search(problem, Path(folder) / "whole")
        ended = whole.run(10_000)
        resumed = Search(problem, Path(folder) / "resumed")
        for stop in stops:
            if resumed.run(stop) is None:
                assert outcome(problem, resumed.best).signature == "sought"
        assert resumed.run(10_000) == ended
        assert resumed.judged == whole.judged
        assert outcome(problem, whole.best).signature == "sought"

        # Killed as it wrote a line: that try alone is made again.
        written = resumed.path.read_bytes() if resumed.path.exists() else b""
        resumed.path.write_bytes(written[: len(written) - torn])
        left = resumed.path.read_bytes().count(b"\n") if written else 0
        resumed.judged.clear()
        assert resumed.run(10_000) == ended
        assert len(resumed.judged) <= len(whole.judged) - left


@checked
@given(problems())
def test_a_part_of_a_list_is_minimal_too(problem: Problem) -> None:
    items = list(problem.flow.reads)
    asked: set[tuple[str, ...]] = set()
    best: list[list[str]] = []

    def fails(kept: Sequence[str]) -> bool:
        assert 0 < len(kept) < len(items)
        assert tuple(kept) not in asked
        asked.add(tuple(kept))
        return problem.fails(frozenset(kept))

    kept = ddmin(items, fails, best.append)
    assert kept == [item for item in items if item in kept]
    assert problem.fails(frozenset(kept))
    assert not any(problem.fails(frozenset(kept) - {item}) for item in kept)
    assert kept == (best[-1] if best else items)


ASKED = """
from idbg.reduce.nodes import Flow
from idbg.reduce.nodes import reduce_nodes
reads = {f"n{i}": tuple(f"n{j}" for j in {i - 1, i // 2, i // 3} if 0 <= j < i) for i in range(200)}
flow = Flow(reads, frozenset({"n7"}))
asked = []
needed = {"n3", "n50", "n51", "n120", "n150"}
reduce_nodes(flow, lambda kept: asked.append(sorted(kept)) or needed <= kept)
print(asked)
"""


def test_every_process_asks_the_same_in_the_same_order() -> None:
    """Python hashes strings otherwise in each: a search that went by that could not resume."""
    told = [
        subprocess.run(
            [sys.executable, "-c", ASKED], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(told[0]) > 1000
    assert told[0] == told[1]
