"""Edit the text of a Python file by its syntax tree: replace spans, leave out statements.

The remaining text keeps its comments and formatting: nothing is printed from the syntax tree.
"""

import ast
import itertools
import warnings
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

COMPOUND = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While),
    *(ast.With, ast.AsyncWith, ast.Try, ast.Match),
)
Placed = ast.stmt | ast.expr | ast.arg | ast.keyword | ast.alias | ast.ExceptHandler
_COMPOUND_WEIGHT = 10  # nodes: a loop is more to read than the assignment that replaces it


@dataclass(frozen=True)
class Edit:
    """These bytes of a file are replaced."""

    start: int
    end: int
    text: bytes = b""


@dataclass(frozen=True)
class Block:
    """Statements under one head. `after`: the statement (or handler) before an `else` or `finally`, which is removed
    with all its statements; None for a block that must not be empty. `depth`: 0 for the file's own statements.
    """

    statements: Sequence[ast.stmt]
    depth: int
    after: ast.stmt | ast.ExceptHandler | None = None


class PythonSource:
    """A file's text and its syntax tree. Raises SyntaxError, or ValueError for text that Python cannot read at all."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self.tree = parsed(text)
        self._lines = [0, *itertools.accumulate(len(line) + 1 for line in self.data.split(b"\n"))]
        self.blocks = list(_blocks(self.tree, 0))

    @property
    def statements(self) -> list[ast.stmt]:
        """All statements, a compound one before those in it."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]

    @property
    def size(self) -> tuple[int, int, str]:
        """The size to compare files by: nodes of the syntax tree, then characters."""
        nodes = sum(_COMPOUND_WEIGHT if isinstance(node, COMPOUND) else 1 for node in ast.walk(self.tree))
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

    def line_start(self, place: int) -> int:
        """The offset of the line that contains a byte."""
        return self._lines[bisect_right(self._lines, place) - 1]

    def line_end(self, place: int) -> int:
        """The offset of the next line."""
        return min(self._lines[bisect_right(self._lines, place)], len(self.data))

    def with_comments(self, place: int) -> int:
        """The offset of the comment lines right above the line of a byte."""
        start = self.line_start(place)
        indentation = place - start
        while start:
            line = self.data[self.line_start(start - 1) : start]
            if not line.lstrip().startswith(b"#") or len(line) - len(line.lstrip()) != indentation:
                break
            start = self.line_start(start - 1)
        return start

    def without(self, gone: Collection[ast.stmt]) -> str:
        """The text without these statements; a block that must not be empty gets a `pass`."""
        removed = {id(node) for node in gone}
        return self.edited([edit for block in self.blocks for edit in self._removal(block, removed)])

    def edited(self, edits: Sequence[Edit]) -> str:
        """The text after these edits. Of two that overlap, the one that begins first, or is longer, is applied."""
        parts, done = [], 0
        for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
            if edit.start >= done:
                parts += [self.data[done : edit.start], edit.text]
                done = edit.end
        return b"".join([*parts, self.data[done:]]).decode()

    def _removal(self, block: Block, removed: set[int]) -> Iterator[Edit]:
        gone = [node for node in block.statements if id(node) in removed]
        if not gone:
            return
        first, last = block.statements[0], block.statements[-1]
        if len(gone) == len(block.statements) and block.depth:
            if block.after is not None and (start := self.line_end(self.end(block.after))) <= self.start(first):
                yield Edit(start, self.line_end(self.end(last)))
            else:
                yield Edit(self.start(first), self.end(last), b"pass")
            return
        for group in self._sharing_lines(block.statements):
            kept = [node for node in group if id(node) not in removed]
            if len(kept) == len(group):
                continue
            start, end = self.start(group[0]), self.end(group[-1])
            if kept:
                yield Edit(start, end, b"; ".join(self.of(node) for node in kept))
            elif not self.data[self.line_start(start) : start].strip():
                yield Edit(self.with_comments(start), self.line_end(end))
            else:
                yield Edit(start, end, b"pass")

    def _sharing_lines(self, statements: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
        """The statements in runs that share lines: `a; b`."""
        run: list[ast.stmt] = []
        for node in statements:
            if run and self.line_start(self.end(run[-1])) != self.line_start(self.start(node)):
                yield run
                run = []
            run.append(node)
        if run:
            yield run


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


def _blocks(node: ast.AST, depth: int) -> Iterator[Block]:
    after: ast.stmt | ast.ExceptHandler | None = None
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        within = getattr(node, name, None)
        if not isinstance(within, list) or not within:
            continue
        if isinstance(within[0], ast.stmt):
            alone = name == "finalbody" and not node.handlers if isinstance(node, ast.Try) else False
            yield Block(within, depth, after if name in ("orelse", "finalbody") and not alone else None)
        for child in within:
            yield from _blocks(child, depth if isinstance(child, (ast.ExceptHandler, ast.match_case)) else depth + 1)
        if not isinstance(within[-1], ast.match_case):
            after = within[-1]
