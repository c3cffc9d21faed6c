"""Find the options, of those that differ between two sets, that make the program fail."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.bisect.tries import BisectTries, compared
from idbg.config.options import INDUCTOR, family, parse
from idbg.reduce.ddmin import ddmin
from idbg.schema.bisection import Bisected, FailingOptions, OptionDifference, OptionSet, Outcome, Try
from idbg.schema.diff import Comparison
from idbg.schema.errors import BadInput, IdbgError
from idbg.schema.programs import Target
from idbg.schema.remarks import Remark
from idbg.whole_file import read_whole

CONFIGS = ("dynamo", "functorch")
"""Beside Inductor's, whose options need no name before them."""

TARGETS: Mapping[str, object] = {
    "backend": str,
    "device": str,
    "dynamic": bool | None,
    "float64": str,
    "accelerator": str,
}
"""The fields of a target that an option set can have, as "target.NAME"."""


def of_texts(texts: Sequence[str]) -> OptionSet:
    """`NAME=VALUE` each, as `--option` takes them. Raises BadInput."""
    return _checked(dict(parse(text) for text in texts))


def of_file(path: Path) -> OptionSet:
    """A TOML file: Inductor's options, and tables `dynamo`, `functorch` and `target`; any other table
    stands for Inductor's options with a dot. Raises BadInput.
    """
    try:
        tables = tomllib.loads(read_whole(path).decode())
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}", hint="name a TOML file of options") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not TOML: {error}", hint="NAME = VALUE, a line each") from error
    try:
        return _checked(msgspec.convert(dict(_flat(tables, "")), OptionSet))
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}", hint="give plain values") from error


