"""Measure the tests, and print what of the program only exhaustive tests run: what tests/contract.txt is chosen by.

`python -m tools.contract record FOLDER [ARGUMENTS OF PYTEST]` runs the tests and records in FOLDER, an empty one, which
lines each runs and its processor seconds (Python 3.12 or newer; whole suite: 5 minutes on 32 processors).
`python -m tools.contract show FOLDER` prints the processor seconds of the first tier, each file's lines that only
exhaustive tests run, and the cheapest tests that would run them.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.harness import tiers

Lines = set[tuple[str, int]]
OF_ALL = 0.3  # seconds that a test takes beside its own


def record(folder: Path, arguments: list[str]) -> int:
    """Run the tests; the exit status of pytest."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"{folder} is not empty: name another folder", file=sys.stderr)
        return 2
    started = (
        Path(sysconfig.get_path("purelib")) / "idbg_tests_measured.pth"
    )  # each process of the environment reads it
    started.write_text(
        "import os, sys; os.environ.get('MEASURED') and (sys.path.append(os.environ['MEASURED_ROOT']), "
        "__import__('tests.harness.measured'))\n"
    )
    environ = {**os.environ, "MEASURED": str(folder.resolve()), "MEASURED_ROOT": str(tiers.ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "tests.harness.measured", *(arguments or ["tests", "-n", "auto"])]
    try:
        return subprocess.run(command, cwd=tiers.ROOT, env=environ, check=False).returncode
    finally:
        started.unlink()


def seconds_of(folder: Path) -> dict[str, float]:
    """Test -> its processor seconds."""
    seconds: dict[str, float] = defaultdict(float)
    for file in folder.glob("*.seconds"):
        for line in file.read_text(encoding="utf-8").splitlines():
            test, _, used = line.rpartition("\t")
            seconds[test] += float(used)
    return seconds


def lines_of(folder: Path) -> dict[str, Lines]:
    """Test -> files and lines of the program."""
    lines: dict[str, Lines] = defaultdict(set)
    for file in folder.glob("*.lines"):
        test = ""
        for row in file.read_text(encoding="utf-8").splitlines():
            name, _, number = row.partition("\t")
            if name:
                lines[test].add((name, int(number)))
            else:
                test = number
    return lines


def cheapest(missing: Lines, lines: dict[str, Lines], seconds: dict[str, float]) -> Iterator[tuple[str, int]]:
    """Tests, each with the number of missing lines that it adds, by lines a second, until none adds five."""
    left = set(missing)
    while True:
        gains = {test: len(ran & left) for test, ran in lines.items()}
        test = max(gains, key=lambda test: gains[test] / (seconds.get(test, 0) + OF_ALL), default="")
        if not test or gains[test] < 5:
            return
        yield test, gains[test]
        left -= lines[test]


def show(folder: Path) -> int:
    """Print what was measured."""
    seconds, lines = seconds_of(folder), lines_of(folder)
    slow = {test for test in seconds if test.startswith("tests/matrix/")}
    first = {test for test in seconds if tiers.is_first(test, test in slow)}
    spent: dict[str, float] = defaultdict(float)
    for test in seconds:
        spent["first" if test in first else "exhaustive"] += seconds[test]
    print(", ".join(f"{tier}: {used:,.0f} processor seconds" for tier, used in spent.items()))
    ran_first = {line for test in first for line in lines.get(test, ())}
    others = {test: lines[test] for test in lines if test not in first}
    missing = {line for ran in others.values() for line in ran} - ran_first
    print(
        f"{len(ran_first):,} lines of the program run in the first tier, {len(missing):,} in the exhaustive tier alone"
    )
    for name, count in Counter(name for name, _ in missing).most_common(40):
        print(f"{count:6}  {name}")
    for test, count in cheapest(missing, others, seconds):
        print(f"{count:6} lines for {seconds.get(test, 0):6.1f} s  {test}")
    return 0


def main() -> int:
    """Record or show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "show"))
    parser.add_argument("folder", type=Path)
    options, others = parser.parse_known_args()
    return record(options.folder, others) if options.what == "record" else show(options.folder)


if __name__ == "__main__":
    sys.exit(main())
