"""The first of many in a row with which it fails, where some cannot tell."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idbg.reduce.ddmin import first_failing


def row(first: int, silent: set[int], asked: list[int]) -> Callable[[int], bool | None]:
    def fails(number: int) -> bool | None:
        asked.append(number)
        return None if number in silent else number >= first

    return fails


@given(st.data())
def test_it_is_between_the_last_that_passes_and_the_first_that_fails(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 60))
    first = data.draw(st.integers(1, count))
    silent = data.draw(st.sets(st.integers(1, count)))
    asked: list[int] = []
    low, high = first_failing(count, row(first, silent, asked))
    assert low < first <= high
    assert set(range(low + 1, high)) <= silent
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("count", [1, 2, 19, 1_000, 1_934])
def test_halves_take_as_many_tries_as_the_count_has_bits(count: int) -> None:
    for first in {1, min(2, count), count // 2, count // 2 + 1, count - 1, count} - {0}:
        asked: list[int] = []
        assert first_failing(count, row(first, set(), asked)) == (first - 1, first)
        assert len(asked) <= count.bit_length()
