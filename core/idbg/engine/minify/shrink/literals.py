"""Find numbers, dtypes, devices and arguments in lines of Python, and replace them.

Lines are edited in place, so that comments and spelling stay. Nothing is found in text that does not parse.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from idbg.reduce.sources import Edit, Placed, PythonSource, bound_by_imports


@dataclass(frozen=True)
class Span:
    """A piece of the text, from byte to byte."""

    start: int
    end: int


@dataclass(frozen=True)
class Number(Span):
    """A number as it is written, without its sign. `is_place`: it is a dimension or an index, not a size."""

    value: int | float
    is_place: bool = False


@dataclass(frozen=True)
class Droppable:
    """An argument of a call. `text`: its name, or its value if it has none."""

    node: ast.expr | ast.keyword
    text: str

    @property
    def is_named(self) -> bool:
        """Whether it has a keyword."""
        return isinstance(self.node, ast.keyword)


def numbers(lines: Sequence[str]) -> list[Number]:
    """The numbers in the order of the text; a replaced number keeps its index in this list."""
    source = source_of(lines)
    nodes = _nodes(source)
    places = {id(each) for node in nodes for each in _places(node)}
    found = [
        Number(*_ends(source, node), value=node.value, is_place=id(node) in places)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    ]
    return sorted(found, key=lambda number: number.start)


def names(lines: Sequence[str]) -> frozenset[str]:
    """The names that the lines read or write."""
    return frozenset(node.id for node in _nodes(source_of(lines)) if isinstance(node, ast.Name))


def renamed(lines: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    """The lines with the name `old` replaced by `new`."""
    source = source_of(lines)
    found = [node for node in _nodes(source) if isinstance(node, ast.Name) and node.id == old]
    return replaced(lines, [(Span(*_ends(source, node)), new) for node in found])


def imported(lines: Sequence[str]) -> frozenset[str]:
    """The names that imports among the lines bind."""
    source = source_of(lines)
    return frozenset(bound_by_imports(source.tree)) if source is not None else frozenset()


def attributes(lines: Sequence[str], spelled: Iterable[str]) -> list[tuple[Span, str]]:
    """The places of these dotted names ("torch.bfloat16")."""
    wanted, source = frozenset(spelled), source_of(lines)
    found = [
        (Span(*_ends(source, node)), text)
        for node in _nodes(source)
        if isinstance(node, ast.Attribute) and (text := ast.unparse(node)) in wanted
    ]
    return sorted(found, key=lambda each: each[0].start)


def devices(lines: Sequence[str]) -> list[tuple[Span, str]]:
    """The places of devices (`device(type='cuda', index=0)`, "cuda:0"), and how the CPU is written there."""
    source = source_of(lines)
    nodes = _nodes(source)
    calls = [(node, ast.unparse(node.func)) for node in nodes if isinstance(node, ast.Call)]
    found = [
        (Span(*_ends(source, node)), f'{name}("cpu")') for node, name in calls if name in ("device", "torch.device")
    ]
    within = [span for span, _ in found]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_device(node.value):
            span = Span(*_ends(source, node))
            if not any(outer.start <= span.start < outer.end for outer in within):
                found.append((span, '"cpu"'))
    return found


def droppable(lines: Sequence[str]) -> list[Droppable]:
    """Arguments that a call may do without, in the order of the text: those with a keyword, and the last of the others
    if it is a constant.
    """
    found: list[Droppable] = []
    for call in _nodes(source_of(lines)):
        if isinstance(call, ast.Call):
            found += [Droppable(each, each.arg or "**") for each in call.keywords]
            if len(call.args) > 1 and not call.keywords and _is_constant(call.args[-1]):
                found.append(Droppable(call.args[-1], ast.unparse(call.args[-1])))
    return sorted(found, key=lambda each: (each.node.lineno, each.node.col_offset))


def without(lines: Sequence[str], dropped: Droppable) -> tuple[str, ...]:
    """The lines without one of their droppable arguments."""
    source = source_of(lines)
    return tuple(source.without([dropped.node]).rstrip("\n").split("\n")) if source is not None else tuple(lines)


def replaced(lines: Sequence[str], edits: Iterable[tuple[Span, str]]) -> tuple[str, ...]:
    """The lines with other text in these places, which do not overlap; unchanged if the result does not parse."""
    source = source_of(lines)
    if source is None or not lines:
        return tuple(lines)
    edited = source.edited([Edit(span.start, span.end, new.encode()) for span, new in edits])
    return tuple(edited.split("\n")) if _parsed(edited) is not None else tuple(lines)


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a subscript, or of an argument like `dim`, that are a dimension or an index."""
    if isinstance(node, ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        yield from (each for item in items if isinstance(item, (ast.Constant, ast.UnaryOp)) for each in ast.walk(item))
    if isinstance(node, ast.keyword) and node.arg in ("dim", "dims", "axis", "start_dim", "end_dim"):
        yield from ast.walk(node.value)


def _is_device(text: str) -> bool:
    return text.partition(":")[0] in ("cuda", "xpu", "mps", "hpu", "privateuseone")


def _is_constant(node: ast.AST) -> bool:
    """Whether an argument is a constant, or a list of constants."""
    inner = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load, ast.Attribute)
    return all(
        isinstance(each, inner) or (isinstance(each, ast.Name) and each.id == "torch") for each in ast.walk(node)
    )


def source_of(lines: Sequence[str]) -> PythonSource | None:
    """The lines with their syntax tree; None if they do not parse. The same object for the same lines."""
    return _parsed("\n".join(lines))


@lru_cache(maxsize=128)  # a step looks at the same lines again and again
def _parsed(text: str) -> PythonSource | None:
    try:
        return PythonSource(text)
    except (SyntaxError, ValueError):
        return None


def _nodes(source: PythonSource | None) -> list[ast.AST]:
    return list(ast.walk(source.tree)) if source is not None else []


def _ends(source: PythonSource | None, node: Placed) -> tuple[int, int]:
    assert source is not None
    return source.start(node), source.end(node)
