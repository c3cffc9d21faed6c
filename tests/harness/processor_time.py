"""Report the processor seconds of each test: `pytest -p tests.harness.processor_time --processor-times FILE tests`.

They include the processes that the test has started and that still run, and add up when tests run side by side.
"""

import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

TICK = os.sysconf("SC_CLK_TCK")
DEAREST = 20
_begun = 0.0  # processor seconds of this process and its children when the test began
_tests: Counter[str] = Counter()


def spent() -> float:
    """Processor seconds of this process and all that descend from it, those that have ended too."""
    ours = os.times()
    return sum(ours[:4]) + sum(map(_of_process, _descendants(os.getpid())))


def _descendants(pid: int) -> Iterator[int]:
    """Those that have not been waited for."""
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, _text(listed).split()):
            yield child
            yield from _descendants(child)


def _of_process(pid: int) -> float:
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICK  # utime, stime, cutime, cstime


def _text(path: Path) -> str:
    """What the kernel says; "" of a process that has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processor-times", metavar="FILE", help="write the processor seconds of each test to FILE")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    global _begun
    _begun = spent()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "teardown":
        report.processor_seconds = spent() - _begun  # pytest-xdist carries it to the first process
    return report


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "teardown":
        _tests[report.nodeid] += report.processor_seconds


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name what is dearest, and write all of it where that was asked for."""
    tiers, files = Counter[str](), Counter[str]()
    for name, seconds in _tests.items():
        file = name.partition("::")[0]
        files[file] += seconds
        tiers["/".join(Path(file).parts[:2])] += seconds
    for words, found in (("folder", tiers), ("file", files), ("test", _tests)):
        terminalreporter.section(f"processor seconds of each {words}, the dearest first")
        for name, seconds in found.most_common(DEAREST):
            terminalreporter.write_line(f"{seconds:9.2f}  {name}")
    if file := config.getoption("--processor-times"):
        rows = (f"{seconds:.3f}\t{name}\n" for name, seconds in _tests.most_common())
        Path(file).write_text("".join(rows), encoding="utf-8")
