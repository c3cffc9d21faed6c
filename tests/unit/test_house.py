"""Is the house in the order that CONTRIBUTING promises: short files and functions, docstrings, few `Any`?"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE, SCREEN, TESTS, TOOLS = (ROOT / name for name in ("core", "idbg_tui", "tests", "tools"))
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 600, 60
LEAST_DOCSTRINGS, MOST_ANY = 0.85, 3.0  # a share of what is public; in a thousand lines

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def place(path: Path, node: ast.stmt | None = None) -> str:
    return str(path.relative_to(ROOT)) + (f":{node.lineno}" if node else "")


@pytest.mark.parametrize("folder", [CORE, SCREEN, TESTS, TOOLS], ids=lambda folder: folder.name)
def test_no_file_has_more_than_600_lines(folder: Path) -> None:
    lines = {place(path): path.read_text(encoding="utf-8").count("\n") for path in files(folder)}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("folder", [CORE, SCREEN, TESTS, TOOLS], ids=lambda folder: folder.name)
def test_no_function_has_more_than_60_lines(folder: Path) -> None:
    assert facts(folder).long == {}


@pytest.mark.parametrize("folder", [CORE, SCREEN, TOOLS], ids=lambda folder: folder.name)
def test_what_is_public_says_what_it_is(folder: Path) -> None:
    """Classes, functions and methods, but for `action_*`, which a key describes, and what Textual calls by its name."""
    documented, silent = facts(folder).documented, facts(folder).silent
    share = documented / (documented + len(silent))
    assert share >= LEAST_DOCSTRINGS, f"{share:.1%} of {folder.name} has docstrings, not:\n" + "\n".join(silent)


def test_no_test_imports_another() -> None:
    """What several tests share is in tests/harness; a benchmark may use what another one makes."""
    assert facts(TESTS).of_tests == {}


def test_any_is_rare_in_core() -> None:
    lines, uses = facts(CORE).lines, facts(CORE).any
    share = 1000 * len(uses) / lines
    assert share < MOST_ANY, f"{share:.1f} Any in a thousand lines:\n" + "\n".join(uses)


@dataclass
class Facts:
    """What the tests hold of a folder's files: each is parsed once."""

    lines: int = 0
    long: dict[str, int] = field(default_factory=dict)
    documented: int = 0
    silent: list[str] = field(default_factory=list)
    any: list[str] = field(default_factory=list)
    of_tests: dict[str, set[str]] = field(default_factory=dict)


@functools.cache
def facts(folder: Path) -> Facts:
    found = Facts()
    for path in files(folder):
        text = path.read_text(encoding="utf-8")
        found.lines += text.count("\n")
        tree = ast.parse(text)
        modules = set()
        for node in ast.walk(tree):
            if isinstance(node, Function) and (lines := length(node)) > MOST_LINES_OF_A_FUNCTION:
                found.long[f"{place(path, node)} {node.name}"] = lines
            elif isinstance(node, ast.Name) and node.id == "Any":
                found.any.append(f"{place(path)}:{node.lineno}")
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
        tests = {module for module in modules if module.startswith("tests.") and not module.startswith("tests.harness")}
        if tests and path.parent.name != "benchmarks":
            found.of_tests[place(path)] = tests
        for name, definition in public(tree):
            if ast.get_docstring(definition):
                found.documented += 1
            else:
                found.silent.append(f"{place(path, definition)} {name}")
    return found


def length(function: Function) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


OF_TEXTUAL = (
    *("action_", "on_", "_on_", "watch_", "validate_", "compose", "render", "check_action", "notify_style_update"),
    *("get_content_", "get_default_screen", "get_system_commands"),
)


def public(module: ast.Module | ast.ClassDef) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """What others may use: no name that begins with an underscore, nothing inside of a function."""
    for node in module.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not (isinstance(module, ast.ClassDef) and overrides(node, module)):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", inner) for name, inner in public(node))


def overrides(node: Function | ast.ClassDef, of: ast.ClassDef) -> bool:
    """A key's action, or a name by which Textual calls it."""
    return isinstance(node, Function) and node.name.startswith(OF_TEXTUAL)
