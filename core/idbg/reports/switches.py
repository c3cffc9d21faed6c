"""Report the settings that can be flipped, as text and as JSON."""

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby

from idbg.schema.programs import Switch

FLAGS = {"option": "--option", "setting": "--setting"}
_WIDTH = 110


def text(switches: Iterable[Switch]) -> Iterator[str]:
    """By group: how it is given on a command line, its default, what else it can be, and what torch says of it."""
    for number, (group, members) in enumerate(groupby(switches, key=lambda switch: switch.group)):
        if number:
            yield ""
        yield group
        for switch in members:
            yield f"  {flag(switch)}   {default_words(switch)}"
            for line in switch.meaning.splitlines() or ["torch says nothing of it"]:
                yield from textwrap.wrap(line, _WIDTH, initial_indent="      ", subsequent_indent="      ") or [""]


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


def as_json(switches: Iterable[Switch]) -> dict[str, object]:
    """The same, whole."""
    return {"schema": "idbg.switches/1", "switches": tuple(switches)}
