"""Find the statements of a program that are code which the compiler calls: lowerings, passes, decompositions, ops.

A search leaves these out whole or not at all: with a part gone they fail otherwise, and under the same name.
"""

import ast
import re
from collections.abc import Collection, Iterator

from idbg.engine.repro.slices import Definition, Statement
from idbg.reduce.sources import names_read

_HOLDS_CODE = re.compile(r"pass(es)?$|partitioner_fn$")  # settings of torch's that hold functions
_OF_MODULES = re.compile(r"register_(buffer|parameter|module|\w*hook)\b")
_TAKES_CODE = ("backend", "options")  # arguments of torch.compile


def called_back(text: str, patched: Collection[str] = (), in_tables: Collection[str] = ()) -> frozenset[str]:
    """The statements, each as `ast.dump` has it, with the definitions that they read. `patched` are names of torch's
    attributes that the program set, `in_tables` those of its functions that stand in torch's tables of lowerings.
    """
    tree = ast.parse(text)
    kept: dict[int, ast.stmt] = {}
    names: set[str] = set(_given_to_compile(tree)).union(in_tables)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and (_is_called_back(node, patched) or _fills_table(node, in_tables)):
            kept[id(node)] = node
            names |= names_read(node)
    done: set[str] = set()
    while left := names - done:
        done |= left
        for node in tree.body:
            if left & _given_by(node):
                kept[id(node)] = node
                names |= names_read(node)
    return frozenset(map(ast.dump, kept.values()))


def _is_called_back(node: ast.stmt, patched: Collection[str]) -> bool:
    if not isinstance(node, Definition | ast.Assign | ast.Expr):
        return False
    statement = Statement(node, "")
    if statement.registers and not _OF_MODULES.search(statement.registers):
        return True
    return any(name in patched or _HOLDS_CODE.search(name) for name in statement.sets)


def _fills_table(node: ast.stmt, in_tables: Collection[str]) -> bool:
    """Whether it puts one of these functions, or one without a name for an op, into a table."""
    if not isinstance(node, ast.Assign | ast.Expr):
        return False
    keyed = [each for each in getattr(node, "targets", ()) if isinstance(each, ast.Subscript)]
    if isinstance(node.value, ast.Lambda):
        return any("ops." in ast.unparse(each) or "aten." in ast.unparse(each) for each in keyed)
    return (bool(keyed) or isinstance(node, ast.Expr)) and not names_read(node).isdisjoint(in_tables)


def _given_to_compile(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _TAKES_CODE:
            yield from (each.id for each in ast.walk(node.value) if isinstance(each, ast.Name))


def _given_by(node: ast.stmt) -> frozenset[str]:
    """The names that a definition, or an assignment that calls no compiler, gives."""
    if isinstance(node, Definition):
        return frozenset({node.name})
    compiles = "torch.compile" in ast.unparse(node)
    return Statement(node, "").binds if isinstance(node, ast.Assign) and not compiles else frozenset()
