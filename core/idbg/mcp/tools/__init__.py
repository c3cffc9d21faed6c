"""The tools. Each module of this package is one: its name, its arguments, and the command of idbg that answers."""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, cast

import msgspec

from idbg.format.amounts import counted
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions
from idbg.schema.errors import BadInput


class Result(NamedTuple):
    """A short answer: a summary in a sentence, and facts by name. `more`: how to get what is left out."""

    summary: str
    facts: dict[str, object]
    more: str = ""


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a tool. The fields are the schema that a client gets."""


class Tool(Protocol):
    """The interface of a tool's module. `RUNS`: it runs the program, which takes time and can do anything."""

    ABOUT: ClassVar[str]
    RUNS: ClassVar[bool]
    Arguments: type[Arguments]

    def argv(self, arguments: Any, allowed: AllowedSessions) -> list[str]:
        """The command line after `idbg`. Raises IdbgError for arguments that are not valid."""

    def summarize(self, arguments: Any, done: Done) -> Result:
        """The short answer."""


def tools() -> dict[str, Tool]:
    """Every tool by its name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return {name: cast("Tool", import_module(f"{__name__}.{name}")) for name in names}


Session = Annotated[
    str,
    msgspec.Meta(
        description="A session's name in the output folder, its folder, or 'last' for the newest; "
        "of one of its processes with its name after it: last/rank3."
    ),
]
Program = Annotated[
    str,
    msgspec.Meta(
        description="FILE.py, or FILE.py:NAME: a file whose program() returns a model and its inputs, or a script."
    ),
]
Count = Annotated[int, msgspec.Meta(ge=1, le=200)]
From = Annotated[int, msgspec.Meta(ge=0, description="How many to skip: for the next page.")]


class Compiled(Arguments, frozen=True, kw_only=True):
    """The program and the target."""

    program: Program
    backend: Annotated[str, msgspec.Meta(description="aot, inductor, mock, eager, or another's by name.")] = ""
    accelerator: Annotated[str, msgspec.Meta(description="A preset's name or a TOML file of hardware rules.")] = ""
    device: Annotated[str, msgspec.Meta(description="cpu, cuda, ...")] = ""
    options: Annotated[dict[str, str | int | float | bool], msgspec.Meta(description="Inductor's config options.")] = {}

    def command_line(self, allowed: AllowedSessions) -> list[str]:
        """The program and the flags of the target."""
        target = flags(backend=self.backend, accelerator=self.accelerator, device=self.device)
        options = [f"--option={name}={value}" for name, value in self.options.items()]
        return [plain(self.program), *target, *options, f"--output={allowed.output}"]


def flags(**values: object) -> list[str]:
    """--name=value for each value that is set; --name for True."""
    named = {f"--{name.replace('_', '-')}": value for name, value in values.items() if value}
    return [name if value is True else f"{name}={value}" for name, value in named.items()]


def plain(text: str) -> str:
    """The text, which must not be a flag. Raises BadInput."""
    if text.startswith("-") or not text or "\0" in text:
        raise BadInput(f"{text[:80]!r} is not a name", hint="write the name without a flag")
    return text


def page(items: list[Any], start: int, count: int) -> tuple[list[Any], str]:
    """A page of a list, and how to get the next one; "" on the last page."""
    some = items[start : start + count]
    end = start + len(some)
    return some, f"{end:,} of {len(items):,} shown: skip={end} has the next" if end < len(items) else ""


_MOST_CHARACTERS = 8000  # of a text, in whole lines


def lines_page(name: str, lines: list[str], first: int, shown: Callable[[int, str], str]) -> tuple[str, str, str]:
    """As many lines from this one on as fit, as they are `shown`; which those are, and how to get the next ones. Raises
    BadInput where `first` is after the last.
    """
    if lines and first > len(lines):
        raise BadInput(f"{name} has no line {first:,}", hint=f"it has {counted(len(lines), 'line')}")
    some: list[str] = []
    room = _MOST_CHARACTERS
    for number, line in enumerate(lines[first - 1 :], first):
        text = shown(number, line)
        room -= len(text) + 1
        if room < 0 and some:
            break
        some.append(text)
    after = first + len(some)
    more = f"{len(lines):,} lines in all: first_line={after} has the next" if after <= len(lines) else ""
    return "\n".join(some), f"lines {first} to {after - 1} of {len(lines)}" if lines else "", more


_OF_A_GROUP = ("rule", "severity", "file", "line", "found", "wanted", "fix", "adds", "hint")


def grouped(violations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per rule, line and finding, the most frequent first, with the number and the names of its nodes.

    What is broken at several stages counts once.
    """
    alike: dict[tuple[object, ...], dict[str, Any]] = {}
    for each in (one for one in violations if not one.get("again")):
        shown = {name: each[name] for name in _OF_A_GROUP if each.get(name) not in (None, "")}
        group = alike.setdefault(tuple(shown.values()), {**shown, "count": 0, "nodes": []})
        node = each.get("node", "")
        group["count"] += 1
        name = node.get("name", "") if isinstance(node, dict) else node
        if name not in group["nodes"]:  # the graphs of several stages have the same name
            group["nodes"].append(name)
    return sorted(alike.values(), key=lambda group: -int(group["count"]))
