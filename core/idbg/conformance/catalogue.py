"""List the programs of the kit, without importing them: they import torch."""

import ast
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from idbg.format.file_names import from_here
from idbg.schema.conformance import ConformanceProgram
from idbg.schema.errors import BadInput, output_errors

FOLDER = Path(__file__).parent / "programs"
ORDER = (
    *("elementwise", "reductions", "products", "normalization", "indexing", "dtypes", "views", "mutation"),
    *("dynamic_shapes", "control_flow", "training", "random_numbers", "custom_ops", "sizes"),
)


def programs(folder: Path = FOLDER, *, quick: bool = False) -> tuple[ConformanceProgram, ...]:
    """The programs of the folder's files, a family a file; with `quick` those of each file's QUICK alone.

    Raises BadInput where a file cannot be read.
    """
    rank = {name: number for number, name in enumerate(ORDER)}
    files = sorted(folder.glob("[!_]*.py"), key=lambda file: (rank.get(file.stem, len(rank)), file.stem))
    found = [program for file in files for program in _programs(file)]
    return tuple(program for program in found if program.quick or not quick)


def chosen(found: Sequence[ConformanceProgram], names: Sequence[str]) -> tuple[ConformanceProgram, ...]:
    """Those with these names: of a file ("views"), or of a program in it ("views:transposes"). Raises BadInput."""
    if not names:
        return tuple(found)
    known = {*(Path(each.file).stem for each in found), *map(identity, found)}
    if unknown := [name for name in names if name not in known]:
        families = ", ".join(dict.fromkeys(Path(each.file).stem for each in found))
        raise BadInput(f"there is no program {unknown[0]!r}", hint=f"name FAMILY or FAMILY:PROGRAM, of {families}")
    return tuple(each for each in found if identity(each) in names or Path(each.file).stem in names)


def identity(program: ConformanceProgram) -> str:
    """The program's name among all: "views:transposes"."""
    return f"{Path(program.file).stem}:{program.name}"


def copied(folder: Path) -> Path:
    """Copy the programs below the folder, where they are the user's to read, change and run. Raises OutputError."""
    place = folder / "programs"
    with output_errors(f"cannot write {from_here(str(place))}", "name another folder (--output)"):
        place.mkdir(parents=True, exist_ok=True)
        for file in FOLDER.glob("[!_]*.py"):
            shutil.copyfile(file, place / file.name)
    return place


def _programs(file: Path) -> Iterator[ConformanceProgram]:
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (OSError, SyntaxError, ValueError) as error:
        raise BadInput(f"the programs of {file} cannot be read: {error}", hint="fix the file") from error
    family = (ast.get_docstring(tree) or file.stem).partition("\n")[0]
    quick = _quick(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not (node.name.startswith("_") or node.decorator_list):
            about = (ast.get_docstring(node) or "").partition("\n")[0]
            yield ConformanceProgram(node.name, family, str(file), about, node.name in quick)


def _quick(tree: ast.Module) -> frozenset[str]:
    """The names in the file's QUICK."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == "QUICK" for each in node.targets
        ):
            return frozenset(ast.literal_eval(node.value))
    return frozenset()
