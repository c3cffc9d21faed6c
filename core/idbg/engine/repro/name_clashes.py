"""Rename what a script itself defines where the user's code that it carries has the same names."""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import TypeGuard

_HELD = "__of_the_program"  # what ends a name of the user's while the script's own are renamed


def bound_at_top(definitions: Iterable[str]) -> set[str]:
    """The names that sources give to their module."""
    found: set[str] = set()
    for node in (node for source in definitions for node in ast.parse(source).body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        else:
            found |= {each.id for each in ast.walk(node) if _is_stored(each)}
    return found


def bound_in(code: Sequence[str]) -> set[str]:
    """All names that code of the script's own gives a value to: of functions, arguments, variables."""
    nodes = list(ast.walk(ast.parse("\n".join(code))))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    return functions | arguments | errors | {node.id for node in nodes if _is_stored(node)}


def held_apart(expression: str, names: Iterable[str]) -> str:
    """An expression of the user's names, as it stands in the script's own lines until these are `renamed`."""
    for name in names:
        expression = _named(name).sub(name + _HELD, expression)
    return expression


def renamed(lines: Sequence[str], names: Iterable[str]) -> list[str]:
    """The script's own lines with other names for these, and the user's as they are."""
    text = "\n".join(lines)
    for name in names:
        text = _named(name).sub(f"its_{name}", text)
    return text.replace(_HELD, "").split("\n")


def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.\"']){name}(?![\w\"'])")


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
