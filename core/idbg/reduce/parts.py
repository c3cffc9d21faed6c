"""Parts of statements that can be left out of a Python file.

Each kind is searched separately, those that remove most first: branches, heads of blocks, decorators, bodies, items of
lists and calls, operands, names, numbers.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from idbg.reduce.names import inlined, renamed
from idbg.reduce.sources import Edit, Placed, PythonSource, bound_by_imports

_SMALL = 2


@dataclass(frozen=True, eq=False)
class Part:
    """A part that can be left out: an `edit`, or the item at `place` of the list with the spans `listed`, whose commas
    depend on the neighbours that are left out with it.
    """

    edit: Edit | None = None
    listed: Sequence[tuple[int, int]] = ()
    place: int = 0
    end: int = 0
    """The offset of the list's closing bracket; 0 for a list that must keep an item."""
    siblings: list["Part"] = field(default_factory=list)
    comma: bool = False
    """Whether it is an item of a tuple, of which a single item needs a comma."""
    also: Sequence[Edit] = ()
    """Further edits that belong to `edit`."""

    @property
    def start(self) -> int:
        """The offset of its first byte."""
        return self.edit.start if self.edit is not None else self.listed[self.place][0]

    def edits(self, gone: Collection["Part"]) -> Iterator[Edit]:
        """The edits that leave it out together with the others in `gone`."""
        if self.edit is not None:
            yield from (self.edit, *self.also)
            return
        held = {id(part) for part in gone}
        away = [id(sibling) in held for sibling in self.siblings]
        if self.place and away[self.place - 1]:
            return  # the first of a run has the edit for all
        last = self.place
        while last + 1 < len(away) and away[last + 1]:
            last += 1
        start, end = self.listed[self.place][0], self.listed[last][1]
        if last + 1 < len(away):
            end = self.listed[last + 1][0]
        elif self.place:
            start = self.listed[self.place - 1][1]
        else:
            end = self.end or end
        lone = self.comma and away.count(False) == 1 and last + 1 == len(away)
        yield Edit(start, end, b"," if lone else b"")


Kind = Callable[[PythonSource], Iterator[Part]]


def _branches(source: PythonSource) -> Iterator[Part]:
    """`else`, `except` and `finally` with their statements; all cases of a match."""
    for block in source.blocks:
        if block.after is not None:
            start, end = source.line_end(source.end(block.after)), source.line_end(source.end(block.statements[-1]))
            if start < end:
                yield Part(Edit(start, end))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler):
            yield Part(Edit(source.line_start(source.start(node)), source.line_end(source.end(node))))


def _heads(source: PythonSource) -> Iterator[Part]:
    """Replace an `if`, `for`, `while`, `with` or `try` by its block."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.If, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.For)):
            body = _dedented(source, node, node.body)
            if not source.of(node).startswith(b"elif"):
                yield Part(Edit(source.start(node), source.end(node), body))


def _loops(source: PythonSource) -> Iterator[Part]:
    """Replace a loop by its first iteration."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For):
            indentation = b" " * node.col_offset
            counts = isinstance(node.iter, ast.Call) and source.of(node.iter.func) == b"range"
            first = b"0" if counts else b"next(iter(" + source.of(node.iter) + b"))"
            body = source.of(node.target) + b" = " + first + b"\n" + indentation + _dedented(source, node, node.body)
            yield Part(Edit(source.start(node), source.end(node), body))


def _other_branches(source: PythonSource) -> Iterator[Part]:
    """Replace an `if` by its `else`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If) and node.orelse and not source.of(node).startswith(b"elif"):
            text = _dedented(source, node, node.orelse)
            yield Part(Edit(source.start(node), source.end(node), re.sub(rb"\Aelif\b", b"if", text)))


def _dedented(source: PythonSource, node: ast.stmt, body: Sequence[ast.stmt]) -> bytes:
    """A block's text with the indentation of the statement that contains it; the first line has none."""
    first, start = body[0], source.start(body[0])
    if source.data[source.line_start(start) : start].strip():
        return source.data[start : source.end(body[-1])]
    start = source.with_comments(start)
    begins = first.lineno - source.data[start : source.start(first)].count(b"\n")
    lines = source.data[start : source.end(body[-1])].split(b"\n")
    surplus = first.col_offset - node.col_offset
    within = _lines_within_strings(body)
    text = [
        line if begins + number in within else line[min(surplus, len(line) - len(line.lstrip())) :]
        for number, line in enumerate(lines)
    ]
    return b"\n".join(text)[node.col_offset :]


def _lines_within_strings(body: Sequence[ast.stmt]) -> set[int]:
    strings = (
        each
        for node in body
        for each in ast.walk(node)
        if isinstance(each, (ast.Constant, ast.JoinedStr)) and (each.end_lineno or 0) > each.lineno
    )
    return {line for each in strings for line in range(each.lineno + 1, (each.end_lineno or 0) + 1)}


def _decorators(source: PythonSource) -> Iterator[Part]:
    for node in ast.walk(source.tree):
        for each in getattr(node, "decorator_list", ()):
            yield Part(Edit(source.line_start(source.start(each)), source.line_end(source.end(each))))


