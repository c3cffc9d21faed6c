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


WRITES = ("print", "pprint", "builtins.print", "sys.stdout.write", "sys.stderr.write", "warnings.warn")


def calls(path: Path, *functions: str) -> Iterator[ast.Call]:
    """Each call of these. A file in which none of the names stands is not parsed."""
    text = path.read_text(encoding="utf-8")
    last = {function.rpartition(".")[2] for function in functions}
    if not any(name in text for name in last):
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in last and ast.unparse(node.func) in functions:
            yield node


def sources() -> Iterator[tuple[str, Path]]:
    for root in ("core/idbg", "idbg_tui"):
        for path in sorted((ROOT / root).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path


def test_nothing_but_the_front_ends_prints() -> None:
    ours = [(name, path) for name, path in sources() if not name.startswith(FRONT_ENDS)]
    found = {name: [ast.unparse(call) for call in calls(path, *WRITES)] for name, path in ours}
    assert {name: written for name, written in found.items() if written} == {
        name: [call] for name, call in THE_PROGRAMS_OWN.items()
    }


def test_a_logger_is_named_by_its_module() -> None:
    named = set()
    for name, path in sources():
        named |= {(name, ast.unparse(call.args[0]) if call.args else "") for call in calls(path, "logging.getLogger")}
    torchs = {"core/idbg/engine/compat/comparing.py"}  # whose words are listened to
    set_up = {"core/idbg/cli/output.py"}  # where what is logged goes
    assert {each for each in named if each[1] != "__name__" and each[0] not in torchs | set_up} == set()
