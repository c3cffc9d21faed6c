"""What came of each candidate, and may another be tried?"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from idbg.schema.repros import Budget, OtherFailure

Outcome = Literal["same", "passes", "other"]
"""It fails as what is looked for; it does not fail; it fails otherwise (or is no program at all)."""

Candidate = TypeVar("Candidate")


class Stopped(Exception):
    """The search ends before it is through; says why, in words: a budget, or the user."""


@dataclass(frozen=True)
class Judged:
    """What came of one candidate: `signature` of how it failed ("": as what is no program does), `path` of the script
    that was tried, and the seconds that it took.
    """

    outcome: Outcome
    signature: str = ""
    path: str = ""
    seconds: float = 0.0


class _Line(msgspec.Struct, frozen=True):
    key: str
    judged: Judged


class Tries(Generic[Candidate]):
    """Asks `judge` of each candidate once; two of the same `key` are the same one.

    Each answer is appended to `path`, one line of JSON, as it is given, and a search that is stopped and run again is
    given it from there: those are `known`, and take nothing of the budget; `calls` were made by this search. `told` is
    called after each distinct candidate.
    """

    def __init__(
        self,
        judge: Callable[[Candidate], Judged],
        key: Callable[[Candidate], str],
        budget: Budget,
        *,
        path: Path | None = None,
        told: Callable[[Judged], None] = lambda judged: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self.calls = 0
        self.known = 0
        self.unsaved = ""
        self._judge, self._key, self._told, self._clock = judge, key, told, clock
        self._path, self._begun = path, clock()
        self._earlier = _read(path)
        self._answers: dict[str, Judged] = {}
        self._others: dict[str, OtherFailure] = {}

    def __call__(self, candidate: Candidate) -> Judged:
        """Raises Stopped where it would be a try more than the budget has."""
        key = self._key(candidate)
        answer = self._answers.get(key)
        if answer is not None:
            return answer
        answer = self._earlier.get(key)
        if answer is not None:
            self.known += 1
        else:
            self._stop_where_used_up()
            answer = self._judge(candidate)
            self._save(key, answer)
            self.calls += 1
        self._answers[key] = answer
        if answer.outcome == "other" and answer.signature:
            self._count_other(answer)
        self._told(answer)
        return answer

    def begin(self, candidate: Candidate) -> None:
        """Judge the first candidate of a search anew, where an earlier one judged it. Where it fails as it did, what
        else was found then holds; where not (the program, or what compiles it, is another), nothing of it does.

        Raises Stopped where it would be a try more than the budget has.
        """
        key = self._key(candidate)
        before = self._earlier.get(key)
        if before is None or self._answers:
            return
        del self._earlier[key]
        if self(candidate).outcome == before.outcome:
            return
        self._earlier.clear()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._save(key, self._answers[key])

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return self._clock() - self._begun

    @property
    def mean(self) -> float | None:
        """Seconds that a try took, None before the first."""
        took = [judged.seconds for judged in self._answers.values()]
        return sum(took) / len(took) if took else None

    @property
    def others(self) -> tuple[OtherFailure, ...]:
        """The failures that are others than the one looked for, the most frequent first."""
        return tuple(sorted(self._others.values(), key=lambda other: -other.count))

    def eta(self, calls: int) -> float | None:
        """Seconds that so many tries more will take, as far as the budget goes; None before the first try."""
        if self.mean is None:
            return None
        allowed = min(calls, max(0, self.budget.calls - self.calls))
        return min(allowed * self.mean, max(0.0, self.budget.seconds - self.seconds))

    def _stop_where_used_up(self) -> None:
        if self.calls >= self.budget.calls:
            raise Stopped(f"its {self.budget.calls:,} tries are used up")
        if self.seconds >= self.budget.seconds:
            raise Stopped(f"its {self.budget.seconds:,.0f} seconds are used up")

    def _count_other(self, judged: Judged) -> None:
        met = self._others.get(judged.signature) or OtherFailure(judged.signature, 0, judged.path)
        self._others[judged.signature] = msgspec.structs.replace(met, count=met.count + 1, path=met.path or judged.path)

    def _save(self, key: str, judged: Judged) -> None:
        """A disk that is full costs resuming, not the search: `unsaved` says why."""
        if self._path is None or self.unsaved:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab", buffering=0) as file:
                torn = file.tell() and not _ends_in_newline(self._path)
                file.write((b"\n" if torn else b"") + msgspec.json.encode(_Line(key, judged)) + b"\n")
        except OSError as error:
            self.unsaved = str(error)


def _read(path: Path | None) -> dict[str, Judged]:
    """The answers of earlier searches. A line that was not written to its end is none."""
    found: dict[str, Judged] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_bytes().splitlines():
        try:
            told = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            continue
        found[told.key] = told.judged
    return found


def _ends_in_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
