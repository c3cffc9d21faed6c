"""What is each public name of idbg: its signature, and what it says of itself? Read from the source, without torch."""

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
    def told(self) -> str:
        """Its docstring."""
        return ast.get_docstring(self.node) or ""


@functools.cache
def parsed(module: str) -> ast.Module:
    """A module of ours, not imported."""
    path = CORE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def find(module: str, name: str) -> Named | None:
    """Where `module` has it: written there, or taken from another module of ours."""
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
    """As it is called; of a class, as it is made, or, where it is there to be derived from, its attributes."""
    node = named.node
    if isinstance(node, ast.FunctionDef):
        return laid(name, arguments(node), node.returns)
    made = next((each for each in _methods(node, "__init__")), None)
    if made is not None:
        return laid(name, arguments(made)[1:])
    if any(_is_record(each.node) for each in bases(named)):
        return laid(name, list(_fields(named)))
    attributes = [*_fields(named), *(ast.unparse(each) for each in node.body if isinstance(each, ast.Assign))]
    return "\n".join((f"class {name}", *(f"    {each}" for each in attributes)))


def _is_record(node: Definition) -> bool:
    """Whether its fields are what it is made with: a struct of msgspec's, or a dataclass."""
    told = [*(ast.unparse(each) for each in node.decorator_list)]
    told += [ast.unparse(each) for each in node.bases] if isinstance(node, ast.ClassDef) else []
    return any("Struct" in each or "dataclass" in each for each in told)


def laid(name: str, given: list[str], gives: ast.expr | None = None) -> str:
    """A signature in one line, or with a line for each argument."""
    end = f") -> {ast.unparse(gives)}" if gives is not None else ")"
    line = f"{name}({', '.join(given)}{end}"
    if len(line) <= WIDE:
        return line
    return "\n".join((f"{name}(", *(f"    {each}," for each in given), end))


def arguments(node: ast.FunctionDef) -> list[str]:
    """Each as it is written: name, type, default."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    told = [_argument(each, default) for each, default in zip(plain, defaults, strict=True)]
    if args.vararg is not None:
        told.append(f"*{_argument(args.vararg, None)}")
    elif args.kwonlyargs:
        told.append("*")
    told += [_argument(each, default) for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg is not None:
        told.append(f"**{_argument(args.kwarg, None)}")
    return told


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    told = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return told
    return f"{told} = {ast.unparse(default)}" if argument.annotation else f"{told}={ast.unparse(default)}"


def bases(named: Named) -> Iterator[Named]:
    """The classes of ours that it derives from, and it last."""
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
                told = ast.unparse(node.annotation)
                if not node.target.id.startswith("_") and not told.startswith("ClassVar"):
                    default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
                    yield f"{node.target.id}: {told}{default}"


def _methods(node: ast.ClassDef, name: str = "") -> Iterator[ast.FunctionDef]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (each.name == name if name else not each.name.startswith("_")):
            yield each


def members(named: Named) -> list[tuple[str, str]]:
    """(how it is written, the first paragraph of what it says) of each public method and property of a class."""
    if not isinstance(named.node, ast.ClassDef):
        return []
    told: dict[str, tuple[str, str]] = {}
    for each in bases(named):
        assert isinstance(each.node, ast.ClassDef)
        for method in _methods(each.node):
            words = " ".join((ast.get_docstring(method) or "").partition("\n\n")[0].split())
            told[method.name] = (_written(method), words or told.get(method.name, ("", ""))[1])
    return list(told.values())


def _written(method: ast.FunctionDef) -> str:
    decorators = {ast.unparse(each) for each in method.decorator_list}
    gives = f" -> {ast.unparse(method.returns)}" if method.returns is not None else ""
    if decorators & {"property", "functools.cached_property", "cached_property"}:
        return method.name + (f": {ast.unparse(method.returns)}" if method.returns is not None else "")
    given = arguments(method)
    return f"{method.name}({', '.join(given if 'staticmethod' in decorators else given[1:])}){gives}"
