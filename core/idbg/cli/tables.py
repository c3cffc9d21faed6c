"""Print the tables of a section, sorted as the user wants them."""

import argparse
from collections.abc import Sequence
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


def check_sort(wanted: str | None, known: Sequence[str]) -> None:
    """Raises BadInput where --sort names none of these columns."""
    if wanted and known and _parsed(wanted)[0] not in known:
        raise BadInput(f"--sort: there is no column {wanted!r}", hint=f"the columns are {', '.join(known)}")


def _parsed(wanted: str) -> tuple[str, Direction]:
    name, _, direction = wanted.rpartition(":")
    return (name, cast("Direction", direction)) if direction in _DIRECTIONS else (wanted, "")


def say(section: Section, wanted: str | None = None, most: int | None = None, *, check: bool = True) -> None:
    """Print the section within the terminal's width, its rows as --sort wants them. Raises BadInput where it has no
    such column; without `check` its rows stay as they are then.
    """
    from idbg.render import text  # not at the top: whoever reads a command line prints no table

    if check:
        check_sort(wanted, sorting_columns(section))
    output.say(text.text(in_order(section, wanted), most, output.width()))


def in_order(section: Section, wanted: str | None) -> Section:
    """The section with its rows as --sort wants them."""
    return ordered(section, *_parsed(wanted)) if wanted else section
