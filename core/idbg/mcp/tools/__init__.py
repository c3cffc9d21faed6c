"""Which tools are there? A module of this room is one: its name, what it takes, and which command of idbg answers."""

import pkgutil
from importlib import import_module
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, cast

import msgspec

from idbg.mcp.command import Done
from idbg.mcp.where import Where
from idbg.schema.errors import BadInput


class Told(NamedTuple):
    """What a command answered, for somebody in a hurry: `said` in a sentence, `facts` by name. `more` says how what is
    left out of them is had."""

    said: str
    facts: dict[str, object]
    more: str = ""


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tool takes; the fields are the schema that a client is told."""


class Tool(Protocol):
    """What a module of this room has. `RUNS`: it runs the program, which takes its time and can do anything."""

    ABOUT: ClassVar[str]
    RUNS: ClassVar[bool]
    Arguments: type[Arguments]

    def argv(self, asked: Any, where: Where) -> list[str]:
        """The command line after `idbg`. Raises IdbgError for what cannot be asked."""

    def tell(self, asked: Any, done: Done) -> Told:
        """What it answered."""


def tools() -> dict[str, Tool]:
    """Every tool by its name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return {name: cast("Tool", import_module(f"{__name__}.{name}")) for name in names}


Session = Annotated[
    str, msgspec.Meta(description="A session's name in the output folder, its folder, or 'last' for the newest.")
]
Program = Annotated[
    str,
    msgspec.Meta(
        description="FILE.py, or FILE.py:NAME: a file whose program() gives a model and its inputs, or a script."
    ),
]
Count = Annotated[int, msgspec.Meta(ge=1, le=200)]
From = Annotated[int, msgspec.Meta(ge=0, description="How many to leave out at the beginning: for the next page.")]


class Compiled(Arguments, frozen=True, kw_only=True):
    """What is compiled, for what."""

    program: Program
    backend: Annotated[str, msgspec.Meta(description="aot, inductor, mock, eager, or another's by name.")] = ""
    accelerator: Annotated[str, msgspec.Meta(description="A preset's name or a TOML file of hardware rules.")] = ""
    device: Annotated[str, msgspec.Meta(description="cpu, cuda, ...")] = ""
    options: Annotated[dict[str, str | int | float | bool], msgspec.Meta(description="Inductor's config options.")] = {}

    def flags(self, where: Where) -> list[str]:
        """The program and the flags that say for what it is compiled."""
        given = {"backend": self.backend, "accelerator": self.accelerator, "device": self.device}
        flags = [f"--{name}={value}" for name, value in given.items() if value]
        flags += [f"--option={name}={value}" for name, value in self.options.items()]
        return [plain(self.program), *flags, f"--output={where.output}"]


def plain(text: str) -> str:
    """An argument that is no flag. Raises BadInput."""
    if text.startswith("-") or not text or "\0" in text:
        raise BadInput(f"{text[:80]!r} is no name", hint="give it as it is told, without a flag")
    return text


def page(items: list[Any], start: int, count: int) -> tuple[list[Any], str]:
    """Some of a list, and how the others are had; "" where these are all."""
    some = items[start : start + count]
    end = start + len(some)
    return some, f"{end:,} of {len(items):,} told: skip={end} has the next" if end < len(items) else ""


def grouped(violations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each rule, line and finding, most first: how many nodes, and the names that they have."""
    alike: dict[tuple[object, ...], dict[str, Any]] = {}
    for each in violations:
        shown = {name: each.get(name) for name in ("rule", "severity", "file", "line", "found", "wanted", "fix")}
        group = alike.setdefault(tuple(shown.values()), {**shown, "count": 0, "nodes": []})
        node = each.get("node", "")
        group["count"] += 1
        name = node.get("name", "") if isinstance(node, dict) else node
        if name not in group["nodes"]:  # it has the same name in the graphs of several stages
            group["nodes"].append(name)
    return sorted(alike.values(), key=lambda group: -int(group["count"]))
