"""Leave out assignments of a Python file that only name a value.

An alias (`a = b`) is replaced by the name that it stands for, or vice versa; a name that is read once by its value.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from idbg.reduce.sources import Edit, PythonSource

_WIDEST = 100  # a longer line is harder to read than the assignment that it saves
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Tuple, ast.Set)


@dataclass(frozen=True)
class _Naming:
    """`name = value`; `uses` read the name before it is bound again."""

    statement: ast.Assign
    uses: Sequence[ast.Name]

    @property
    def is_alias(self) -> bool:
        return isinstance(self.statement.value, ast.Name)


def inlined(source: PythonSource) -> Iterator[tuple[Edit, ...]]:
    """The edits that replace a name by its value, or remove a name that nothing reads; they do not overlap."""
    taken: list[tuple[int, int]] = []
    for naming in _namings(source):
        value = naming.statement.value
        if not naming.uses:
            yield (Edit(source.start(naming.statement), source.start(value)),)
            continue
        text = source.of(value)
        if not isinstance(value, _ATOMS):
            text = b"(" + text + b")"
        fits = all(_width(source, use) - len(use.id) + len(text) <= _WIDEST for use in naming.uses)
        if b"\n" in text or not fits or not (naming.is_alias or len(naming.uses) == 1):
            continue
        edits = (_removed(source, naming.statement), *(_replaced(source, use, text) for use in naming.uses))
        spans = [(edit.start, edit.end) for edit in edits]
        if not any(start < end_ and start_ < end for start, end in spans for start_, end_ in taken):
            taken += spans
            yield edits


def renamed(source: PythonSource) -> Iterator[tuple[Edit, ...]]:
    """The edits that remove an alias and rename the original to the alias, as a line that must stay may use it."""
    for scope, statement in _assignments(source.tree):
        if not isinstance(statement.value, ast.Name) or isinstance(scope, ast.Module):
            continue
        target, old = statement.targets[0], statement.value.id
        assert isinstance(target, ast.Name)
        edits = [_removed(source, statement)]
        for node in ast.walk(scope):
            if isinstance(node, ast.Name) and node.id == old and node is not statement.value:
                edits.append(_replaced(source, node, target.id.encode()))
            elif isinstance(node, ast.arg) and node.arg == old:
                start = source.start(node)
                edits.append(Edit(start, start + len(old.encode()), target.id.encode()))
        yield tuple(edits)


def _namings(source: PythonSource) -> Iterator[_Naming]:
    for scope, statement in _assignments(source.tree):
        target = statement.targets[0]
        assert isinstance(target, ast.Name)
        names = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == target.id]
        if any(isinstance(node, (ast.Global, ast.Nonlocal)) and target.id in node.names for node in ast.walk(scope)):
            continue
        end = source.end(statement)
        later = sorted((node for node in names if source.start(node) > end), key=source.start)
        bound = next((node for node in later if not isinstance(node.ctx, ast.Load)), None)
        until = _end_of_binding(source, bound) if bound is not None else len(source.data)
        uses = [node for node in later if isinstance(node.ctx, ast.Load) and source.start(node) < until]
        if until:
            yield _Naming(statement, uses)


def _end_of_binding(source: PythonSource, bound: ast.Name) -> int:
    """The offset up to which the old value is read: the end of `x = f(x)`; 0 if both are one, as in `x += 1`."""
    for node in source.statements:
        if isinstance(node, ast.AugAssign) and node.target is bound:
            return 0
        if isinstance(node, ast.Assign) and bound in node.targets:
            return source.end(node)
    return source.start(bound)


def _assignments(tree: ast.Module) -> Iterator[tuple[_SCOPES, ast.Assign]]:
    """The assignments to one plain name, each with its function, class or module."""
    stack: list[tuple[_SCOPES, ast.AST]] = [(tree, tree)]
    while stack:
        scope, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Assign) and [type(each) for each in child.targets] == [ast.Name]:
                yield scope, child
            stack.append((child if isinstance(child, _SCOPES) else scope, child))


def _removed(source: PythonSource, statement: ast.Assign) -> Edit:
    start, end = source.start(statement), source.end(statement)
    alone = not source.data[source.line_start(start) : start].strip()
    rest = source.data[end : source.line_end(end)].strip()
    if alone and (not rest or rest.startswith(b"#")):
        return Edit(source.with_comments(start), source.line_end(end))
    return Edit(start, end, b"pass")


def _replaced(source: PythonSource, name: ast.Name, text: bytes) -> Edit:
    return Edit(source.start(name), source.end(name), text)


def _width(source: PythonSource, node: ast.Name) -> int:
    start = source.start(node)
    return source.line_end(start) - source.line_start(start)
