"""Record for each test which lines of the program it runs, in all its processes, and its processor time.

`tools/contract.py` turns it on: a line in a `.pth` file imports this module in each process of the environment, and
MEASURED in the environment names the folder of the records. It is a plugin of pytest too. Lines need `sys.monitoring`
(Python 3.12). Each process appends to files of its own: `.lines` (a test, then its files and lines), `.seconds`.
"""

import atexit
import os
import resource
import sys
import time
from collections.abc import Generator
from types import CodeType
from typing import Any, NoReturn

FOLDER = os.environ.get("MEASURED", "")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
PROGRAM = (f"{ROOT}core{os.sep}", f"{ROOT}idbg_tui{os.sep}")
TOOL = 4  # of sys.monitoring: not a number of a debugger, of coverage or of a profiler
SERVER = any("warm_server" in word for word in getattr(sys, "orig_argv", ()))

_lines: list[tuple[str, int]] = []
_server_pid = os.getpid()
_flushed = 0.0


def test_of_process() -> str:
    """The id of the test that runs; a process that a test starts has it in its environment."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]


def flush() -> None:
    """Write what was recorded since the last time."""
    global _flushed
    _flushed = time.monotonic()
    rows, _lines[:] = list(_lines), []
    if rows and (test := test_of_process()):
        _append("lines", "".join([f"\t{test}\n", *(f"{file}\t{number}\n" for file, number in rows)]))


def seconds() -> float:
    """Processor seconds of this process and of the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _append(kind: str, text: str) -> None:
    file = os.open(f"{FOLDER}/{os.getpid()}.{kind}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, text.encode())
    os.close(file)


def _begin() -> None:
    """Record each line of the program once a test."""
    monitoring: Any = vars(sys)["monitoring"]  # since Python 3.12

    def function_starts(code: CodeType, offset: int) -> object:
        if code.co_filename.startswith(PROGRAM):
            monitoring.set_local_events(TOOL, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def line_runs(code: CodeType, number: int) -> object:
        _lines.append((code.co_filename.removeprefix(ROOT), number))
        if len(_lines) >= 400 or time.monotonic() - _flushed > 0.5:  # a process may be killed
            flush()
        return monitoring.DISABLE

    def forked() -> None:
        _lines.clear()
        monitoring.restart_events()

    leave = os._exit

    def left(status: int) -> NoReturn:
        flush()
        if SERVER and os.getpid() != _server_pid and (test := test_of_process()):  # nobody of the test waits for it
            _append("seconds", f"{test}\t{seconds():.3f}\n")
        leave(status)

    os._exit = left  # type: ignore[assignment]
    atexit.register(flush)
    os.register_at_fork(before=flush, after_in_child=forked)
    monitoring.use_tool_id(TOOL, "idbg tests")
    monitoring.register_callback(TOOL, monitoring.events.PY_START, function_starts)
    monitoring.register_callback(TOOL, monitoring.events.LINE, line_runs)
    monitoring.set_events(TOOL, monitoring.events.PY_START)


if FOLDER and sys.version_info >= (3, 12):
    _begin()

if "pytest" in sys.modules:
    import pytest

    from tests.harness.processor_time import spent

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
        """Record the lines and the processor time of one test."""
        os.environ["PYTEST_CURRENT_TEST"] = f"{item.nodeid} (setup)"
        if sys.version_info >= (3, 12):
            vars(sys)["monitoring"].restart_events()
        before = spent()
        result = yield
        os.environ["PYTEST_CURRENT_TEST"] = f"{item.nodeid} (end)"
        flush()
        _append("seconds", f"{item.nodeid}\t{spent() - before:.3f}\n")
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        return result