def _flat(tables: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from _flat(value, before if (before, name) == ("", INDUCTOR) else f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _checked(options: OptionSet) -> OptionSet:
    for name, value in options.items():
        table, _, rest = name.partition(".")
        if table != "target":
            continue
        if rest not in TARGETS:
            raise BadInput(f"a target has no {rest!r}", hint=f"it has {', '.join(TARGETS)}")
        try:
            msgspec.convert(value, TARGETS[rest])
        except msgspec.ValidationError as error:
            raise BadInput(f"{name} cannot be {value!r}", hint=str(error)) from error
    return options


def with_options(attempt: Try, options: OptionSet) -> Try:
    """The try under these options beside those that it has."""
    own = {name: value for name, value in options.items() if not name.startswith(("target.", *_dotted(CONFIGS)))}
    settings = {name: value for name, value in options.items() if name.startswith(_dotted(CONFIGS))}
    changes = {name.removeprefix("target."): value for name, value in options.items() if name.startswith("target.")}
    target = msgspec.convert({**msgspec.to_builtins(attempt.target), **changes}, Target)
    target = replace(target, options={**target.options, **own}, options_for=family(target.backend))
    return replace(attempt, target=target, settings={**attempt.settings, **settings})


def _dotted(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in names)


def differences(failing: OptionSet, passing: OptionSet) -> list[OptionDifference]:
    """The differences of the failing set from the passing one, by name."""
    names = sorted({*failing, *passing})
    return [
        OptionDifference(name, failing.get(name), passing.get(name), unset=name not in passing)
        for name in names
        if failing.get(name, msgspec.UNSET) != passing.get(name, msgspec.UNSET)
    ]


@dataclass
class OptionSearch:
    """One search: one of two sets fails. `found` is the result so far, also if it was stopped."""

    attempt: Try
    tries: BisectTries
    sets: tuple[OptionSet, OptionSet]
    names: tuple[str, str] = ("the first set", "the second set")
    found: list[FailingOptions] = field(default_factory=list)
    note: Remark | str = ""  # why there is no result

    def run(self) -> None:
        """Search. Raises BadInput where neither set can be tried, Stopped."""
        one, two = self.sets
        if one == two:
            raise BadInput("the two sets of options are the same", hint="let them differ")
        outcomes = [self._end(options, name) for options, name in zip(self.sets, self.names, strict=True)]
        if outcomes == ["passes", "passes"] and self.attempt.comparison is None:
            self.attempt = replace(self.attempt, comparison=Comparison(seconds=self.tries.seconds))
            outcomes = [
                self._end(options, f"{name}, compared") for options, name in zip(self.sets, self.names, strict=True)
            ]
        if outcomes[0] == outcomes[1]:
            self.note = Remark("neither fails" if outcomes[0] == "passes" else "both fail")
        elif "other" in outcomes:
            self.note = Remark("fail otherwise", detail=self.tries.tried[-1].otherwise)
        else:
            failing, passing = (one, two) if outcomes[0] == "fails" else (two, one)
            self.found = [smallest(self.attempt, self.tries, failing, passing, self._better)]

    def known(self) -> Bisected:
        """The result so far."""
        return Bisected("options", options=tuple(self.found))

    def _end(self, options: OptionSet, name: str) -> Outcome:
        attempt = with_options(self.attempt, options)
        if self.tries.sought is None:
            return "passes" if self.tries.first(attempt, name).signature is None else "fails"
        return self.tries(attempt, name)[0]

    def _better(self, found: FailingOptions) -> None:
        self.found = [found]


def smallest(
    attempt: Try,
    tries: BisectTries,
    failing: OptionSet,
    passing: OptionSet,
    better: Callable[[FailingOptions], None] = lambda found: None,
) -> FailingOptions:
    """The smallest part of the differences that makes it fail; the failing set fails, and the passing one does not.

    A part that fails otherwise counts as one that does not fail. Raises Stopped.
    """
    whole = differences(failing, passing)

    def fails(part: Sequence[OptionDifference]) -> bool:
        outcome, _ = tries(with_options(attempt, _taken(failing, passing, part)), describe(part))
        return outcome == "fails"

    def smaller(part: Sequence[OptionDifference]) -> None:
        better(FailingOptions(tuple(part), len(whole), minimal=False, words=words))

    words = tries.answer.words
    smaller(whole)
    return FailingOptions(tuple(ddmin(whole, fails, smaller)), len(whole), words=words)


def _taken(failing: OptionSet, passing: OptionSet, part: Sequence[OptionDifference]) -> OptionSet:
    """The passing set with these of the failing one's options."""
    options = dict(passing)
    for one in part:
        if one.name in failing:
            options[one.name] = one.failing
        else:
            options.pop(one.name, None)
    return options


@dataclass
class FuzzSearch:
    """Searches random options for those that fail; options that were found are not drawn again."""

    attempt: Try
    tries: BisectTries
    count: int
    seed: int = 0
    found: list[FailingOptions] = field(default_factory=list)
    note: Remark | str = ""

    def run(self) -> None:
        """Search. Raises BadInput where the program fails (or cannot be tried) without any option, Stopped."""
        self.attempt = compared(self.attempt, self.tries)
        if self.tries.sought is not None:
            self.note = Remark("fails without", detail=self.tries.answer.words)
            return
        for number in range(self.count):
            self._draw(number)
        self.tries.sought = None

    def known(self) -> Bisected:
        """The result so far."""
        return Bisected("fuzz", options=tuple(self.found))

    def _draw(self, number: int) -> None:
        answer = self.tries.answer_to(replace(self.attempt, seed=self.seed + number, comparison=None))
        known = {one.name for found in self.found for one in found.options}
        drawn = {name: value for name, value in (answer.drawn or {}).items() if name not in known}
        if answer.cannot:
            raise IdbgError(f"no options can be drawn: {answer.cannot}", hint="give two sets of your own")
        self.tries.sought = None
        outcome, failed = self.tries(with_options(self.attempt, drawn), f"draw {number + 1}, {len(drawn)} options")
        if outcome != "fails":
            return
        self.tries.look_for(failed, self.tries.tried[-1].seconds)
        self.found.append(smallest(self.attempt, self.tries, drawn, {}))


def describe(part: Sequence[OptionDifference]) -> str:
    """Describe options: by name, if they are few."""
    return ", ".join(one.failing_text for one in part) if len(part) <= 3 else f"{len(part)} of these options"
