"""Are bytes, counts, times, shares and errors said as people read them?"""

import pytest

from idbg.format import amounts
from idbg.format.amounts import NOTHING, column_share, column_size, counted, duration, exact_size, figure, share, size


@pytest.mark.parametrize(
    ("count", "rounded", "in_column", "exact"),
    [
        (12, "12 B", "12 B", "12 bytes"),
        (784 << 10, "784 KiB", "784.0 KiB", "802816 bytes"),
        (3 << 19, "1.5 MiB", "1.5 MiB", "1572864 bytes (1.5 MiB)"),
        (2 << 30, "2 GiB", "2.0 GiB", "2147483648 bytes (2.0 GiB)"),
    ],
)
def test_bytes(count: int, rounded: str, in_column: str, exact: str) -> None:
    assert (size(count), column_size(count), exact_size(count)) == (rounded, in_column, exact)


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (1, "node", "1 node"),
        (2000, "node", "2,000 nodes"),
        (0, "boundary", "0 boundaries"),
        (2, "kernel launch", "2 kernel launches"),
        (3, "other fix", "3 other fixes"),
        (2, "mismatch", "2 mismatches"),
    ],
)
def test_plurals(number: int, noun: str, said: str) -> None:
    assert counted(number, noun) == said


def test_durations_have_three_digits_in_the_unit_that_shows_them() -> None:
    assert [duration(value) for value in (0.0123, 0.9, 12.345, 1234.5)] == ["12.3 µs", "900 µs", "12.3 ms", "1.23 s"]


def test_a_share_has_two_digits_or_more_and_in_a_column_one_decimal() -> None:
    assert [share(part) for part in (0.0052, 0.031, 0.124, 11.8)] == ["0.52 %", "3.1 %", "12 %", "1,180 %"]
    assert (column_share(0.124), column_share(None)) == ("12.4 %", NOTHING)


def test_what_was_not_measured_is_no_figure() -> None:
    assert (figure(None), amounts.column_figure(None)) == ("not measured", "-")
