"""Rows that are reached by a number."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Numbered(Protocol):
    """A widget whose rows have numbers from 1 (code: those of its lines)."""

    @property
    def number(self) -> int:
        """That of the cursor's row."""

    @property
    def last_number(self) -> int:
        """That of the last row."""

    def go_to(self, number: int) -> None:
        """Put the cursor on a row, as a key does."""
