"""Judge candidates within a budget: each once, with answers that a later search can reuse."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from idbg.schema.repros import Budget, OtherFailure

Outcome = Literal["same", "passes", "other"]
"""The failure that is searched for; no failure; another failure, or a candidate that cannot run."""

Candidate = TypeVar("Candidate")


class Stopped(Exception):
    """The search is stopped by its budget or the user; the message says by which."""


@dataclass(frozen=True)
class Judged:
    """The outcome of one candidate: the `signature` of its failure ("" if it cannot run), the `path` of its script, and
    the seconds that it took. `in_eager`: it fails with nothing compiled too, so that it is no failure of a compile.
    """

    outcome: Outcome
    signature: str = ""
    path: str = ""
    seconds: float = 0.0
    in_eager: bool = False


class _Line(msgspec.Struct, frozen=True):
    key: str
    judged: Judged


class Tries(Generic[Candidate]):
    """Calls `judge` once for each candidate; candidates with the same `key` are the same.

    Each answer is appended to `path` as a line of JSON. A later search reads it from there: `known` counts those, which
    take nothing of the budget, and `calls` the candidates that were judged now. `on_answer` is called after each
    distinct candidate. `first_other` is the signature of the first other failure, also of one in eager.
    """

    def __init__(
        self,
        judge: Callable[[Candidate], Judged],
        key: Callable[[Candidate], str],
        budget: Budget,
        *,
        path: Path | None = None,
        on_answer: Callable[[Judged], None] = lambda judged: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self.calls = 0
        self.known = 0
        self.unsaved = ""
        self._judge, self._key, self._on_answer, self._clock = judge, key, on_answer, clock
        self._path, self._begun = path, clock()
        self._earlier = _read(path)
        self._answers: dict[str, Judged] = {}
        self.first_other = ""
        self._others: dict[str, OtherFailure] = {}

    def __call__(self, candidate: Candidate) -> Judged:
        """The answer. Raises Stopped if the budget is used up."""
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
            self.first_other = self.first_other or answer.signature
            if not answer.in_eager:
                self._count_other(answer)
        self._on_answer(answer)
        return answer

    def begin(self, candidate: Candidate) -> None:
        """Judge the first candidate again if an earlier search has judged it. If the outcome differs, the program or
        its compiler has changed, and all earlier answers are dropped.

        Raises Stopped if the budget is used up.
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
        """Seconds since the search began."""
        return self._clock() - self._begun

    @property
    def mean(self) -> float | None:
        """Mean seconds of a try; None before the first."""
        took = [judged.seconds for judged in self._answers.values()]
        return sum(took) / len(took) if took else None

    @property
    def others(self) -> tuple[OtherFailure, ...]:
        """The other failures, the most frequent first."""
        return tuple(sorted(self._others.values(), key=lambda other: -other.count))

    def eta(self, calls: int) -> float | None:
        """Seconds that this many more tries will take, within the budget; None before the first try."""
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
        """Append an answer; if that fails, the search continues, and `unsaved` says why."""
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
    """The answers of earlier searches; damaged lines are skipped."""
    found: dict[str, Judged] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_bytes().splitlines():
        try:
            answer = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            continue
        found[answer.key] = answer.judged
    return found


def _ends_in_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
