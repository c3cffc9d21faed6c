"""Which tests belong to the first tier, and which to the exhaustive one.

The first tier, which `pytest` without paths runs, has the tests of tests/unit and tests/screen that are not marked
slow, and of the others those that tests/contract.txt lists; it leaves out the tests that tests/left_out.txt lists. All
other tests get the mark `exhaustive`.
"""

from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT, LEFT_OUT = ROOT / "tests" / "contract.txt", ROOT / "tests" / "left_out.txt"
CHEAP = ("tests/unit/", "tests/screen/")


@cache
def contract() -> frozenset[str]:
    """The listed files, tests and cases of tests."""
    return _listed(CONTRACT)


@cache
def left_out() -> frozenset[str]:
    """Tests that are not of the first tier though their folder or file is."""
    return _listed(LEFT_OUT)


def _listed(file: Path) -> frozenset[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in map(str.strip, lines) if line and not line.startswith("#"))


@cache
def contract_files() -> frozenset[str]:
    """The files of the listed tests, relative to the root."""
    return frozenset(entry.partition("::")[0] for entry in contract())


def is_first(test: str, is_slow: bool) -> bool:
    """Whether the test with this id is of the first tier."""
    if test in left_out():
        return False
    file, name = test.partition("::")[0], test.partition("[")[0]
    return test in contract() or name in contract() or (not is_slow and (file in contract() or file.startswith(CHEAP)))


def has_first(file: Path) -> bool:
    """Whether the file may have tests of the first tier: others need not be imported for it."""
    name = file.relative_to(ROOT).as_posix()
    return name.startswith(CHEAP) or name in contract_files()


def not_found(tests: list[str]) -> list[str]:
    """The listed tests that do not exist, of the files that these tests are in."""
    files = {test.partition("::")[0] for test in tests}
    known = {*files, *tests, *(test.partition("[")[0] for test in tests)}
    entries = contract() | left_out()
    return sorted(entry for entry in entries if entry.partition("::")[0] in files and entry not in known)
