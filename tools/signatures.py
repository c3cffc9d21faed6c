"""Read the signature and docstring of each public name from the source, without torch."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import idbg

CORE = Path(idbg.__file__).parents[1]
WIDE = 100  # characters; a longer signature has a line for each argument

Definition = ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True)
class Named:
    """A class or function where it is written."""

    module: str
    node: Definition

    @property
    def doc(self) -> str:
        """Its docstring."""
        return ast.get_docstring(self.node) or ""


@functools.cache
def parsed(module: str) -> ast.Module:
    """The syntax tree of a module."""
    path = CORE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def find(module: str, name: str) -> Named | None:
    """The definition of a name of `module`: there, or in the module that it imports it from."""
    for node in parsed(module).body:
        if isinstance(node, Definition) and node.name == name:
            return Named(module, node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and _names(node) == [name]:
            return find(module, node.value.id)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("idbg"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return find(node.module or "", alias.name)
    return None


def _names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def signature(named: Named, name: str) -> str:
    """The signature; for a class that of its constructor, or, for a base class, its attributes."""
    node = named.node
    if isinstance(node, ast.FunctionDef):
        return layout(name, arguments(node), node.returns)
    made = next((each for each in _methods(node, "__init__")), None)
    if made is not None:
        return layout(name, arguments(made)[1:])
    if any(_is_record(each.node) for each in bases(named)):
        return layout(name, list(_fields(named)))
    attributes = [*_fields(named), *(ast.unparse(each) for each in node.body if isinstance(each, ast.Assign))]
    return "\n".join((f"class {name}", *(f"    {each}" for each in attributes)))


def _is_record(node: Definition) -> bool:
    """Whether it is a msgspec struct or a dataclass."""
    names = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else [])]
    return any(word in ast.unparse(each) for each in names for word in ("Struct", "dataclass"))


def layout(name: str, parameters: list[str], returns: ast.expr | None = None) -> str:
    """A signature in one line, or with one line per argument."""
    end = f") -> {ast.unparse(returns)}" if returns is not None else ")"
    line = f"{name}({', '.join(parameters)}{end}"
    if len(line) <= WIDE:
        return line
    return "\n".join((f"{name}(", *(f"    {each}," for each in parameters), end))


def arguments(node: ast.FunctionDef) -> list[str]:
    """Each argument as it is written: name, type, default."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    parts = [_argument(each, default) for each, default in zip(plain, defaults, strict=True)]
    if args.vararg is not None:
        parts.append(f"*{_argument(args.vararg, None)}")
    elif args.kwonlyargs:
        parts.append("*")
    parts += [_argument(each, default) for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg is not None:
        parts.append(f"**{_argument(args.kwarg, None)}")
    return parts


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if argument.annotation else f"{text}={ast.unparse(default)}"


def bases(named: Named) -> Iterator[Named]:
    """Its base classes, and itself last."""
    assert isinstance(named.node, ast.ClassDef)
    for base in named.node.bases:
        found = find(named.module, base.id) if isinstance(base, ast.Name) else None
        if found is not None and isinstance(found.node, ast.ClassDef):
            yield from bases(found)
    yield named


def _fields(named: Named) -> Iterator[str]:
    for each in bases(named):
        for node in each.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                kind = ast.unparse(node.annotation)
                if not node.target.id.startswith("_") and not kind.startswith("ClassVar"):
                    default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
                    yield f"{node.target.id}: {kind}{default}"


def _methods(node: ast.ClassDef, name: str = "") -> Iterator[ast.FunctionDef]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (each.name == name if name else not each.name.startswith("_")):
            yield each


def members(named: Named) -> list[tuple[str, str]]:
    """Each public method and property of a class: its text, and the first paragraph of its docstring."""
    if not isinstance(named.node, ast.ClassDef):
        return []
    found: dict[str, tuple[str, str]] = {}
    for each in bases(named):
        assert isinstance(each.node, ast.ClassDef)
        for method in _methods(each.node):
            words = " ".join((ast.get_docstring(method) or "").partition("\n\n")[0].split())
            found[method.name] = (_written(method), words or found.get(method.name, ("", ""))[1])
    return list(found.values())


def _written(method: ast.FunctionDef) -> str:
    decorators = {ast.unparse(each) for each in method.decorator_list}
    gives = f" -> {ast.unparse(method.returns)}" if method.returns is not None else ""
    if decorators & {"property", "functools.cached_property", "cached_property"}:
        return method.name + (f": {ast.unparse(method.returns)}" if method.returns is not None else "")
    given = arguments(method)
    return f"{method.name}({', '.join(given if 'staticmethod' in decorators else given[1:])}){gives}"
