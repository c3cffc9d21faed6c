"""Find, by its text, whether a program is a file with a function that returns a model, or a script."""

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from itertools import accumulate
from pathlib import Path

from idbg.schema.errors import ProgramError
from idbg.schema.programs import Program


def defines_function(program: Program) -> bool:
    """Whether it is a file with a function that returns a model, and not a script. Raises ProgramError, SyntaxError."""
    if program.name:
        return True
    file = file_of(program)
    if file is None:
        return False
    return gives_function(file, program.path, _folder(program)) if program.module else gives_function(file)


def file_of(program: Program) -> Path | None:
    """Its source file; None if it has none. Raises ProgramError if the module does not exist."""
    if not program.module:
        return Path(program.path)
    spec = _spec(program.path, [_folder(program), *sys.path])
    if spec is None or spec.origin is None:
        raise ProgramError(f"there is no module {program.path}", hint="run from the folder that holds the package")
    return Path(spec.origin) if spec.origin.endswith(".py") else None


def _folder(program: Program) -> str:
    return program.cwd or os.getcwd()


def gives_function(file: Path, module: str = "", folder: str = "") -> bool:
    """Whether the file defines `program` at its top level, or imports it from a file that does. Nothing is run.

    An imported function does not count in a script that uses it or compiles, nor in a package that runs by itself.
    `module` is the file's dotted name; modules are searched from `folder` (the file's own without it). Raises
    SyntaxError, OSError.
    """
    tree, name = ast.parse(file.read_bytes(), filename=str(file)), "program"
    if _defines(tree, name):
        return True
    if _uses_or_compiles(tree, name) or (file.name == "__init__.py" and file.with_name("__main__.py").exists()):
        return False
    places = [folder or str(file.resolve().parent), *sys.path]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return any(_defines(each, origin) for each, origin in _origins(tree, name, package, places))


def _spec(name: str, places: Sequence[str]) -> ModuleSpec | None:
    """The module, searched without an import, because packages may compile on import; None where there is none."""
    within: Sequence[str] | None = places
    spec: ModuleSpec | None = None
    for each in accumulate(name.split("."), "{}.{}".format):
        spec = next(filter(None, (finder.find_spec(each, within) for finder in sys.meta_path)), None)
        if spec is None or within is None:
            return None
        within = spec.submodule_search_locations
    return spec


def _defines(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


def _uses_or_compiles(tree: ast.Module, name: str) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.alias(name="compile"):
                return True
            case ast.Name(id=used) if used in (name, "compile"):
                return True
            case ast.Attribute(attr="compile", value=owner) if getattr(owner, "id", "") != "re":
                return True
    return False


def _origins(tree: ast.Module, name: str, package: str, places: Sequence[str]) -> Iterator[tuple[ast.Module, str]]:
    """The files from which the name is imported, each from the next, with its name there."""
    seen: set[tuple[str, str]] = set()
    while (link := _imported_from(tree, name, package)) is not None and link not in seen:
        seen.add(link)
        module, name = link
        spec = _spec(module, places)
        if spec is None or not (spec.origin or "").endswith(".py"):
            return
        try:
            tree = ast.parse(Path(str(spec.origin)).read_bytes())
        except (OSError, SyntaxError, ValueError):  # running it reports the error
            return
        package = module if spec.submodule_search_locations is not None else module.rpartition(".")[0]
        yield tree, name


def _imported_from(tree: ast.Module, name: str, package: str) -> tuple[str, str] | None:
    """The module that a statement of the top level imports the name from, and its name there."""
    for node in reversed([each for each in tree.body if isinstance(each, ast.ImportFrom)]):
        origin = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), None)
        if origin is not None:
            try:
                return resolve_name("." * node.level + (node.module or ""), package or None), origin
            except ImportError:  # relative, and the file is in no package
                return None
    return None
