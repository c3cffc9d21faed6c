"""What does each argument of each command take, as far as a shell can know?"""

import argparse
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from idbg.cli import manual, parsing, screen, verbs

Kind = Literal["", "accelerator", "backend", "command", "file", "folder", "program", "python", "session"]

KINDS: Mapping[str, Kind] = {
    "ACCELERATOR": "accelerator",
    "BACKEND": "backend",
    "BACKEND[:MODE]": "backend",
    "VERB": "command",
    "FILE": "file",
    "FILE.json": "file",
    "FILE.toml": "file",
    "FILE:LINE": "file",
    "PYTHON": "file",
    "REFERENCE": "session",
    "SCRIPT": "file",
    "FOLDER": "folder",
    "FILE.py[:NAME]": "python",
    "SESSION": "session",
    "SESSION|FILE.py[:NAME]": "program",
}
"""What stands for what in help -> what a shell offers for it; for any other name it offers nothing."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "DEVICE": ("cpu", "cuda", "cuda:0", "mps", "xpu"),
    "DTYPE": ("float32", "bfloat16", "float16"),
    "MODE": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    "STANCE": ("default", "eager_on_recompile", "eager_then_compile", "fail_on_recompile", "force_eager"),
}
"""The same for what takes any word, some of which are well known."""


class Argument(NamedTuple):
    """`flags` is empty for what is told by its place. `many`: it takes all words up to the next flag; `optional`: it
    may stand alone; `repeats`: it may be given again.
    """

    flags: tuple[str, ...]
    name: str
    help: str
    kind: Kind
    words: tuple[str, ...]
    takes: bool
    many: bool
    optional: bool
    repeats: bool


class Command(NamedTuple):
    """A command, or a command's own: "accelerators show". The first of `arguments` are those that are told by place."""

    name: str
    help: str
    arguments: tuple[Argument, ...]
    commands: tuple["Command", ...]

    @property
    def flags(self) -> tuple[Argument, ...]:
        """Those with a flag."""
        return tuple(each for each in self.arguments if each.flags)

    @property
    def places(self) -> tuple[Argument, ...]:
        """Those that are told by their place."""
        return tuple(each for each in self.arguments if not each.flags)


class Program(NamedTuple):
    """What is started: `idbg`, which has commands, or `idbg-tui`, which has none."""

    name: str
    command: Command


def programs() -> list[Program]:
    """Ours. Every command is imported for it."""
    commands = tuple(_command(name, parsing.of_command(name), verbs.help_of(name)) for name in verbs.names())
    flags = _command("idbg", parsing.top(), "").flags
    return [
        Program("idbg", Command("idbg", "", flags, commands)),
        Program("idbg-tui", _command("idbg-tui", screen.parser(), screen.HELP)),
    ]


def _command(name: str, parser: argparse.ArgumentParser, words: str) -> Command:
    own: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            own += [_command(each, sub, helps.get(each, "")) for each, sub in action.choices.items()]
    return Command(name, words, tuple(_arguments(parser)), tuple(own))


def _arguments(parser: argparse.ArgumentParser) -> Iterator[Argument]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        name = manual.named(action)
        yield Argument(
            tuple(action.option_strings),
            name,
            first_clause(manual.helped(action)),
            KINDS.get(name, ""),
            tuple(map(str, action.choices or WORDS.get(name, ()))),
            action.nargs != 0,
            action.nargs in ("*", "+") or (isinstance(action.nargs, int) and action.nargs > 1),
            action.nargs == "?",
            isinstance(action, argparse._AppendAction) or action.nargs in ("*", "+"),
        )


def first_clause(words: str) -> str:
    """As much of the help as there is room for beside a candidate."""
    for end in ("; ", ": ", ", "):
        head = words.partition(end)[0]
        if len(words) > 60 and len(head) >= 12:
            words = head
    return words if len(words) <= 72 else words[:69] + "..."
