"""Lay out what each feature needs of torch, and check it against the installed torch.

docs/versions.md has the table through `python -m tools.pages`. `python -m tools.hooks` lists the functions and names
that the installed torch lacks or has, against the versions that the table names.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from idbg.engine.compat import hook_table
from idbg.engine.compat.hook_table import CORE, FEATURES, HOOKS, NOT_IN_EACH, TESTED, USED_FOR, Hook

Row = tuple[str, ...]
HEAD: Row = ("what a run records", "what it needs of torch", *TESTED, "without one of them")
_ROOM = Path(hook_table.__file__).parent
_DOOR = "internals"
_MEMBERS = (
    "cache_clear",
    "clear",
    "cudagraphs",
    "divide_kwargs",
    "get",
    "get_constant_args",
    "get_kernel",
    "items",
    "seen",
    "update",
)


@cache
def names() -> dict[str, tuple[str, ...]]:
    """Each name of torch that is looked up by `compat.names`, and the features that need it."""
    found: dict[str, set[str]] = {}
    for path in sorted(_ROOM.rglob("*.py")):
        feature = USED_FOR.get(path.stem, "torch")
        for name in _names_in(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, set()).add(feature)
    known = {name: tuple(sorted(features)) for name, features in sorted(found.items())}
    return {name: known[name] for name in known if not any(each.startswith(f"{name}.") for each in known)}


def _names_in(tree: ast.Module) -> Iterator[str]:
    """The names that a module looks up: "internals._ops.OpOverload", find("torch._ops.OpOverload"), aliases of both."""
    aliases = {_DOOR: "torch"}
    for each in tree.body:
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            target, value = each.targets[0] if isinstance(each, ast.Assign) else each.target, each.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            aliases |= {ast.unparse(left): full for left, right in pairs if (full := _full(right, aliases))}
    for node in ast.walk(tree):
        if full := _full(node, aliases):
            yield full
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "find" and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def _full(node: ast.AST, aliases: dict[str, str]) -> str:
    """The dotted name of torch that an attribute is, without members of a class or an object; "" for another node."""
    rest: list[str] = []
    while isinstance(node, ast.Attribute):
        rest.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases or not rest:
        return ""
    root = node.id
    is_class = (at for at, each in enumerate(rest, 1) if each != "_C" and each.lstrip("_")[:1].isupper())
    at = next(is_class, len(rest))
    kept = rest[: at - 1] if rest[at - 1] in _MEMBERS else rest[:at]
    return ".".join((aliases[root], *kept)) if kept else ""


def rows() -> list[Row]:
    """A row for each feature: what it needs, whether each version of torch has all of it, and what one without does."""
    found = []
    for feature, records in FEATURES.items():
        hooks = [hook for hook in HOOKS if feature in hook.features]
        others = [name for name, features in names().items() if feature in features]
        paths: dict[str, list[str]] = {}
        for hook in hooks:
            paths.setdefault(hook.module, []).append(f"`{hook.path}`")
        for name in others:
            module, _, own = name.rpartition(".")
            paths.setdefault(module, []).append(f"`{own}`")
        needed = "; ".join(f"{', '.join(dict.fromkeys(own))} of `{module}`" for module, own in paths.items())
        lacking = {name: NOT_IN_EACH.get(name, TESTED) for name in others} | {
            hook.name: hook.versions for hook in hooks
        }
        has = ("yes" if all(version in each for each in lacking.values()) else "no" for version in TESTED)
        without = [
            *(["left out"] if hooks or set(others) - {*CORE} else []),
            *(["trace"] if {*others} & {*CORE} else []),
        ]
        found.append((records, needed or "none: it reads torch's trace", *has, " or ".join(without) or "as it is"))
    return found


def main() -> int:
    """Print each function and name whose presence differs from the table; 1 if there is one."""
    import torch

    from idbg.engine.compat import hooks
    from idbg.engine.compat.names import find

    version = ".".join(torch.__version__.split(".")[:2])

    def is_there(hook: Hook) -> bool:
        try:
            hooks.owner_of(hook)
        except (AttributeError, ImportError):
            return False
        return True

    table = {hook.name: (is_there(hook), hook.versions) for hook in HOOKS}
    table |= {name: (find(name, table) is not table, NOT_IN_EACH.get(name, TESTED)) for name in names()}
    wrong = {name: there for name, (there, versions) in table.items() if there != (version in versions)}
    print(f"torch {torch.__version__} from {torch.__file__}: {len(table)} names, {len(wrong)} not as in the table")
    for name, there in wrong.items():
        print(f"  {name}: {'there' if there else 'missing'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
