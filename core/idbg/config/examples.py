"""The example programs that come with idbg. They are read, not run."""

import ast
from importlib.util import find_spec
from pathlib import Path

import msgspec

import idbg

TOUR = "tour"
"""The example of the tour."""


class Example(msgspec.Struct, frozen=True):
    """One file. `lacks`: modules that it imports and that are not installed. `is_model`: it defines program()."""

    name: str
    path: Path
    about: str
    is_model: bool
    lacks: tuple[str, ...] = ()


def folder() -> Path | None:
    """The folder: in the installed package, else in the checkout; None where there is none."""
    package = Path(idbg.__file__).resolve().parent
    return next((place for place in (package / "_examples", package.parents[1] / "examples") if place.is_dir()), None)


def in_folder(place: Path) -> list[Example]:
    """The Python files of a folder, by name, without those that cannot be parsed."""
    return [example for path in sorted(place.glob("*.py")) if (example := _read(path)) is not None]


def shipped() -> list[Example]:
    """The examples that come with idbg."""
    place = folder()
    return in_folder(place) if place is not None else []


def _read(path: Path) -> Example | None:
    from idbg.config.program_function import gives_function  # the first frame does not wait for it

    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    about = (ast.get_docstring(tree) or "").strip().partition("\n")[0]
    return Example(
        path.stem, path, about, gives_function(path), tuple(name for name in _imported(tree) if not _is_there(name))
    )


def _imported(tree: ast.Module) -> dict[str, None]:
    names: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0]: None for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names[node.module.partition(".")[0]] = None
    return names


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a module that is loaded without a spec
        return True
