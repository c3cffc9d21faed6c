"""List the settings that can be flipped: how each is given on a command line, its default, what torch says of it."""

import textwrap
from collections.abc import Iterable
from itertools import groupby

from idbg.config.switches import UNLISTED, is_changed, spelled, spelled_all, value_of
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg.schema.programs import OptionValue, Switch, Target
from idbg.views.tree import Cell, Column, Row, Section, Table, words

_OF_TARGET = (Column("value", least=13), Column("type", least=5), Column("meaning", "sentence", least=10))
_NAMES = 42  # cells of a name, before others give way
COLUMNS = ("switch", "default")
FLAGS = {"option": "--option", "setting": "--setting"}
_WIDTH = 104


def view(switches: Iterable[Switch]) -> Section:
    """A table for each group."""
    found = list(switches)
    groups = groupby(found, key=lambda switch: switch.group)
    tables = [Table((Column("default", least=12),), [_row(each) for each in of], "switch", name) for name, of in groups]
    return Section("Switches", counted(len(found), "switch"), len(found), body=tuple(tables))


def of_target(switches: Iterable[Switch], target: Target, *, only_changed: bool = False) -> Section:
    """Each switch as it is in the target of the next run, by group; `count` is how many were changed."""
    groups = []
    total = 0
    for name, members in groupby(switches, key=lambda switch: switch.group):
        rows = [_set(each, target) for each in members if not only_changed or is_changed(each, target)]
        changed = sum(bool(row.cells[0].tone) for row in rows)
        total += changed
        heading = words((name, "strong"), (f"  {changed} changed" if changed else "", "accent"))
        groups += [Row(("group", name), heading, rows=rows, open="all")] if rows else []
    tables = (Table(_OF_TARGET, groups, "switch", least=_NAMES),) if groups else ()
    return Section("Switches", "", total, body=tables)


def _set(switch: Switch, target: Target) -> Row:
    value, changed = value_of(switch, target), is_changed(switch, target)
    meaning = " ".join(switch.meaning.split()) or "torch says nothing of it"
    return Row(
        ("switch", switch.place, switch.name),
        words((f"{MARKS['dot'] if changed else ' '} ", "accent"), (switch.name, "strong" if changed else "")),
        (
            Cell(value_words(switch, value), "accent" if changed else ""),
            Cell(switch.type, "dim"),
            Cell(meaning, "dim"),
        ),
        copied=f"{switch.name}={spelled(value)}",
    )


def facts(switch: Switch) -> str:
    """How it is set, and what it can be."""
    if switch.group == UNLISTED:
        return f"given to this session as it began; ^x takes {switch.name} away"
    known = [flag(switch), f"torch's default: {value_words(switch, switch.default)}"]
    if switch.choices and switch.type != "bool":
        known.append(f"it can be {spelled_all(switch.choices)}")
    return "   ".join(known)


def value_words(switch: Switch, value: OptionValue) -> str:
    """A value, for a person: "the program's" where it is left to the program."""
    left = switch.place == "target" and value in ("", None)
    return "the program's" if left else "none" if value == [] else spelled(value)


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
