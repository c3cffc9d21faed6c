"""Which numbers, dtypes and arguments do lines of Python hold, and what are the lines with another one in its place?

Lines are edited where they stand, so that comments and spelling stay. Nothing is found in what does not parse.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A piece of the text, from byte to byte."""

    start: int
    end: int


@dataclass(frozen=True)
class Number(Span):
    """A number as it is written, without its sign. `is_place`: it says which dimension or item, and is no size."""

    value: int | float
    is_place: bool = False


@dataclass(frozen=True)
class Dropped(Span):
    """An argument of a call, with the comma that goes with it. `text`: its name, or what is given where it has none."""

    text: str
    is_named: bool


def numbers(lines: Sequence[str]) -> list[Number]:
    """The numbers in the order of the text: replaced one by one by others, each keeps its place in this list."""
    starts = _starts(lines)
    nodes = _nodes(lines)
    constants = [(node, node.value) for node in nodes if isinstance(node, ast.Constant)]
    places = {id(each) for node in nodes for each in _places(node)}
    found = [
        Number(*_ends(node, starts), value=value, is_place=id(node) in places)
        for node, value in constants
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    return sorted(found, key=lambda number: number.start)


def names(lines: Sequence[str]) -> frozenset[str]:
    """The names that the lines read or write."""
    return frozenset(node.id for node in _nodes(lines) if isinstance(node, ast.Name))


def renamed(lines: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    """The lines with another name in the place of one."""
    starts = _starts(lines)
    found = [node for node in _nodes(lines) if isinstance(node, ast.Name) and node.id == old]
    return replaced(lines, [(Span(*_ends(node, starts)), new) for node in found])


def imported(lines: Sequence[str]) -> frozenset[str]:
    """The names that imports among the lines bind."""
    statements = [node for node in _nodes(lines) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return frozenset((each.asname or each.name).partition(".")[0] for node in statements for each in node.names)


def attributes(lines: Sequence[str], spelled: Iterable[str]) -> list[tuple[Span, str]]:
    """Where one of these dotted names stands ("torch.bfloat16")."""
    wanted = frozenset(spelled)
    found = [
        (Span(*_ends(node, _starts(lines))), text)
        for node in _nodes(lines)
        if isinstance(node, ast.Attribute) and (text := ast.unparse(node)) in wanted
    ]
    return sorted(found, key=lambda each: each[0].start)


def devices(lines: Sequence[str]) -> list[tuple[Span, str]]:
    """Where a device is spelled out, and how the CPU is spelled there: `device(type='cuda', index=0)`, "cuda:0"."""
    calls = [
        (node, ast.unparse(node.func))
        for node in _nodes(lines)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("device", "torch.device")
    ]
    found = [(Span(*_ends(node, _starts(lines))), f'{name}("cpu")') for node, name in calls]
    within = [span for span, _ in found]
    for node in _nodes(lines):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_device(node.value):
            span = Span(*_ends(node, _starts(lines)))
            if not any(outer.start <= span.start < outer.end for outer in within):
                found.append((span, '"cpu"'))
    return found


def droppable(lines: Sequence[str]) -> list[Dropped]:
    """Arguments that a call may do without, from the text's end to its beginning: those with a keyword, and the last of
    the others where it is spelled out.
    """
    starts = _starts(lines)
    found: list[Dropped] = []
    for call in _nodes(lines):
        if not isinstance(call, ast.Call):
            continue
        given: list[ast.expr | ast.keyword] = sorted(
            [*call.args, *call.keywords], key=lambda node: (node.lineno, node.col_offset)
        )
        for at, argument in enumerate(given):
            is_last = at == len(call.args) - 1 and not call.keywords
            if not isinstance(argument, ast.keyword) and not (is_last and at and _is_spelled_out(argument)):
                continue
            start, end = _ends(argument, starts)
            if at:
                start = _ends(given[at - 1], starts)[1]
            elif len(given) > 1:
                end = _ends(given[1], starts)[0]
            is_named = isinstance(argument, ast.keyword)
            text = (argument.arg or "**") if isinstance(argument, ast.keyword) else ast.unparse(argument)
            found.append(Dropped(start, end, text, is_named))
    return sorted(found, key=lambda each: -each.start)


def replaced(lines: Sequence[str], edits: Iterable[tuple[Span, str]]) -> tuple[str, ...]:
    """The lines with other text in these places, which do not overlap; as they were where that is no Python."""
    text = "\n".join(lines).encode()
    for span, new in sorted(edits, key=lambda edit: -edit[0].start):
        text = text[: span.start] + new.encode() + text[span.end :]
    edited = text.decode()
    return tuple(edited.split("\n")) if lines and _parsed(edited) is not None else tuple(lines)


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """What in a subscript, or in an argument named for it, says which item or dimension."""
    if isinstance(node, ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        yield from (each for item in items if isinstance(item, (ast.Constant, ast.UnaryOp)) for each in ast.walk(item))
    if isinstance(node, ast.keyword) and node.arg in ("dim", "dims", "axis", "start_dim", "end_dim"):
        yield from ast.walk(node.value)


def _is_device(text: str) -> bool:
    return text.partition(":")[0] in ("cuda", "xpu", "mps", "hpu", "privateuseone")


def _is_spelled_out(node: ast.expr) -> bool:
    """Whether an argument is a constant, or a list of them."""
    inner = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load, ast.Attribute)
    return all(
        isinstance(each, inner) or (isinstance(each, ast.Name) and each.id == "torch") for each in ast.walk(node)
    )


def _nodes(lines: Sequence[str]) -> list[ast.AST]:
    module = _parsed("\n".join(lines))
    return list(ast.walk(module)) if module is not None else []


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _starts(lines: Sequence[str]) -> list[int]:
    """The byte at which each line begins."""
    starts = [0]
    for line in "\n".join(lines).encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _ends(node: ast.expr | ast.keyword, starts: list[int]) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
