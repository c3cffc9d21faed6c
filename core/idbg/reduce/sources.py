"""Change a Python file by its syntax tree: replace or leave out nodes of any kind, or replace spans of the text.

What is not changed keeps its text and its comments; only a changed statement is printed from the syntax tree.
"""

import ast
import itertools
import re
import textwrap
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

COMPOUND = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While),
    *(ast.With, ast.AsyncWith, ast.Try, ast.Match),
)
Placed = ast.stmt | ast.expr | ast.arg | ast.keyword | ast.alias | ast.ExceptHandler
New = ast.AST | Sequence[ast.AST] | None
Change = Mapping[ast.AST, New]
"""What replaces each node: another node, or several; `()` leaves it out of its list, None empties its field."""

_COMPOUND_WEIGHT = 10  # nodes: a loop is more to read than the assignment that replaces it
# expressions that never need parentheses around them
_ATOMS = (
    *(ast.Constant, ast.JoinedStr, ast.Call, ast.Attribute, ast.Subscript),
    *(ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp),
)
_PLACEHOLDER = re.compile("(?P<line>^ *)?\0([se])(\\d+)\0", re.MULTILINE)


@dataclass(frozen=True)
class Edit:
    """These bytes of a file are replaced."""

    start: int
    end: int
    text: bytes = b""


class PythonSource:
    """A file's text and its syntax tree. Raises SyntaxError, or ValueError for text that Python cannot read at all."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self.tree = parsed(text)
        self._lines = [0, *itertools.accumulate(len(line) + 1 for line in self.data.split(b"\n"))]
        self._own = set(ast.walk(self.tree))

    @property
    def statements(self) -> list[ast.stmt]:
        """All statements, a compound one before those in it."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]

    @property
    def size(self) -> tuple[int, int, str]:
        """The size to compare files by: nodes of the syntax tree, then characters."""
        nodes = sum(_COMPOUND_WEIGHT if isinstance(node, COMPOUND) else 1 for node in self._own)
        return nodes, len(self.text), self.text

    def start(self, node: Placed) -> int:
        """The offset of its first byte; for a decorated definition that of the first `@`."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        line = min([node.lineno, *(each.lineno for each in decorators)])
        return self._lines[line - 1] + node.col_offset

    def end(self, node: Placed) -> int:
        """The offset after its last byte."""
        return self._lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def of(self, node: Placed) -> bytes:
        """Its text."""
        return self.data[self.start(node) : self.end(node)]

    def edited(self, edits: Sequence[Edit]) -> str:
        """The text after these edits. Of two that overlap, the one that begins first, or is longer, is applied."""
        parts, done = [], 0
        for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
            if edit.start >= done:
                parts += [self.data[done : edit.start], edit.text]
                done = edit.end
        return b"".join([*parts, self.data[done:]]).decode()

    def without(self, gone: Sequence[ast.AST]) -> str:
        """The text without these nodes of lists: statements, arguments, items."""
        return self.changed(replacing(gone, ()))

    def changed(self, change: Change) -> str:
        """The text after the change. A block that must not be empty gets a `pass`."""
        tree = _applied(self.tree, change)
        assert isinstance(tree, ast.Module)
        return "\n".join([*(self._lines_of(node, "") for node in tree.body), ""] if tree.body else [])

    def _lines_of(self, node: ast.stmt, margin: str) -> str:
        """A statement with this margin, and with the comments and empty lines above it."""
        if not getattr(node, "lineno", 0):  # a new one
            return self._printed(node, margin)
        start, end = self.start(node), self.end(node)
        lines = [margin + line.strip() if line.strip() else "" for line in self._above(start)]
        after = self._comment_after(end)
        if node not in self._own:
            # a compound statement ends with one that has the comment
            return "\n".join([*lines, self._printed(node, margin) + ("" if isinstance(node, COMPOUND) else after)])
        first, *more = (self.data[start:end].decode() + after).split("\n")
        within, begin = _lines_within_strings(node), self._line(start)
        lines.append(margin + (first.removeprefix("el") if self._is_elif(node) else first))
        for number, line in enumerate(more, begin + 1):
            surplus = min(node.col_offset, len(line) - len(line.lstrip()))
            lines.append(line if number in within else (margin + line[surplus:]).rstrip())
        return "\n".join(lines)

    def _above(self, start: int) -> list[str]:
        """The comments and empty lines above a statement that begins its line."""
        line = self._line(start)
        if self.data[self._lines[line - 1] : start].strip():
            return []
        lines = self.text.split("\n")[: line - 1]
        kept = itertools.takewhile(lambda text: not text.strip() or text.lstrip().startswith("#"), reversed(lines))
        return [*kept][::-1]

    def _comment_after(self, end: int) -> str:
        """The comment behind a statement, with the spaces before it."""
        rest = self.data[end : self._lines[self._line(end)] - 1].decode()
        return rest.rstrip() if rest.lstrip().startswith("#") else ""

    def _line(self, offset: int) -> int:
        """The number of the line that contains a byte."""
        return bisect_right(self._lines, offset)

    def _printed(self, node: ast.stmt, margin: str) -> str:
        """A changed statement, in which all that is not changed has its own text."""
        held: list[ast.AST] = []

        def with_placeholders(node: ast.AST, *, root: bool = False) -> ast.AST:
            is_statement = isinstance(node, ast.stmt) and not root and not self._is_elif(node)
            if is_statement or (isinstance(node, _ATOMS) and node in self._own and b"\n" not in self.of(node)):
                held.append(node)
                name = ast.Name(f"\0{'s' if is_statement else 'e'}{len(held) - 1}\0")
                return ast.Expr(name) if is_statement else name
            if isinstance(node, ast.JoinedStr):
                return node
            fields = {
                name: [with_placeholders(each) if isinstance(each, ast.AST) else each for each in value]
                if isinstance(value, list)
                else with_placeholders(value)
                if isinstance(value, ast.AST)
                else value
                for name, value in ast.iter_fields(node)
            }
            return ast.copy_location(type(node)(**fields), node)

        def filled(found: re.Match[str]) -> str:
            child = held[int(found[3])]
            if isinstance(child, ast.stmt):
                return self._lines_of(child, found["line"] or "")
            return (found["line"] or "") + self.of(cast("ast.expr", child)).decode()

        text = ast.unparse(with_placeholders(node, root=True)).strip("\n")
        return _PLACEHOLDER.sub(filled, textwrap.indent(text, margin))

    def _is_elif(self, node: ast.AST) -> bool:
        return isinstance(node, ast.If) and self.data.startswith(b"elif", self.start(node))


def replacing(nodes: Iterable[ast.AST], new: New) -> dict[ast.AST, New]:
    """The change that replaces each of the nodes."""
    return dict.fromkeys(nodes, new)


def names_read(node: ast.AST) -> set[str]:
    """The names that are read in a node."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def bound_by_imports(node: ast.AST) -> set[str]:
    """The names that the imports in a node bind."""
    imports = [each for each in ast.walk(node) if isinstance(each, (ast.Import, ast.ImportFrom))]
    return {(alias.asname or alias.name).partition(".")[0] for each in imports for alias in each.names}


