"""Write the ops that AOTAutograd puts around those that write to their arguments, or have effects, as calls."""

import ast
import re
from collections.abc import Callable

from idbg.engine.compat import repros

_OP = re.compile(r"<OpOverload\(op='([\w.]+)', overload='(\w+)'\)>")
FUNCTIONALIZED, WITH_EFFECTS = "higher_order.auto_functionalized_v2", "higher_order.with_effects"
GIVE_TUPLES = (FUNCTIONALIZED, WITH_EFFECTS)


def statements(name: str, target: str, arguments: str, needs: Callable[[str], str]) -> list[str] | None:
    """The lines that give `name` what the op TARGET(ARGUMENTS) gives, a tuple; None for another op. `needs`
    gets the op inside ("my.fill.default"), and returns the expression that calls it.

    Raises ValueError where the op inside is given a view of what it writes to.
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
    lines = [
        f"{name}_base{at} = torch.ops.aten.clone.default({ast.unparse(base)})" for at, base in enumerate(bases.elts)
    ]
    written = {key for key in given if key.startswith("_") and key.endswith("_base_index")}
    if views := [key for key in given if key.startswith("_") and key not in written]:
        raise ValueError(f"{name} is given a view of what it writes to ({views[0]}): it cannot stand alone")
    keywords = [ast.keyword(key, value) for key, value in given.items() if key not in written]
    for key in written:
        at = ast.literal_eval(given[key])
        base = ast.Constant(None) if at is None else ast.Name(f"{name}_base{at}")
        keywords.append(ast.keyword(key[1:].removesuffix("_base_index"), base))
    inner = _op(call.args[0])
    made = _called(needs(inner), [], keywords)
    held = [f"{name}_base{at}" for at in range(len(bases.elts))]
    returned = repros.results_of(inner)
    if not returned:  # the call is the last line: that is the node's
        return [*lines, f"{name} = ({', '.join(['None', *held])})", made]
    return [*lines, f"{name} = ({', '.join([f'*{made}' if returned > 1 else made, *held])})"]


def _op(node: ast.expr) -> str:
    return ast.unparse(node).removeprefix("torch.ops.")


def _called(op: str, args: list[ast.expr], keywords: list[ast.keyword]) -> str:
    return ast.unparse(ast.Call(ast.Name(op), args, keywords))
