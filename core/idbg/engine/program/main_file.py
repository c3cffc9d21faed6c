"""Run a file as `__main__`, and compute the exit status that Python would give it.

`python -P -m idbg.engine.program.main_file PATHS FILE [ARGUMENTS]` runs it with compilers that leave no half-written
files if the process is killed; PATHS is a JSON list of folders for modules, after the file's own. Imports no torch: the
file may set environment variables that torch reads when it is imported.
"""

import builtins
import io
import json
import os
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

from idbg.engine.compat.builds import scratch
from idbg.schema.errors import spelled


def run_file(path: str) -> None:
    """Run it as `python FILE` does: `__file__` is absolute, `sys.argv[0]` as it was typed."""
    full = os.path.abspath(path)
    with io.open_code(full) as file:
        code = compile(file.read(), full, "exec")
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=full,
        __builtins__=builtins,
        __loader__=SourceFileLoader("__main__", full),
        __cached__=None,
        __package__=None,
        __annotations__={},
    )
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def status_of(code: object) -> int:
    """The exit status that Python derives from sys.exit's argument."""
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def words_of(code: object) -> str:
    return code if isinstance(code, str) else spelled(code)


def main() -> None:
    """Run the script of the command line."""
    paths, script = sys.argv[1:3]
    scratch.begin()
    sys.argv = sys.argv[2:]
    sys.path[:0] = [os.path.dirname(os.path.abspath(script)), *json.loads(paths)]
    run_file(script)


if __name__ == "__main__":
    main()