def _annotations(source: PythonSource) -> Iterator[Part]:
    """Annotations of arguments and results."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield Part(Edit(source.start(node) + len(node.arg.encode()), source.end(node)))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            arrow = source.data.rindex(b"->", source.start(node), source.start(node.returns))
            yield Part(Edit(arrow - (source.data[arrow - 1 : arrow] == b" "), source.end(node.returns)))


def _defaults(source: PythonSource) -> Iterator[Part]:
    for arguments in (node for node in ast.walk(source.tree) if isinstance(node, ast.arguments)):
        for argument, default in _defaulted(arguments):
            yield Part(Edit(source.end(argument), source.end(default)))


def _defaulted(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    placed = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(placed[len(placed) - len(arguments.defaults) :], arguments.defaults, strict=True))
    return pairs + [
        (each, value) for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
    ]


def _bodies(source: PythonSource) -> Iterator[Part]:
    """Replace the body of a function by one that returns its first argument."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and (names := [each.arg for each in node.args.args if each.arg != "self"]):
            text = f"return {names[0]}".encode()
            start, end = source.start(node.body[0]), source.end(node.body[-1])
            if source.data[start:end] != text:
                yield Part(Edit(start, end, text))


def _items(source: PythonSource) -> Iterator[Part]:
    """Items of lists, tuples, sets and dicts, arguments of calls, bases of classes, imported names, parameters."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            given: list[Placed] = sorted([*node.args, *node.keywords], key=source.start)
            yield from _list_of(_spans(source, given), source.end(node) - 1)
        elif isinstance(node, ast.ClassDef) and (node.bases or node.keywords):
            bases: list[Placed] = [*node.bases, *node.keywords]
            closing = source.data.find(b")", source.end(bases[-1]))
            yield from _list_of(_spans(source, bases), closing)
        elif isinstance(node, (ast.List, ast.Set)):
            yield from _list_of(_spans(source, node.elts), source.end(node) - 1)
        elif isinstance(node, ast.Tuple):
            closing = source.end(node) - 1 if source.of(node).startswith(b"(") else 0
            yield from _list_of(_spans(source, node.elts), closing, comma=True)
        elif isinstance(node, ast.Dict):
            pairs = [
                (source.start(key), source.end(value))
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            ]
            if len(pairs) == len(node.values):
                yield from _list_of(pairs, source.end(node) - 1)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _list_of(_spans(source, node.names), 0)
        elif isinstance(node, ast.arguments):
            yield from _parameters(source, node)


def _parameters(source: PythonSource, node: ast.arguments) -> Iterator[Part]:
    ends = {id(argument): source.end(default) for argument, default in _defaulted(node)}
    given = [*node.posonlyargs, *node.args]
    yield from _list_of([(source.start(each), ends.get(id(each)) or source.end(each)) for each in given], 0)


def _spans(source: PythonSource, nodes: Sequence[Placed]) -> list[tuple[int, int]]:
    return [(source.start(node), source.end(node)) for node in nodes]


def _list_of(spans: Sequence[tuple[int, int]], end: int, comma: bool = False) -> Iterator[Part]:
    siblings: list[Part] = []
    siblings += [Part(None, spans, place, end, siblings, comma) for place in range(len(spans))]
    yield from siblings


def _operands(which: int) -> Kind:
    """Replace an expression by its first operand (0), its second (1), or its third (2)."""

    def kind(source: PythonSource) -> Iterator[Part]:
        modules = bound_by_imports(source.tree)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.expr) and len(found := _within(node)) > which:
                if _root(only := found[which]) in {"torch", *modules}:
                    continue  # a module, not a value
                if isinstance(only, ast.Constant) and isinstance(node, ast.Call):
                    continue  # a size, not the tensor that was created from it
                yield Part(Edit(source.start(node), source.end(node), source.of(found[which])))

    return kind


def _within(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.BoolOp():
            return [node.values[0], node.values[-1]]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Call(func=ast.Attribute() as method):
            return [method.value, *node.args[:2]]
        case ast.Call():
            return node.args[:2]
        case ast.Subscript() | ast.Attribute(attr="T" | "mT" | "H" | "mH" | "real" | "data"):
            return [node.value]
        case ast.List(elts=[only]) | ast.Tuple(elts=[only]):
            return [only]
    return []


def _root(node: ast.expr) -> str:
    """`torch` of `torch.nn.functional`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _named(edits: Callable[[PythonSource], Iterator[tuple[Edit, ...]]]) -> Kind:
    """Leave out assignments that only name a value."""

    def kind(source: PythonSource) -> Iterator[Part]:
        yield from (Part(first, also=others) for first, *others in edits(source))

    return kind


def _numbers(source: PythonSource) -> Iterator[Part]:
    """Replace integers above 2 by 2."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > _SMALL:
            yield Part(Edit(source.start(node), source.end(node), b"2"))


KINDS: dict[str, Kind] = {
    "branches": _branches,
    "heads": _heads,
    "loops": _loops,
    "other branches": _other_branches,
    "decorators": _decorators,
    "annotations": _annotations,
    "bodies": _bodies,
    "items": _items,
    "defaults": _defaults,
    "first operands": _operands(0),
    "second operands": _operands(1),
    "third operands": _operands(2),
    "values of names": _named(inlined),
    "names of aliases": _named(renamed),
    "numbers": _numbers,
}
