"""Leave out assignments of a Python file that only name a value.

An alias (`a = b`) is replaced by the name that it stands for, or vice versa; a name that is read once by its value.
"""

import ast
from collections.abc import Iterator, Sequence

from idbg.reduce.sources import Change, PythonSource, replacing

_WIDEST = 100  # a longer line is harder to read than the assignment that it saves
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
_END = (1 << 30, 0)


def inlined(source: PythonSource) -> Iterator[Change]:
    """Replace a name by its value, or remove a name that nothing reads."""
    lines = source.text.split("\n")
    for scope, statement, name in _assignments(source.tree):
        value = statement.value
        uses = _uses(source, scope, statement, name)
        if uses is None:
            continue
        if not uses:
            yield {statement: ast.copy_location(ast.Expr(value), statement)}
            continue
        more = len(ast.unparse(value)) - len(name)
        fits = all(len(lines[use.lineno - 1]) + more <= _WIDEST for use in uses) and value.lineno == value.end_lineno
        if fits and (isinstance(value, ast.Name) or len(uses) == 1):
            yield replacing(uses, value) | {statement: ()}


def renamed(source: PythonSource) -> Iterator[Change]:
    """Remove an alias and rename the original to the alias, as a line that must stay may use it."""
    for scope, statement, name in _assignments(source.tree):
        old = statement.value
        if not isinstance(old, ast.Name) or isinstance(scope, ast.Module):
            continue
        names = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == old.id]
        arguments = [each for each in ast.walk(scope) if isinstance(each, ast.arg) and each.arg == old.id]
        change = replacing(names, ast.Name(name)) | {statement: ()}
        change.update((each, ast.arg(name, each.annotation)) for each in arguments)
        yield change


def _uses(source: PythonSource, scope: ast.AST, statement: ast.stmt, name: str) -> Sequence[ast.Name] | None:
    """What reads the name before it is bound again; None if that is not known."""
    nodes = list(ast.walk(scope))
    if any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in nodes):
        return None
    names = (node for node in nodes if isinstance(node, ast.Name) and node.id == name)
    later = sorted((node for node in names if _start(node) >= _end(statement)), key=_start)
    bound = next((node for node in later if not isinstance(node.ctx, ast.Load)), None)
    until = _end_of_binding(source, bound) if bound is not None else _END
    return None if until is None else [use for use in later if isinstance(use.ctx, ast.Load) and _start(use) < until]


def _end_of_binding(source: PythonSource, bound: ast.Name) -> tuple[int, int] | None:
    """The place up to which the old value is read: the end of `x = f(x)`; None if both are one, as in `x += 1`."""
    for node in source.statements:
        if isinstance(node, ast.AugAssign) and node.target is bound:
            return None
        if isinstance(node, ast.Assign) and bound in node.targets:
            return _end(node)
    return _start(bound)


def _assignments(tree: ast.Module) -> Iterator[tuple[_SCOPES, ast.Assign, str]]:
    """The assignments to one plain name, each with its function, class or module, and the name."""
    stack: list[tuple[_SCOPES, ast.AST]] = [(tree, tree)]
    while stack:
        scope, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Assign) and len(child.targets) == 1 and isinstance(child.targets[0], ast.Name):
                yield scope, child, child.targets[0].id
            stack.append((child if isinstance(child, _SCOPES) else scope, child))


def _start(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0
