"""Print the tables of a section, sorted as --sort says."""

import argparse
from collections.abc import Sequence
from typing import cast

from idbg.cli import output
from idbg.schema.errors import BadInput
from idbg.views.tree import Direction, Section, ordered, sorting_columns


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
    return (name, cast("Direction", direction)) if direction in ("up", "down") else (wanted, "")


def text(
    section: Section, wanted: str | None = None, most: int | None = None, *, check: bool = True, sides: int = 0
) -> str:
    """The section within the terminal's width, sorted by --sort. Raises BadInput where it has no such column; without
    `check` its rows stay as they are then. `sides`: see `render.text.lines`.
    """
    from idbg.render.text import lines  # not at the top: a command line is parsed without it

    if check:
        check_sort(wanted, sorting_columns(section))
    if wanted:
        section = ordered(section, *_parsed(wanted))
    return "\n".join(lines(section, most, output.width(), sides))
