"""Which test fails where a constant of the judge of numbers is taken away? `docs/numerics.md` names one for each.

`python -m tests.harness.without_constant [NAME ...]` runs the table's tests, each without its constant, and fails where
one passes all the same. As a plugin of pytest: `WITHOUT=module:NAME=value pytest -p tests.harness.without_constant`.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/numerics.md"
_ROW = re.compile(
    r"^\| `(?P<module>[\w/]+)` \| `(?P<name>\w+)` \| (?P<value>[^|]+) \| (?P<without>[^|]+) \|.*\|(?P<tests>[^|]*)\|$"
)
_TEST = re.compile(r"`([\w/]+)::(\w+)`")


class Row(NamedTuple):
    """A line of the page's table: the constant, its value, the one that takes the rule away, and the tests."""

    module: str
    name: str
    value: float
    without: str
    tests: tuple[tuple[str, str], ...]


def rows() -> list[Row]:
    """The table of the page."""
    found = (_ROW.match(line) for line in PAGE.read_text().splitlines())
    return [
        Row(
            "idbg." + row["module"].replace("/", "."),
            row["name"],
            float(row["value"]),
            row["without"].strip(),
            tuple(_TEST.findall(row["tests"])),
        )
        for row in found
        if row
    ]


def pytest_configure() -> None:
    """Take the constant away before anything imports it by its name."""
    if without := os.environ.get("WITHOUT"):
        module, _, assignment = without.partition(":")
        name, _, value = assignment.partition("=")
        home = importlib.import_module(module)
        setattr(home, name, type(getattr(home, name))(float(value)))


def passes(row: Row, test: tuple[str, str]) -> bool:
    """Whether the test passes without the constant."""
    environ = os.environ | {"WITHOUT": f"{row.module}:{row.name}={row.without}"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.harness.without_constant"]
    place = [f"tests/{test[0]}.py", "-k", test[1]]
    done = subprocess.run([*command, *place], cwd=ROOT, env=environ, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{test}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main() -> int:
    """Each test of the table without its constant."""
    wrong = 0
    for row in rows():
        if sys.argv[1:] and row.name not in sys.argv[1:]:
            continue
        for test in row.tests:
            held = not passes(row, test)
            wrong += not held
            print(f"{row.name:20} {row.without:8} {'fails' if held else 'PASSES':6}  {'::'.join(test)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
