"""Reduce a Python file that fails to the statements, and parts of statements, that are needed for that.

Hierarchical delta debugging: statements from the outermost blocks to the innermost, then parts of the remaining ones,
repeated until nothing changes. The result is the file's own text (`sources`).
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence

from idbg.reduce.ddmin import ddmin, swept
from idbg.reduce.parts import KINDS
from idbg.reduce.sources import Change, PythonSource, bound_by_imports, names_read, parsed

Search = Callable[[Sequence[Change], Callable[[Sequence[Change]], bool]], object]
_PARAGRAPHS = re.compile(r"\n*(?:[^\n]+\n?)+")


def reduce_source(
    text: str,
    fails: Callable[[str], bool],
    better: Callable[[str], None] = lambda text: None,
    protected: Collection[str] = (),
    whole: Collection[str] = (),
) -> str:
    """The smallest text found that fails: no single statement can be left out, or replaced by `pass` if it is its
    block's only one. `text` itself is known to fail and is not tried; no candidate is tried twice.

    Each candidate can be compiled and contains the pieces `protected`. Statements in `whole` (as `ast.dump` returns
    them) are left out completely, or not at all. `better` gets each smaller text that fails, so that it is known if an
    exception of `fails` stops the search. Raises SyntaxError if the text itself cannot be parsed.
    """
    search = _Search(text.replace("\r\n", "\n"), fails, better, protected, whole)
    search.search()
    return search.text


class _Search:
    def __init__(
        self,
        text: str,
        fails: Callable[[str], bool],
        better: Callable[[str], None],
        protected: Collection[str],
        whole: Collection[str],
    ) -> None:
        self.text, self._whole = text, whole
        self._size = PythonSource(text).size
        self._fails, self._better, self._protected = fails, better, protected
        self._answers: dict[str, bool] = {text: True}

    def search(self) -> None:
        self._fails_with(without_unread(self.text))
        depth = 0
        while depth < len(_levels(PythonSource(self.text).tree)):
            self._level(depth)
            depth += 1
        before = ""
        while before != self.text:
            before = self.text
            self._sweep()
            for kind in KINDS:
                self._parts(kind)
        self._fails_with(tidied(self.text))

    def _fails_with(self, text: str) -> bool:
        """Whether a candidate fails; if it is smaller than the best so far, it becomes the best."""
        if text in self._answers:
            return self._answers[text]
        if any(piece not in text for piece in self._protected):
            return False
        try:
            size = PythonSource(text).size
        except (SyntaxError, ValueError, RecursionError):
            return False
        self._answers[text] = answer = self._fails(text)
        if answer and size < self._size:
            self.text, self._size = text, size
            self._better(text)
        return answer

    def _level(self, depth: int) -> None:
        """The statements of all blocks of one depth."""
        source = PythonSource(self.text)
        self._enough(source, _removals(_levels(source.tree)[depth]), ddmin)

    def _sweep(self) -> None:
        """Leave out single statements, the last first, until none can be."""
        source = PythonSource(self.text)
        statements = sorted(source.statements, key=lambda node: (node.lineno, node.col_offset))
        self._enough(source, _removals(statements), swept)

    def _parts(self, kind: str) -> None:
        source = PythonSource(self.text)
        parts = KINDS[kind](source)
        roots = self._whole_statements(source)
        self._enough(source, [part for part in parts if not roots & part.keys()], ddmin)

    def _enough(self, source: PythonSource, changes: Sequence[Change], search: Search) -> None:
        """Search for the changes that cannot be made; first try to make all, which the search does not."""
        fixed = {each for node in self._whole_statements(source) for each in ast.walk(node) if each is not node}
        items = [change for change in changes if not fixed & change.keys()]

        def fails(kept: Sequence[Change]) -> bool:
            held = {id(change) for change in kept}
            made = [change for change in items if id(change) not in held]
            return self._fails_with(source.changed({node: new for change in made for node, new in change.items()}))

        if items and not fails([]):
            search(items, fails)

    def _whole_statements(self, source: PythonSource) -> set[ast.AST]:
        """The statements that are left out completely, or not at all."""
        return {node for node in source.statements if ast.dump(node) in self._whole} if self._whole else set()


def _removals(statements: Sequence[ast.stmt]) -> list[Change]:
    return [{node: ()} for node in statements]


def _levels(tree: ast.Module) -> list[list[ast.stmt]]:
    """The statements by the number of statements around them."""
    levels = [tree.body]
    while inner := [each for node in levels[-1] for each in _inside(node)]:
        levels.append(inner)
    return levels


def _inside(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from child.body


def without_unread(text: str) -> str:
    """The text without the top-level imports, functions and classes whose names nothing reads."""
    source = PythonSource(text)
    body = source.tree.body
    kept = [node for node in body if not _defined(node)]
    read: set[str] = set()
    while True:
        read |= {name for node in kept for name in names_read(node)}
        more = [node for node in body if node not in kept and _defined(node) & read]
        if not more:
            return source.without([node for node in body if node not in kept])
        kept += more


def _defined(node: ast.stmt) -> set[str]:
    """The names that a definition or an import binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    return bound_by_imports(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else set()


def tidied(text: str) -> str:
    """The text with at most two empty lines in a row, none at its ends, and no separate comments."""
    lines: list[str] = []
    for paragraph in _PARAGRAPHS.findall(text):
        if all(line.startswith("#") for line in paragraph.strip("\n").split("\n")):
            continue
        if lines and lines[-1]:
            lines += [""] * min(2, len(paragraph) - len(paragraph.lstrip("\n")))
        lines += paragraph.strip("\n").split("\n")
    tidy = "\n".join(lines) + "\n" if lines else ""
    try:
        same = ast.dump(parsed(tidy)) == ast.dump(parsed(text))
    except (SyntaxError, ValueError):
        return text
    return tidy if same else text  # an empty line in a string
