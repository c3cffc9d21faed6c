"""Which commands are there, and what does each say of itself? A module of `commands/` is one: its file's name is what
the user types.
"""

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

ROOM = os.path.join(os.path.dirname(__file__), "commands")
_HELP = re.compile(r'^HELP = "([^"\\]*)"$', re.MULTILINE)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "compile and look": ("run", "check", "analyze", "watch", "report"),
    "where does it go wrong": ("diff", "bisect", "minify", "repro", "replay"),
    "what does it cost": ("bench", "compare"),
    "what is kept": ("list", "show", "graph", "kernel", "open", "clean"),
    "what is there": ("accelerators", "switches", "config", "info"),
    "begin, and connect": ("tour", "help", "completion", "mcp"),
}
"""How `idbg --help` puts them; what is named nowhere here comes last."""


class CliCommand(Protocol):
    """What a module of `commands/` has. It may also have:

    `ABOUT`: paragraphs that say more than HELP; `SEE`: related commands; `NO_JSON`: why it has no --json;
    `FILES`: pairs of a path or variable and what it is for.
    """

    HELP: str
    """One line, with no capital and no full stop. In double quotes on one line it is read without an import."""
    EXAMPLES: Sequence[tuple[str, str]]
    """Whole command lines that work, each with what it does."""
    EXITS: Mapping[int, str]
    """Statuses of `exits.TABLE` that it exits with, each with when."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Say what its command line is. --json, -v, -q, --color and --help are there already."""

    def run(self, args: Namespace, argv: tuple[str, ...]) -> int:
        """Do it, and give the exit status. `argv` is what stood after `--`."""


def names() -> list[str]:
    """Every command, sorted."""
    files = (entry.name for entry in os.scandir(ROOM) if entry.name.endswith(".py"))
    return sorted(name[:-3].replace("_", "-") for name in files if not name.startswith("_"))


def load(name: str) -> CliCommand:
    """The command of this name, imported."""
    return cast("CliCommand", import_module(f"idbg.cli.commands.{name.replace('-', '_')}"))


def commands() -> dict[str, CliCommand]:
    """Every command by its name: all of them are imported."""
    return {name: load(name) for name in names()}


def help_of(name: str) -> str:
    """Its line of help, read from its source: to import all of them takes longer than all the rest of `idbg --help`."""
    with open(os.path.join(ROOM, f"{name.replace('-', '_')}.py"), encoding="utf-8") as source:
        found = _HELP.search(source.read())
    return found[1] if found else load(name).HELP


def grouped() -> list[tuple[str, list[str]]]:
    """Every command under its group's title, as `idbg --help` has them."""
    there = names()
    groups = [(title, [name for name in group if name in there]) for title, group in GROUPS.items()]
    named = {name for _, group in groups for name in group}
    return [(title, group) for title, group in [*groups, ("more", [n for n in there if n not in named])] if group]
