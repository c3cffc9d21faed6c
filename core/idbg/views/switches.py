"""List the settings that can be flipped: how each is given on a command line, its default, what torch says of it."""

import textwrap
from collections.abc import Iterable
from itertools import groupby

from idbg.format.amounts import counted
from idbg.schema.programs import Switch
from idbg.views.tree import Cell, Column, Row, Section, Table, words

COLUMNS = ("switch", "default")
FLAGS = {"option": "--option", "setting": "--setting"}
_WIDTH = 104


def view(switches: Iterable[Switch]) -> Section:
    """A table for each group."""
    found = list(switches)
    groups = groupby(found, key=lambda switch: switch.group)
    tables = [Table((Column("default", least=12),), [_row(each) for each in of], "switch", name) for name, of in groups]
    return Section("Switches", counted(len(found), "switch"), len(found), body=tuple(tables))


def _row(switch: Switch) -> Row:
    lines = [line for text in switch.meaning.splitlines() for line in textwrap.wrap(text, _WIDTH) or [""]]
    said = [Row((switch.name, number), words((line, "dim"))) for number, line in enumerate(lines)]
    return Row(switch.name, words((flag(switch), "strong")), (Cell(default_words(switch)),), rows=said, open="text")


def flag(switch: Switch) -> str:
    """How it is given to `idbg`."""
    if switch.place == "target":
        return {"dynamic_sources": "--dynamic-source SOURCE", "cold": "--cold", "dynamic": "--dynamic"}.get(
            switch.name, f"--{switch.name} NAME"
        )
    return f"{FLAGS[switch.place]} {switch.name}={switch.type.replace(' ', '')}"


def default_words(switch: Switch) -> str:
    """Its default, and what else it can be, as Python writes them."""
    others = [choice for choice in switch.choices if choice not in (switch.default, "")]
    can = f", or {', '.join(map(str, others))}" if others else ""
    as_it_is = switch.place == "target" and not switch.default and switch.name not in ("cold", "dynamic_sources")
    return ("the program's" if as_it_is else f"{switch.default!r}") + can
