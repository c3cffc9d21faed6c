"""Each candidate is judged once, within a budget, and what was found outlives the search."""

from pathlib import Path

import pytest

from idbg.reduce.tries import Judged, Stopped, Tries
from idbg.schema.repros import Budget, OtherFailure


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def tries_of(judged: list[int], path: Path | None = None, *, calls: int = 100, seconds: float = 100.0) -> Tries[int]:
    """Even numbers fail as sought, multiples of 5 pass, others fail otherwise; a number takes as many seconds."""

    def judge(number: int) -> Judged:
        judged.append(number)
        if number % 2 == 0:
            return Judged("same", "the one", f"{number}.py", float(number))
        if number % 5 == 0:
            return Judged("passes", "", f"{number}.py", float(number))
        return Judged("other", f"mod {number % 3}", f"{number}.py", float(number), in_eager=number > 100)

    return Tries(judge, str, Budget(calls=calls, seconds=seconds), path=path)


def test_a_candidate_is_judged_once() -> None:
    judged: list[int] = []
    tries = tries_of(judged)
    assert [tries(number).outcome for number in (2, 5, 2, 5, 7)] == ["same", "passes", "same", "passes", "other"]
    assert judged == [2, 5, 7]
    assert (tries.calls, tries.known) == (3, 0)


def test_candidates_of_one_key_are_one() -> None:
    tries = Tries[str](lambda text: Judged("same", text), str.lower, Budget())
    assert tries("A").signature == tries("a").signature == "A"


def test_a_budget_of_calls_stops_it_in_words_and_known_answers_are_still_given() -> None:
    tries = tries_of([], calls=2)
    tries(1), tries(2)
    with pytest.raises(Stopped, match="its 2 tries are used up"):
        tries(3)
    assert tries(2).outcome == "same"


def test_a_budget_of_seconds_stops_it() -> None:
    clock = Clock()
    tries = Tries[str](lambda text: Judged("same"), str, Budget(seconds=1800), clock=clock)
    tries("a")
    clock.now = 1800.0
    with pytest.raises(Stopped, match="its 1,800 seconds are used up"):
        tries("b")


def test_a_stopped_search_is_answered_from_its_file_and_pays_for_the_rest_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tries.jsonl"
    first: list[int] = []
    tries = tries_of(first, path, calls=3)
    with pytest.raises(Stopped):
        list(map(tries, range(1, 10)))
    second: list[int] = []
    again = tries_of(second, path, calls=3)
    answers = [again(number) for number in range(1, 7)]
    assert (first, second) == ([1, 2, 3], [4, 5, 6])
    assert (again.calls, again.known) == (3, 3)
    assert answers[1] == Judged("same", "the one", "2.py", 2.0)


def test_a_search_that_begins_again_looks_first_whether_it_fails_as_before(tmp_path: Path) -> None:
    path = tmp_path / "tries.jsonl"
    list(map(tries_of([], path), (2, 3, 4)))
    judged: list[int] = []
    again = tries_of(judged, path)
    again.begin(2)
    assert [again(number).outcome for number in (2, 3, 4)] == ["same", "other", "same"]
    assert (judged, again.calls, again.known) == ([2], 1, 2)


def test_where_it_fails_no_more_nothing_that_was_found_then_holds(tmp_path: Path) -> None:
    path = tmp_path / "tries.jsonl"
    list(map(tries_of([], path), (2, 3, 4)))
    mended = Tries[int](lambda number: Judged("passes"), str, Budget(), path=path)
    mended.begin(2)
    assert [mended(number).outcome for number in (2, 3, 4)] == ["passes"] * 3
    third: list[int] = []
    tries_of(third, path)(4)
    assert third == [], "the answers of the mended program are kept"
    assert tries_of([], path)(4).outcome == "passes"


@pytest.mark.parametrize("torn", [b'{"key":"2","judged":{"outc', b"\xff\xfe", b"[]", b'{"key":"2"}'])
def test_a_torn_last_line_is_no_answer_and_breaks_no_later_one(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "tries.jsonl"
    tries_of([], path)(1)
    with path.open("ab") as file:
        file.write(torn)
    second: list[int] = []
    again = tries_of(second, path)
    again(1), again(2), again(3)
    assert second == [2, 3]
    third: list[int] = []
    last = tries_of(third, path)
    last(1), last(2), last(3)
    assert third == []


def test_what_fails_otherwise_is_counted_by_signature_with_its_first_script() -> None:
    tries = tries_of([])
    for number in (101, 1, 7, 13, 11, 7, 5):
        tries(number)
    assert tries.first_other == "mod 2"
    assert tries.others == (OtherFailure("mod 1", 3, "1.py"), OtherFailure("mod 2", 1, "11.py"))


def test_the_rest_is_estimated_from_the_mean_and_never_above_the_budget() -> None:
    tries = tries_of([], calls=10, seconds=25.0)
    assert tries.eta(5) is None
    tries(2), tries(4)
    assert tries.mean == 3.0
    assert tries.eta(5) == pytest.approx(15.0)
    assert tries.eta(1000) == pytest.approx(24.0, abs=0.5)  # 8 tries are left, of 3 seconds each.
    assert tries_of([], calls=1).eta(1) is None


def test_whoever_listens_is_told_of_each_try() -> None:
    told: list[Judged] = []
    tries = Tries[str](lambda text: Judged("same", text), str, Budget(), on_answer=told.append)
    tries("a"), tries("b"), tries("a")
    assert [judged.signature for judged in told] == ["a", "b"]


def test_a_try_that_is_interrupted_is_no_answer(tmp_path: Path) -> None:
    def judge(text: str) -> Judged:
        raise KeyboardInterrupt

    path = tmp_path / "tries.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Tries[str](judge, str, Budget(), path=path)("a")
    assert not path.exists()


def test_a_disk_that_takes_nothing_costs_resuming_and_not_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    tries = tries_of([], tmp_path / "file" / "tries.jsonl")
    assert tries(2).outcome == "same"
    assert "file" in tries.unsaved
