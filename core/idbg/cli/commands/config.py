"""Which value has each setting, and where does it come from?"""

import argparse
import os

import msgspec

from idbg.cli import exits, output, tables
from idbg.config import arguments, settings
from idbg.config.settings import Given
from idbg.format.plain_text import one_line
from idbg.schema import strict_json
from idbg.views.tree import Cell, Column, Row, Section, Table, words

HELP = "show each setting, its value, and where that comes from"
ABOUT = """\
Show each setting with its value and who gave it: a line of your settings file, a line of [tool.idbg] in the project's
pyproject.toml, an environment variable, a flag, or nobody (default). The later of these wins.

Flags of this command are told as they would count in `idbg run`. A key that is no setting is an error, with what was
meant.
"""
EXAMPLES = (
    ("idbg config", "every setting"),
    ("idbg config --backend inductor --json", "as JSON, as they would be with this flag"),
    ("idbg config --path", "where your settings file is, or would be"),
)
EXITS = {exits.DONE: "they were told"}
FILES = (("pyproject.toml", "the nearest one from the working directory upward that has [tool.idbg]"),)
SEE = ("info", "switches")

_COLUMNS = (Column("value", least=12), Column("from", least=12))


class Told(msgspec.Struct, frozen=True):
    """A value that was given, and by whom."""

    value: object
    origin: str


class Setting(msgspec.Struct, frozen=True):
    """A value in force; `lost` are the others that were given, the nearest to winning first."""

    value: object
    origin: str
    lost: list[Told]


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting by its name, and the keys of tables as "options.max_autotune". `project` is null without one."""

    schema: str = "idbg.config/1"
    file: str
    project: str | None
    settings: dict[str, Setting]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that settings lose to, and what is told."""
    parser.add_argument("--path", action="store_true", help="only the path of your settings file")
    tables.add_sort(parser)
    arguments.add_target(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Tell each value and its origin; 0. Raises SettingsError for what cannot be."""
    file = settings.path(os.environ)
    if args.path and not args.json:
        output.say(str(file))
        return exits.DONE
    found = settings.explained(os.environ, arguments.chosen_in(args))
    project = settings.project()
    if args.json:
        told = {name: Setting(*given[0], lost=[Told(*each) for each in given[1:]]) for name, given in found.items()}
        output.say_json(Config(file=str(file), project=str(project) if project else None, settings=told))
        return exits.DONE
    tables.say(_section(found), args.sort)
    output.note(f"your settings file: {file}{'' if file.exists() else ' (not there yet)'}")
    if project:
        output.note(f"the project's: [tool.idbg] of {project}")
    return exits.DONE


def _section(found: dict[str, list[Given]]) -> Section:
    rows = [
        Row(name, words(one_line(name, 100)), (Cell(_value(given[0].value)), Cell(one_line(given[0].origin, 300))))
        for name, given in found.items()
    ]
    return Section("Settings", "", len(rows), body=(Table(_COLUMNS, rows, "setting"),))


def _value(value: object) -> str:
    """As TOML has it; what is left open as a dash."""
    return "-" if value is None or value == "" else one_line(strict_json.encode(value).decode(), 200)
