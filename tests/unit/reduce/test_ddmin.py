"""Which items of a list are enough?"""

from collections.abc import Sequence

import pytest

from idbg.reduce.ddmin import ddmin, swept


@pytest.mark.parametrize(
    ("needed", "most"), [({7}, 8), ({0}, 8), ({99}, 9), ({3, 80}, 22), ({1, 2, 3}, 18), (set(range(0, 100, 10)), 110)]
)
def test_what_is_needed_is_left_in_its_order_after_few_questions(needed: set[int], most: int) -> None:
    asked: list[list[int]] = []

    def fails(items: Sequence[int]) -> bool:
        asked.append(list(items))
        return needed <= set(items)

    assert ddmin(range(100), fails) == sorted(needed)
    assert len(asked) <= most


def test_nothing_to_leave_out_is_nothing_to_ask() -> None:
    def fails(items: Sequence[str]) -> bool:
        raise AssertionError(items)

    assert ddmin(["only"], fails) == ["only"]


def test_items_may_be_equal_and_need_no_hash() -> None:
    assert ddmin([[1], [1], [2]], lambda items: sum(map(len, items)) >= 2) in ([[1], [1]], [[1], [2]])


def test_whoever_stops_it_has_the_smallest_that_failed() -> None:
    best: list[list[int]] = []

    def fails(items: Sequence[int]) -> bool:
        if len(items) < 5:
            raise KeyboardInterrupt
        return 3 in items

    with pytest.raises(KeyboardInterrupt):
        ddmin(range(100), fails, best.append)
    assert 3 in best[-1]


def test_what_can_go_only_once_another_has_gone_goes_too() -> None:
    failing = [{0, 1, 2}, {1, 2}, {1}]
    assert swept([0, 1, 2], lambda items: set(items) in failing) == [1]
