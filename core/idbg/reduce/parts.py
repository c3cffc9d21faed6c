"""Changes that make a Python file smaller: what can be left out of it, or replaced by a part of itself.

Each kind is searched separately, those that remove most first: branches, heads of blocks, decorators, bodies, items of
lists and calls, operands, names, numbers.
"""

import ast
from collections.abc import Callable, Iterator

from idbg.reduce.names import inlined, renamed
from idbg.reduce.sources import Change, PythonSource, bound_by_imports, names_read, replacing

_SMALL = 2
_LISTS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Call: ("args", "keywords"),
    ast.ClassDef: ("bases", "keywords"),
    **dict.fromkeys((ast.List, ast.Set, ast.Tuple), ("elts",)),
    **dict.fromkeys((ast.Import, ast.ImportFrom), ("names",)),
}

Kind = Callable[[PythonSource], Iterator[Change]]


def _of_nodes(changes: Callable[[ast.AST], Iterator[Change]]) -> Kind:
    """The changes of each node."""
    return lambda source: (change for node in ast.walk(source.tree) for change in changes(node))


def _branches(node: ast.AST) -> Iterator[Change]:
    """`else`, `except` and `finally` with their statements; cases of a match."""
    for branch in ("orelse", "finalbody"):
        if isinstance(statements := getattr(node, branch, None), list) and statements:
            yield replacing(statements, ())
    for branch in ("handlers", "cases"):
        yield from (replacing([each], ()) for each in getattr(node, branch, ()))


def _heads(node: ast.AST) -> Iterator[Change]:
    """Replace an `if`, `for`, `while`, `with` or `try` by its block."""
    if isinstance(node, (ast.If, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.For)):
        yield {node: node.body}


def _loops(node: ast.AST) -> Iterator[Change]:
    """Replace a loop by its first iteration."""
    if isinstance(node, ast.For):
        first: ast.expr = ast.Call(ast.Name("next"), [ast.Call(ast.Name("iter"), [node.iter], [])], [])
        if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range":
            first = ast.Constant(0)
        yield {node: [ast.Assign([node.target], first, lineno=0), *node.body]}


def _other_branches(node: ast.AST) -> Iterator[Change]:
    """Replace an `if` by its `else`."""
    if isinstance(node, ast.If) and node.orelse:
        yield {node: node.orelse}


def _unpackings(node: ast.AST) -> Iterator[Change]:
    """Replace `a, b = c, d` by one of its assignments."""
    match node:
        case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
            pairs = zip(names, values, strict=True)
            yield from (replacing([node], ast.Assign([name], value, lineno=0)) for name, value in pairs)


def _decorators(node: ast.AST) -> Iterator[Change]:
    yield from (replacing([each], ()) for each in getattr(node, "decorator_list", ()))


def _annotations(node: ast.AST) -> Iterator[Change]:
    """Annotations of arguments and results."""
    for field in ("annotation", "returns"):
        if not isinstance(node, ast.AnnAssign) and (annotation := getattr(node, field, None)) is not None:
            yield {annotation: None}


def _defaults(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.arguments):
        yield from (replacing([default], ()) for default in node.defaults)
        yield from (replacing([default], None) for default in node.kw_defaults if default is not None)


def _bodies(node: ast.AST) -> Iterator[Change]:
    """Replace the body of a function by one that returns its first argument."""
    if isinstance(node, ast.FunctionDef) and (names := [each.arg for each in node.args.args if each.arg != "self"]):
        new = ast.Return(ast.Name(names[0]))
        if len(node.body) > 1 or ast.unparse(node.body[0]) != ast.unparse(new):
            yield replacing(node.body, ()) | {node.body[0]: new}


def _items(node: ast.AST) -> Iterator[Change]:
    """Items of lists, tuples, sets and dicts, arguments of calls, bases of classes, imported names, parameters."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (replacing([key, value], ()) for key, value in pairs if key is not None)
    elif isinstance(node, ast.arguments):
        placed = [*node.posonlyargs, *node.args]
        defaults = dict(zip(reversed(placed), reversed(node.defaults), strict=False))
        yield from (replacing(filter(None, [each, defaults.get(each)]), ()) for each in placed)
    for field in _LISTS.get(type(node), ()):
        yield from (replacing([each], ()) for each in getattr(node, field))


def _parameters(source: PythonSource) -> Iterator[Change]:
    """Parameters, each with the argument that the function's calls have for it: `f(x)`, `torch.compile(f)(x)`."""
    nodes = list(ast.walk(source.tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for function in nodes:
        if isinstance(function, ast.FunctionDef):
            of_it = [call for call in calls if function.name in names_read(call.func)]
            for at, each in enumerate(function.args.args[: len(function.args.args) - len(function.args.defaults)]):
                yield replacing([each, *(call.args[at] for call in of_it if len(call.args) > at)], ())


def _operands(which: int) -> Kind:
    """Replace an expression by its first operand (0), its second (1), or its third (2)."""

    def kind(source: PythonSource) -> Iterator[Change]:
        modules = {"torch", *bound_by_imports(source.tree)}
        for node in ast.walk(source.tree):
            if isinstance(node, ast.expr) and len(found := _within(node)) > which:
                is_size = isinstance(found[which], ast.Constant) and isinstance(node, ast.Call)
                if not is_size and _root(found[which]) not in modules:  # it is a value, as the whole
                    yield {node: found[which]}

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


def _numbers(node: ast.AST) -> Iterator[Change]:
    """Replace integers above 2 by 2."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > _SMALL:
        yield {node: ast.Constant(_SMALL)}


KINDS: dict[str, Kind] = {
    "branches": _of_nodes(_branches),
    "heads": _of_nodes(_heads),
    "loops": _of_nodes(_loops),
    "other branches": _of_nodes(_other_branches),
    "decorators": _of_nodes(_decorators),
    "annotations": _of_nodes(_annotations),
    "bodies": _of_nodes(_bodies),
    "items": _of_nodes(_items),
    "parameters": _parameters,
    "defaults": _of_nodes(_defaults),
    "first operands": _operands(0),
    "second operands": _operands(1),
    "third operands": _operands(2),
    "unpackings": _of_nodes(_unpackings),
    "values of names": inlined,
    "names of aliases": renamed,
    "numbers": _of_nodes(_numbers),
}
