"""Write calls of Python's `operator` functions as operators.

A call of `operator.add` is traced into the standard library's own file (torch 2.15), so nothing of the graph would have
the script's line.
"""

import ast

from torch.fx.graph import inplace_methods, magic_methods

# templates of FX's own code generator ("{} + {}"), and of what it writes as calls
_TEMPLATES = magic_methods | {"concat": "{} + {}", "inv": "~{}", "not_": "not {}", "is_": "{} is {}"}
_TEMPLATES["is_not"] = "{} is not {}"


def statements(name: str, function: str, arguments: str) -> list[str] | None:
    """The lines that give `name` the result of `operator.FUNCTION(ARGUMENTS)`; None where no operator does it.

    Raises SyntaxError for arguments that are no Python.
    """
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    if call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = [f"({ast.unparse(each)})" for each in call.args]
    if function in ("getitem", "setitem"):
        given[1] = _index(call.args[1])
    if function == "setitem":
        return [_plain(inplace_methods[function].format(*given))]
    if function in inplace_methods:
        return [_plain(f"{name} = {given[0]}"), _plain(inplace_methods[function].format(name, *given[1:]))]
    template = _TEMPLATES.get(function)
    return [_plain(f"{name} = {template.format(*given)}")] if template is not None else None


def _plain(line: str) -> str:
    """The line without the parentheses that it does not need."""
    return ast.unparse(ast.parse(line))


def _index(index: ast.expr) -> str:
    """An index as it stands in brackets: `slice(1, None, None)` as `1:`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    text = ", ".join(map(_sliced, parts)) or "()"
    return f"{text}," if isinstance(index, ast.Tuple) and len(parts) == 1 else text


def _sliced(index: ast.expr) -> str:
    match index:
        case ast.Call(ast.Name("slice"), [first, last, step], []):
            texts = map(ast.unparse, (first, last, step))
            return ":".join("" if text == "None" else text for text in texts)
    return ast.unparse(index)
