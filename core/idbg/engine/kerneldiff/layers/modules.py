"""Read IREE's modules as text: which values are a node's, and which dispatch computes which lines.

Every op of a module is on a line, and IREE locates what it makes of an op at that line. A module that was edited after
its import has the lines that the edit left unchanged, and those that it replaced one by one.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_VALUE = re.compile(r"^\s*(%[\w#]+) = .*-> !torch\.vtensor<\[([\d,?]*)\],(\w+)>$")
_ENTRY = re.compile(r"^(\s*func\.func @main\(.*\) -> )(\(?)(.*?)(\)?)( (?:attributes )?\{.*)$")
_RETURN = re.compile(r"^(\s*(?:func\.)?return )(%.*) : (.*)$")
_DISPATCH = re.compile(
    r"^\s*(%[\w]+)(?::\d+)? = flow\.dispatch @([\w$]+)::@?([\w$.]+|\"[^\"]+\")\S*\(.*\) : \(.*?\) -> (.*?) loc\("
)
_VIEW = "!hal.buffer_view"
_SIGNATURE = re.compile(r"^(\s*util\.func public @main(\$async)?)(\(.*\) -> )(.*?)( attributes .*)$")
_CALL = re.compile(r"^(\s*)(%\w+)(?::\d+)? = util\.call @main\$async(.*) -> .*?( loc\(.*)$")
_UTIL_RETURN = re.compile(r"^(\s*)util\.return (.*?) : (.*?)( loc\(.*)$")
_COMPUTES = re.compile(r"^\s*(?:%\w+ = (?:linalg|arith|math|tensor|iree_linalg_ext)\.|\} -> )")
_AT = re.compile(r'"[^"]*module\.mlir":(\d+):\d+')
_TENSOR = re.compile(r"^tensor<((?:[\d?]+x)*)(\w+)>(?:\{[^}]*\})?$")


@dataclass(frozen=True)
class ModuleValue:
    """A value of a module: its name, its type as text, and the MLIR type of its elements."""

    name: str
    type: str
    element: str


@dataclass(frozen=True)
class Dispatch:
    """A dispatch: the value that it returns, and the lines of the module (from 0) that it computes; `holds`: the line
    whose value it returns, -1 where that is not known.
    """

    name: str
    value: ModuleValue | None
    lines: tuple[int, ...]
    holds: int


def lines_after(before: str, after: str, nodes: Mapping[int, str]) -> dict[int, str]:
    """The node of each line of an edited module, from those of the module before it."""
    old, new = before.splitlines(), after.splitlines()
    found: dict[int, str] = {}
    for tag, low, high, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and high - low == end - start):
            found.update({start + at: nodes[low + at] for at in range(high - low) if low + at in nodes})
    return found


def node_values(text: str, nodes: Mapping[int, str]) -> dict[str, ModuleValue]:
    """The value of each node: the last tensor that its lines compute."""
    return {node: value for node, (_, value) in located_values(text, nodes).items()}


def located_values(text: str, nodes: Mapping[int, str]) -> dict[str, tuple[int, ModuleValue]]:
    """The value of each node, and its line."""
    found: dict[str, tuple[int, ModuleValue]] = {}
    for at, line in enumerate(text.splitlines()):
        if at in nodes and (match := _VALUE.match(line)) is not None:
            name, shape, element = match.groups()
            found[nodes[at]] = at, ModuleValue(name, f"!torch.vtensor<[{shape}],{element}>", element)
    return found


def with_values(text: str, values: Sequence[ModuleValue]) -> str | None:
    """The module, whose function returns these values after its own; None if its text is not as expected."""
    lines = text.splitlines()
    entry = next((at for at, line in enumerate(lines) if _ENTRY.match(line)), -1)
    last = next((at for at, line in enumerate(lines) if at > entry and _RETURN.match(line)), -1)
    if entry < 0 or last < 0:
        return None
    begin, _, types, _, end = _ENTRY.match(lines[entry]).groups()  # type: ignore[union-attr]
    head, names, returned = _RETURN.match(lines[last]).groups()  # type: ignore[union-attr]
    added = [value.type for value in values]
    lines[entry] = f"{begin}({', '.join([types, *added])}){end}"
    lines[last] = f"{head}{', '.join([names, *(value.name for value in values)])} : {', '.join([returned, *added])}"
    return "\n".join(lines)


def dispatches_of(flow: str) -> list[Dispatch]:
    """The dispatches of a module's entry function, in order. What one computes is not known where several share its
    code, which has the places of one of them.
    """
    bodies = dict(_bodies(flow))
    matches = [(line, match) for line in _entry_of(flow) if (match := _DISPATCH.match(line)) is not None]
    calls = Counter(match[2] for _, match in matches)
    found = []
    for line, match in matches:
        value, executable, name, kind = match.groups()
        lines, holds = bodies.get(executable, ((), -1)) if calls[executable] == 1 else ((), -1)
        own = (int(place) - 1 for place in _AT.findall(line.rpartition(" loc(")[2]))
        made = _TENSOR.match(kind)
        held = ModuleValue(value, kind, made[2]) if made is not None else None
        found.append(Dispatch(name.strip('"'), held, tuple(sorted({*lines, *own})), holds))
    return found


def with_dispatches(flow: str, values: Sequence[ModuleValue]) -> str | None:
    """The module after dispatches are formed, which returns these values of dispatches too; None if its text is not as
    expected.

    Its entry function is @main$async; @main calls it and waits for its fence.
    """
    views = [_VIEW] * len(values)
    inside, own, called = "", list[str](), ""
    changed: list[str] = []  # of five lines: both signatures, both returns and the call
    lines = flow.splitlines()
    for at, line in enumerate(lines):
        if match := _SIGNATURE.match(line):
            inside, own = ("async" if match[2] else "main"), match[4].strip("()").split(", ")
            lines[at] = f"{match[1]}{match[3]}({', '.join([*own, *views])}){match[5]}"
        elif inside == "main" and (match := _CALL.match(line)):
            indent, called, arguments, place = match.groups()
            results = f"({', '.join([*own, *views])})"
            lines[at] = (
                f"{indent}{called}:{len(own) + len(values)} = util.call @main$async{arguments} -> {results}{place}"
            )
        elif inside and (match := _UTIL_RETURN.match(line)):
            indent, names, types, place = match.groups()
            exports = [
                f"{indent}%idbg{n} = hal.tensor.export {v.name} : {v.type} -> {_VIEW}" for n, v in enumerate(values)
            ]
            returned = [names, *(f"%idbg{n}" for n in range(len(values)))]
            if inside == "main":
                exports, returned = [], [f"{called}#{n}" for n in range(len(own) + len(values))]
            end = f"{indent}util.return {', '.join(returned)} : {', '.join([types, *views])}{place}"
            lines[at] = "\n".join([*exports, end])
            inside = ""
        else:
            continue
        changed.append(line)
    return "\n".join(lines) if len(changed) == 5 else None


def _entry_of(flow: str) -> Iterator[str]:
    inside = False
    for line in flow.splitlines():
        inside = inside or "util.func public @main$async(" in line
        if inside:
            yield line
            if line.lstrip().startswith("util.return"):
                return


def _bodies(flow: str) -> Iterator[tuple[str, tuple[tuple[int, ...], int]]]:
    """The lines of the source that each executable computes, and the one whose value it stores."""
    name, lines, stored = "", list[str](), ""
    for line in flow.splitlines():
        if match := re.match(r"^\s*flow\.executable private @([\w$]+)", line):
            name, lines, stored = match[1], [], ""
        elif name and "dispatch.tensor.store" in line:
            stored = re.search(r"store (%\w+)", line)[1] if not stored else "several"  # type: ignore[index]
        elif name and re.match(r"^\s*util\.func", line):
            name = ""
        if name:
            lines.append(line)
            if line.startswith("  } loc"):
                places = sorted(
                    {int(place) - 1 for each in filter(_COMPUTES.match, lines) for place in _AT.findall(each)}
                )
                yield name, (tuple(places), _stored_line(lines, stored))
                name = ""


def _stored_line(lines: Sequence[str], stored: str) -> int:
    """The line of the op that computes the stored value; of an op with a body, where that ends."""
    begin = next((at for at, line in enumerate(lines) if stored and re.match(rf"^\s*{re.escape(stored)} = ", line)), -1)
    if begin < 0:
        return -1
    indent = len(lines[begin]) - len(lines[begin].lstrip())
    for line in lines[begin:]:
        places = _AT.findall(line.rpartition(" loc(")[2])
        ends = len(line) - len(line.lstrip()) == indent and (
            (line is lines[begin] and " loc(" in line) or line.lstrip().startswith("}")
        )
        if ends and places:
            return max(map(int, places)) - 1
    return -1
