"""The exceptions of idbg, each with a hint for the user.

IdbgError                    every error of ours; has a message (what is wrong, where) and a hint (what to do)
├── BadInput                 what the user gave us cannot be used
│   ├── ProgramError         the program: not found, no torch.compile in it, returns the wrong thing
│   ├── AcceleratorError     the accelerator file: unknown name, wrong key or type; has a line
│   ├── SettingsError        the settings file or an environment variable
│   └── OutputError          the output folder, a session folder
├── ConstraintViolation      strict mode: the program breaks the accelerator's rules; has every violation
└── WorkerError              the worker could not start or died
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from idbg.schema.programs import Failure
from idbg.schema.violations import Violation


class IdbgError(Exception):
    """Something that we can explain: one sentence, and a hint that says what to do next."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message

    @property
    def in_one_line(self) -> str:
        """The sentence and the hint, for a line of the screen."""
        return f"{self.message}: {self.hint}" if self.hint else self.message

    def failure(self) -> Failure:
        """The error as data, as events and reports carry it."""
        return Failure(kind="idbg", type=type(self).__name__, message=self.message, hint=self.hint)


class BadInput(IdbgError):
    """What the user gave us cannot be used."""

    def failure(self) -> Failure:
        return Failure(kind="input", type=type(self).__name__, message=self.message, hint=self.hint)


class ProgramError(BadInput):
    """There is no such program, or it is not one that can be compiled."""


class AcceleratorError(BadInput):
    """`line` is 1-based in the accelerator file, 0 if it is not known."""

    def __init__(self, message: str, *, hint: str, line: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.line = line


class SettingsError(BadInput):
    """The settings file or an environment variable says what cannot be."""


class OutputError(BadInput):
    """A folder or file cannot be written, or is not what it is taken for."""


@contextmanager
def output_errors(what: str, hint: str) -> Iterator[None]:
    """Raise OutputError where an OSError ends the block: `what` cannot be done, and why."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{what}: {error.strerror or error}", hint=hint) from error


class WorkerError(IdbgError):
    """The process in which torch lives could not start, or died."""

    def failure(self) -> Failure:
        return Failure(kind="worker", type=type(self).__name__, message=self.message, hint=self.hint)


class ConstraintViolation(IdbgError):
    """Strict mode stopped a compile. The message names every violation; `repro` is a path once one was written."""

    def __init__(self, violations: Sequence[Violation], *, accelerator: str, repro: str = "") -> None:
        self.violations = tuple(violations)
        self.repro = repro
        number = len(violations)
        lines = [f"{number:,} violation{'s' * (number != 1)} of the rules of {accelerator}:"]
        lines += [f"  {violation}" for violation in self.violations]
        if repro:
            lines.append(f"repro: {repro}")
        super().__init__(
            "\n".join(lines), hint="relax the rule, change the line, or compile anyway: --warn, s on the screen"
        )

    def failure(self) -> Failure:
        return Failure(
            kind="constraints", type=type(self).__name__, message=self.message, hint=self.hint, repro=self.repro
        )


def exception_text(error: BaseException) -> str:
    """The exception's own words. They come from the program's code, which may raise, or give what is no text."""
    try:
        return str(error)
    except BaseException as other:  # the program's own __str__: what it raises, SystemExit too, is no end of ours
        return f"{type(error).__name__}, whose own __str__ raised {type(other).__name__}"


def typed_text(error: BaseException) -> str:
    """The exception's type and its own words: "ValueError: no such op"."""
    return f"{type(error).__name__}: {exception_text(error)}"


_OUT_OF_MEMORY = re.compile(r"\w+ out of memory\. Tried to allocate [\d.]+ \w+")


def first_line(error: BaseException) -> str:
    """The first line of the exception's message; its type where it has none. A compiler's message can be 100 kB."""
    line = exception_text(error).strip().partition("\n")[0] or type(error).__name__
    short = _OUT_OF_MEMORY.match(line)  # torch goes on with the numbers of its allocator
    return short[0] if short else line


def spelled(value: object) -> str:
    """`repr` of a value of the program's, which may raise as well."""
    try:
        return repr(value)
    except BaseException:  # as in `exception_text`
        return f"a {type(value).__name__}"
