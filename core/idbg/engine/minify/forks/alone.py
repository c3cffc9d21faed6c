"""Run a script like `python FILE`, with compilers that leave no half-written files if the process is killed.

`python -P -m idbg.engine.minify.forks.alone PATHS FILE [ARGUMENTS]`; PATHS is a JSON list of folders for modules, after
the file's own. Imports no torch: the script may set environment variables that torch reads when it is imported.
"""

import json
import os
import sys

from idbg.engine.compat.builds import scratch
from idbg.engine.program.main_file import run_file


def main() -> None:
    """Run the script of the command line."""
    paths, script = sys.argv[1:3]
    scratch.begin()
    sys.argv = sys.argv[2:]
    sys.path[:0] = [os.path.dirname(os.path.abspath(script)), *json.loads(paths)]
    run_file(script)


if __name__ == "__main__":
    main()
