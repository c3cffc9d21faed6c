"""Each test is of the first tier or exhaustive, and CI runs both, the first by the command of the README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import tiers
from tests.harness.tiers import ROOT

LISTED = (
    "tests/compile/engine/test_whole.py",
    "tests/compile/engine/test_a.py::test_all_cases",
    "tests/compile/engine/test_a.py::test_cases[one]",
)


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract, left_out = tmp_path / "contract.txt", tmp_path / "left_out.txt"
    contract.write_text("# why\n\n" + "\n".join(LISTED) + "\n")
    left_out.write_text("# why\ntests/unit/test_a.py::test_dear[all]\n")
    monkeypatch.setattr(tiers, "CONTRACT", contract)
    monkeypatch.setattr(tiers, "LEFT_OUT", left_out)
    for cached in (tiers.contract, tiers.left_out, tiers.contract_files):
        monkeypatch.setattr(tiers, cached.__name__, cached.__wrapped__)


@pytest.mark.parametrize(
    ("test", "is_slow", "first"),
    [
        ("tests/unit/test_a.py::test_a", False, True),
        ("tests/screen/tui/test_a.py::test_a[80x24]", False, True),
        ("tests/unit/test_a.py::test_a", True, False),
        ("tests/unit/test_a.py::test_dear[all]", False, False),
        ("tests/unit/test_a.py::test_dear[one]", False, True),
        ("tests/compile/engine/test_a.py::test_all_cases", False, True),
        ("tests/compile/engine/test_a.py::test_all_cases[a]", True, True),
        ("tests/compile/engine/test_a.py::test_cases[one]", True, True),
        ("tests/compile/engine/test_a.py::test_cases[two]", False, False),
        ("tests/compile/engine/test_whole.py::test_a[one]", False, True),
        ("tests/compile/engine/test_whole.py::test_a", True, False),
        ("tests/compile/engine/test_b.py::test_all_cases", False, False),
    ],
)
def test_the_first_tier_has_what_is_cheap_and_what_is_listed(
    listed: None, test: str, is_slow: bool, first: bool
) -> None:
    assert tiers.is_first(test, is_slow) == first


def test_only_files_with_tests_of_the_first_tier_are_imported_for_it(listed: None) -> None:
    assert tiers.has_first(ROOT / "tests/unit/test_b.py") and tiers.has_first(ROOT / "tests/compile/engine/test_a.py")
    assert not tiers.has_first(ROOT / "tests/compile/engine/test_b.py")


def test_a_listed_test_that_is_not_there_is_found(listed: None) -> None:
    assert tiers.not_found(["tests/compile/engine/test_a.py::test_all_cases[a]"]) == [LISTED[2]]
    assert tiers.not_found(["tests/compile/engine/test_b.py::test_b"]) == []


def test_each_listed_test_is_in_a_file_that_exists() -> None:
    assert [name for name in tiers.contract_files() if not (ROOT / name).is_file()] == []


def test_each_constant_of_the_judge_has_its_test_in_the_first_tier() -> None:
    """The test that fails without it: docs/numerics.md."""
    rows = re.findall(
        r"^\| `[\w/]+` \| `(\w+)` \|.*\|([^|]*)\|$", (ROOT / "docs/numerics.md").read_text(), re.MULTILINE
    )
    named = {name: re.findall(r"`([\w/]+)::(\w+)`", tests) for name, tests in rows}
    first = {entry.partition("[")[0] for entry in tiers.contract()}
    whole = tuple(f"{entry}::" for entry in first if "::" not in entry)
    without = [
        name
        for name, tests in named.items()
        if not any(
            file.startswith(("unit/", "screen/"))
            or f"tests/{file}.py::{test}" in first
            or f"tests/{file}.py::".startswith(whole)
            for file, test in tests
        )
    ]
    assert len(named) > 20 and without == []


def test_ci_runs_the_command_of_the_readme_and_then_all_others() -> None:
    command = re.search(r"^pip install .* && pytest$", (ROOT / "README.md").read_text(), re.MULTILINE)
    ci = (ROOT / ".ci" / "run").read_text()
    assert command is not None and 0 < ci.index(command[0]) < ci.index("pytest -m exhaustive")


@pytest.mark.slow
def test_the_tiers_together_have_every_test_once() -> None:
    def collected(*arguments: str) -> tuple[int, int]:
        """How many tests these arguments choose, and how many there are."""
        command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:syrupy", "--collect-only", "-q", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        counts = re.search(r"^(?:(\d+)/)?(\d+) tests collected", done.stdout, re.MULTILINE)
        assert counts is not None, done.stdout[-500:]
        return int(counts[1] or counts[2]), int(counts[2])

    (first, _), (others, every) = collected(), collected("-m", "exhaustive", "tests")
    assert first > 5000 and others > 1000
    assert first + others == every
