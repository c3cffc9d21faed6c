"""Pair the lines of two texts."""

from bisect import bisect_right
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Protocol

_MOST, _FEW = 20_000, 2_000  # lines of both: to compare more takes seconds; so many are compared thoroughly


@dataclass(frozen=True)
class PairedText:
    """A text with its title and a short name of it; `problem` says why a file has none."""

    title: str
    text: str
    name: str = ""
    language: str = "python"
    path: str = ""
    problem: str = ""


class LinePairs(Protocol):
    """Which lines of two texts belong together."""

    marks: tuple[frozenset[int], frozenset[int]]

    def beside(self, side: int, line: int) -> int:
        """The other text's line that belongs to this one of `side` (0 or 1), both 1-based."""


class EqualLines:
    """The lines of two texts, 1-based: which of them differ, and which are paired."""

    def __init__(self, left: str, right: str) -> None:
        self.marks: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()
        self._blocks = [(0, 0, 0)]
        lines = left.split("\n"), right.split("\n")
        if len(lines[0]) + len(lines[1]) > _MOST:
            return
        blocks = SequenceMatcher(None, *lines, autojunk=len(lines[0]) + len(lines[1]) > _FEW).get_matching_blocks()
        self._blocks = [(block.a, block.b, block.size) for block in blocks]
        same = [
            {line for block in self._blocks for line in range(block[side], block[side] + block[2])} for side in (0, 1)
        ]
        differ = [frozenset(range(1, len(lines[side]) + 1)) - {line + 1 for line in same[side]} for side in (0, 1)]
        self.marks = differ[0], differ[1]

    def beside(self, side: int, line: int) -> int:
        """The other text's line that is paired with this one of `side` (0 or 1): the equal one, or the next."""
        starts = [block[side] for block in self._blocks]
        block = self._blocks[max(0, bisect_right(starts, line - 1) - 1)]
        return max(1, block[1 - side] + min(line - 1 - block[side], block[2]) + 1)
