"""Show each setting, its value, and its origin."""

import argparse
import os

from idbg.cli import exits, output, tables
from idbg.config import arguments, settings
from idbg.format.plain_text import one_line
from idbg.schema import strict_json
from idbg.views.tree import Cell, Column, Row, Section, Table, words

HELP = "show each setting, its value, and its origin"
ABOUT = """\
Show each setting with its value and its origin: a line of your settings file, a line of [tool.idbg] in the project's
pyproject.toml, an environment variable, a flag, or the default. The later of these wins.

Flags of this command count as in `idbg run`. An unknown key is an error, with the nearest known one.
"""
EXAMPLES = (
    ("idbg config", "every setting"),
    ("idbg config --backend inductor --json", "as JSON, with this flag"),
    ("idbg config --path", "the path of your settings file"),
)
EXITS = {exits.DONE: "the settings were printed"}
FILES = (("pyproject.toml", "the nearest one from the working directory upward that has [tool.idbg]"),)
SEE = ("info", "switches")

_COLUMNS = (Column("value", least=12), Column("from", least=12))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--path", action="store_true", help="print only the path of your settings file")
    tables.add_sort(parser)
    arguments.add_target(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    file = settings.path(os.environ)
    if args.path and not args.json:
        output.say(str(file))
        return exits.DONE
    found = settings.explained(os.environ, arguments.flags_of(args))
    project = settings.project()
    output.report(
        lambda: {
            "schema": "idbg.config/1",
            "file": str(file),
            "project": str(project) if project else None,
            "settings": {
                name: {**values[0]._asdict(), "lost": [each._asdict() for each in values[1:]]}
                for name, values in found.items()
            },
        },
        lambda: tables.text(_section(found), args.sort),
    )
    if not args.json:
        output.note(f"your settings file: {file}{'' if file.exists() else ' (not there yet)'}")
        if project:
            output.note(f"the project's: [tool.idbg] of {project}")
    return exits.DONE


def _section(found: dict[str, list[settings.Sourced]]) -> Section:
    rows = [
        Row(name, words(one_line(name, 100)), (Cell(_value(values[0].value)), Cell(one_line(values[0].origin, 300))))
        for name, values in found.items()
    ]
    return Section("Settings", "", len(rows), body=(Table(_COLUMNS, rows, "setting"),))


def _value(value: object) -> str:
    """As in TOML; a dash where it is not set."""
    return "-" if value is None or value == "" else one_line(strict_json.encode(value).decode(), 200)
