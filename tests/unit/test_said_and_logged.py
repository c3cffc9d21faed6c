"""Who writes to the terminal? The front ends; all else is an event, or logged under its module's name."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRONT_ENDS = ("core/idbg/cli/", "idbg_tui/__main__.py")
THE_PROGRAMS_OWN = {  # what Python writes when a script ends with words, where a script runs here
    "core/idbg/engine/minify/forks/become.py": "print(words_of(error.code), file=sys.stderr)",
    "core/idbg/engine/program/script.py": "print(words_of(error.code), file=sys.stderr)",
}


def writes(path: Path) -> Iterator[str]:
    """Each call that writes to stdout or stderr."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ("print", "pprint", "builtins.print", "sys.stdout.write", "sys.stderr.write", "warnings.warn"):
            yield ast.unparse(node)


def sources() -> Iterator[tuple[str, Path]]:
    for root in ("core/idbg", "idbg_tui"):
        for path in sorted((ROOT / root).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path


def test_nothing_but_the_front_ends_prints() -> None:
    found = {name: [*writes(path)] for name, path in sources() if not name.startswith(FRONT_ENDS)}
    assert {name: calls for name, calls in found.items() if calls} == {
        name: [call] for name, call in THE_PROGRAMS_OWN.items()
    }


def test_a_logger_is_named_by_its_module() -> None:
    named = set()
    for name, path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger":
                named |= {(name, ast.unparse(node.args[0]))} if node.args else {(name, "")}
    torchs = {"core/idbg/engine/compat/fakes.py"}  # whose words are listened to
    set_up = {"core/idbg/cli/output.py"}  # where what is logged goes
    assert {each for each in named if each[1] != "__name__" and each[0] not in torchs | set_up} == set()
