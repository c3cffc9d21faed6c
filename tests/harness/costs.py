"""Classify a test file by what it imports: that is what it costs, and the folder of tests/ in which it lies."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Literal

Cost = Literal["unit", "screen", "compile", "matrix"]

ROOT = Path(__file__).parents[2]
_TORCH = re.compile(
    r"(torch|torchvision|transformers|triton|idbg\.engine"
    r"|idbg\.worker\.(bench|comparing|jobs|main|minifying|bisect_try))(\.|$)"
)
_SCREEN = re.compile(r"(textual|idbg_tui)(\.|$)")
_ALL_SLOW = re.compile(r"^pytestmark = .*pytest\.mark\.slow", re.MULTILINE)


def cost_of(path: Path) -> Cost:
    """`matrix`: all its tests are slow. `compile`: it imports torch, or tests the engine. `screen`: it imports
    Textual. `unit`: none of these. Imports of tests/harness count as the file's own.
    """
    if _ALL_SLOW.search(path.read_text(encoding="utf-8")):
        return "matrix"
    if "engine" in path.parts or _reaches(path, _TORCH):
        return "compile"
    return "screen" if _reaches(path, _SCREEN) else "unit"


@cache
def _reaches(path: Path, wanted: re.Pattern[str]) -> bool:
    """Whether the file, or what it imports of tests/harness, imports such a module, at its top or in a function."""
    modules = imported(path)
    if any(wanted.match(module) for module in modules):
        return True
    ours = (ROOT / f"{module.replace('.', '/')}.py" for module in modules if module.startswith("tests.harness"))
    return any(_reaches(file, wanted) for file in ours if file.is_file() and file != path)


@cache
def imported(path: Path) -> frozenset[str]:
    """The modules that a file names in its imports, also those that may be a module's attribute."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return frozenset(found)
