"""Write calls of Python's `operator` functions as operators.

A call of `operator.add` is traced into the standard library's own file (torch 2.15), so nothing of the graph would have
the script's line.
"""

import ast

_BINARY: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "concat": ast.Add,
    "sub": ast.Sub,
    "mul": ast.Mult,
    "matmul": ast.MatMult,
    "truediv": ast.Div,
    "floordiv": ast.FloorDiv,
    "mod": ast.Mod,
    "pow": ast.Pow,
    "lshift": ast.LShift,
    "rshift": ast.RShift,
    "and_": ast.BitAnd,
    "or_": ast.BitOr,
    "xor": ast.BitXor,
}
_IN_PLACE = {f"i{name.rstrip('_')}": operator for name, operator in _BINARY.items()}
_UNARY: dict[str, type[ast.unaryop]] = {
    "neg": ast.USub,
    "pos": ast.UAdd,
    "invert": ast.Invert,
    "inv": ast.Invert,
    "not_": ast.Not,
}
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq,
    "ne": ast.NotEq,
    "lt": ast.Lt,
    "le": ast.LtE,
    "gt": ast.Gt,
    "ge": ast.GtE,
    "is_": ast.Is,
    "is_not": ast.IsNot,
}


def statements(name: str, function: str, arguments: str) -> list[str] | None:
    """The lines that give `name` the result of `operator.FUNCTION(ARGUMENTS)`; None where no operator does it.

    Raises SyntaxError for arguments that are no Python.
    """
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    if call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    match function, call.args:
        case "setitem", [owner, index, value]:
            return [f"{_written(_item(owner, index))} = {_written(value)}"]
        case _, [left, right] if function in _IN_PLACE:
            return [f"{name} = {_written(left)}", f"{name} {_SIGNS[function]}= {_written(right)}"]
    expression = _expression(function, call.args)
    return [f"{name} = {_written(expression)}"] if expression is not None else None


def _expression(function: str, given: list[ast.expr]) -> ast.expr | None:
    match given:
        case [left, right] if function in _BINARY:
            return ast.BinOp(left, _BINARY[function](), right)
        case [left, right] if function in _COMPARISONS:
            return ast.Compare(left, [_COMPARISONS[function]()], [right])
        case [value] if function in _UNARY:
            return ast.UnaryOp(_UNARY[function](), value)
        case [owner, index] if function == "getitem":
            return _item(owner, index)
    return None


def _item(owner: ast.expr, index: ast.expr) -> ast.Subscript:
    parts = [_sliced(each) for each in index.elts] if isinstance(index, ast.Tuple) else []
    return ast.Subscript(owner, ast.Tuple(parts) if parts else _sliced(index))


def _sliced(index: ast.expr) -> ast.expr:
    """`slice(1, None, None)` as `1:`."""
    match index:
        case ast.Call(ast.Name("slice"), [first, last, step], []):
            return ast.Slice(*(None if _is_none(each) else each for each in (first, last, step)))
    return index


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _written(node: ast.expr) -> str:
    return ast.unparse(node)


_SIGNS = {
    name: ast.unparse(ast.BinOp(ast.Name("a"), operator(), ast.Name("b"))).split()[1]
    for name, operator in _IN_PLACE.items()
}