def parsed(text: str) -> ast.Module:
    """The syntax tree of text that Python can also compile. Raises SyntaxError, or ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the program's style, such as `x is 1`
        compile(text, "<candidate>", "exec", dont_inherit=True)
        return ast.parse(text)


def _applied(node: object, change: Change) -> object:
    """The node, or list of nodes, after the change; itself if nothing in it is changed."""
    if isinstance(node, list):
        return [each for one in node for each in _several(_applied(one, change))]
    if not isinstance(node, ast.AST):
        return node
    if node in change:
        new = change[node]
        return (
            [each for one in new for each in _several(_applied(one, change))]
            if isinstance(new, Sequence)
            else (_applied(new, change))
        )
    fields = {name: _applied(value, change) for name, value in ast.iter_fields(node)}
    if all(_is_same(value, getattr(node, name)) for name, value in fields.items()):
        return node
    if fields.get("body") == [] and not isinstance(node, ast.Module):
        fields["body"] = [ast.Pass()]
    if isinstance(node, ast.Try) and not fields["handlers"] and not fields["finalbody"]:
        fields["finalbody"] = [ast.Pass()]
    return ast.copy_location(type(node)(**fields), node)


def _several(node: object) -> list[object]:
    return node if isinstance(node, list) else [node]


def _is_same(new: object, old: object) -> bool:
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_is_same, new, old))
    return new is old


def _lines_within_strings(node: ast.AST) -> set[int]:
    """The lines that begin inside of a string."""
    strings = (each for each in ast.walk(node) if isinstance(each, (ast.Constant, ast.JoinedStr)))
    return {line for each in strings for line in range(each.lineno + 1, (each.end_lineno or 0) + 1)}
