"""List and load the commands. Each module of `commands/` is one: the name of its file is the command's name."""

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

ROOM = os.path.join(os.path.dirname(__file__), "commands")
_HELP = re.compile(r'^HELP = "([^"\\]*)"$', re.MULTILINE)

GROUPS: Mapping[str, tuple[str, ...]] = {
    "compile and inspect": ("run", "check", "analyze", "watch", "report"),
    "find the cause of a failure": ("diff", "bisect", "minify", "repro", "replay"),
    "measure": ("bench", "compare", "conform"),
    "saved sessions": ("list", "show", "import", "graph", "kernel", "stage", "open", "merge", "clean"),
    "settings and hardware": ("accelerators", "switches", "config", "info"),
    "start and connect": ("tour", "help", "completion", "mcp"),
}
"""The order of `idbg --help`. Commands that are not listed here come last."""


class CliCommand(Protocol):
    """The interface of a module of `commands/`. It may also have:

    `ABOUT`: paragraphs that explain more than HELP; `SEE`: related commands; `NO_JSON`: why it has no --json;
    `FILES`: pairs of a path or variable and its purpose.
    """

    HELP: str
    """One line without a capital and a full stop. It is read without an import if it is in double quotes on one line.
    """
    EXAMPLES: Sequence[tuple[str, str]]
    """Complete command lines that work, each with its purpose."""
    EXITS: Mapping[int, str]
    """The statuses of `exits.TABLE` that it exits with, each with its condition."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare its arguments. --json, -v, -q, --color and --help are added to all commands."""

    def run(self, args: Namespace, argv: tuple[str, ...]) -> int:
        """Run the command, and return the exit status. `argv` are the arguments after `--`."""


def names() -> list[str]:
    """The names of all commands, sorted."""
    files = (entry.name for entry in os.scandir(ROOM) if entry.name.endswith(".py"))
    return sorted(name[:-3].replace("_", "-") for name in files if not name.startswith("_"))


def load(name: str) -> CliCommand:
    """The command of this name, imported."""
    return cast("CliCommand", import_module(f"idbg.cli.commands.{name.replace('-', '_')}"))


def help_of(name: str) -> str:
    """Its HELP, read from the source: importing all commands takes longer than the rest of `idbg --help`."""
    with open(os.path.join(ROOM, f"{name.replace('-', '_')}.py"), encoding="utf-8") as source:
        found = _HELP.search(source.read())
    return found[1] if found else load(name).HELP


def grouped() -> list[tuple[str, list[str]]]:
    """The commands under their group's title, in the order of `idbg --help`."""
    there = names()
    groups = [(title, [name for name in group if name in there]) for title, group in GROUPS.items()]
    named = {name for _, group in groups for name in group}
    return [(title, group) for title, group in [*groups, ("more", [n for n in there if n not in named])] if group]
