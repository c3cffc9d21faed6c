"""Write the ops that AOTAutograd puts around those that write to their arguments, or have effects, as calls."""

import ast
import re
from collections.abc import Callable

from idbg.engine.compat import repros

_OP = re.compile(r"<OpOverload\(op='([\w.]+)', overload='(\w+)'\)>")
FUNCTIONALIZED, WITH_EFFECTS = "higher_order.auto_functionalized_v2", "higher_order.with_effects"
GIVE_TUPLES = (FUNCTIONALIZED, WITH_EFFECTS)
_VIEWS = {
    "as_strided.default": ("size", "stride", "storage_offset"),
    "slice.Tensor": ("slice_dim", "slice_start", "slice_end"),
}


def statements(name: str, target: str, arguments: str, needs: Callable[[str], str]) -> list[str] | None:
    """The lines that give `name` what the op TARGET(ARGUMENTS) gives, a tuple; None for another op. `needs`
    gets the op inside ("my.fill.default"), and returns the expression that calls it.
    """
    if target.removeprefix("torch.ops.") not in GIVE_TUPLES:
        return None
    text = _OP.sub(r"torch.ops.\1.\2", arguments)
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    if target.endswith(WITH_EFFECTS):
        token, inner, *rest = call.args
        return [f"{name} = ({ast.unparse(token)}, {_called(needs(_op(inner)), rest, call.keywords)})"]
    return _functionalized(name, call, needs)


def _functionalized(name: str, call: ast.Call, needs: Callable[[str], str]) -> list[str]:
    given = {each.arg: each.value for each in call.keywords if each.arg}
    bases = given.pop("_all_bases")
    assert isinstance(bases, ast.List)
    held = [f"{name}_base{at}" for at in range(len(bases.elts))]
    lines = [
        f"{base} = torch.ops.aten.clone.default({ast.unparse(each)})"
        for base, each in zip(held, bases.elts, strict=True)
    ]
    written: dict[str, ast.expr] = {}
    for key in [key for key in given if key.endswith("_base_index")]:
        prefix = key.removesuffix("_base_index")
        view, written[prefix] = _view(name, prefix, given)
        lines += view
    for key in [key for key in given if key.startswith("_") and key.endswith("_length")]:  # of a list of tensors
        prefix, length = key.removesuffix("_length"), given.pop(key)
        elements = [written.pop(f"{prefix}_{at}") for at in range(ast.literal_eval(length) or 0)]
        written[prefix] = ast.List(elements) if ast.literal_eval(length) is not None else length
    given |= {prefix[1:]: value for prefix, value in written.items()}
    inner = _op(call.args[0])
    made = _called(needs(inner), [], [ast.keyword(key, value) for key, value in given.items()])
    returned = repros.results_of(inner)
    if not returned:  # the call is the last line: that is the node's
        return [*lines, f"{name} = ({', '.join(['None', *held])})", made]
    return [*lines, f"{name} = ({', '.join([f'*{made}' if returned > 1 else made, *held])})"]


def _view(name: str, prefix: str, given: dict[str, ast.expr]) -> tuple[list[str], ast.expr]:
    """The lines that make what is written to, a base or a view of one, and its name; what they use leaves `given`."""
    at = ast.literal_eval(given.pop(f"{prefix}_base_index"))
    given.pop(f"{prefix}_alias", None)
    for op, parts in _VIEWS.items():
        if f"{prefix}_{parts[0]}" in given:
            values = ", ".join(ast.unparse(given.pop(f"{prefix}_{part}")) for part in parts)
            return [f"{name}{prefix} = torch.ops.aten.{op}({name}_base{at}, {values})"], ast.Name(f"{name}{prefix}")
    return [], ast.Constant(None) if at is None else ast.Name(f"{name}_base{at}")


def _op(node: ast.expr) -> str:
    return ast.unparse(node).removeprefix("torch.ops.")


def _called(op: str, args: list[ast.expr], keywords: list[ast.keyword]) -> str:
    return ast.unparse(ast.Call(ast.Name(op), args, keywords))
