"""Find the names that a Python file defines, from its text."""

import ast
from collections.abc import Iterable, Iterator

_OTHER_WAYS = ("globals", "vars", "locals", "exec", "setattr", "eval")


def top_level_names(source: bytes) -> list[str] | None:
    """The names that the module defines, in order; None where only running it shows them, or it is not valid."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if any(isinstance(node, ast.Name) and node.id in _OTHER_WAYS for node in ast.walk(tree)):
        return None
    from_functions = [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    names = list(dict.fromkeys([*_names(tree.body), *from_functions]))
    return None if "*" in names or "__getattr__" in names else names


def string_in(source: bytes, name: str) -> str | None:
    """The string that a file assigns to this name at its top level; "" for no assignment, None for another value."""
    if name.encode() not in source:
        return ""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):  # running it reports the error
        return ""
    found: str | None = ""
    for node in body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            value = getattr(node, "value", None)
            found = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
    return found


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that these statements bind, also in an `if` or a `try`, but not in a function or a class."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.Name(id=name, ctx=ast.Store()) | ast.MatchAs(name=str(name), pattern=None):
                yield name
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                pass
            case _:
                yield from _names(ast.iter_child_nodes(node))
