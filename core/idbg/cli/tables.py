"""Print the tables of a section, sorted as the user wants them."""

import argparse
from typing import cast

from idbg.cli import output
from idbg.schema.errors import BadInput
from idbg.views.tree import Direction, Section, ordered, sorting_columns

_DIRECTIONS = ("up", "down")


def add_sort(parser: argparse._ActionsContainer) -> None:
    """--sort COLUMN."""
    parser.add_argument(
        "--sort",
        metavar="COLUMN",
        help="sort the rows by the column of this name, numbers from the largest down; COLUMN:up, COLUMN:down",
    )


def sorted_as_wanted(section: Section, wanted: str | None) -> Section:
    """The section as --sort wants its rows. Raises BadInput where it has no such column."""
    if not wanted:
        return section
    name, _, direction = wanted.rpartition(":")
    if direction not in _DIRECTIONS:
        name, direction = wanted, ""
    known = sorting_columns(section)
    if known and name not in known:
        raise BadInput(f"--sort: there is no column {name!r}", hint=f"the columns are {', '.join(known)}")
    return ordered(section, name, cast("Direction", direction))


def say(section: Section, wanted: str | None = None, most: int | None = None) -> None:
    """Print the section within the terminal's width."""
    from idbg.render import text  # not at the top: whoever reads a command line prints no table

    output.say(text.text(sorted_as_wanted(section, wanted), most, output.width()))
