"""How does a script run as with `python FILE`, while its compilers write so that what is killed half-way lands nowhere?

By `python -P -m idbg.engine.minify.forks.alone PATHS FILE [ARGUMENTS]`; PATHS is a JSON list of folders that are looked
in for modules, after the file's own. Imports no torch: the script may set what torch reads as it is imported.
"""

import json
import os
import sys

from idbg.engine.compat.builds import scratch
from idbg.engine.program.main_file import run_file


def main() -> None:
    """Run the script of the command line; what it raises and how it exits is its own."""
    paths, script = sys.argv[1:3]
    scratch.begin()
    sys.argv = sys.argv[2:]
    sys.path[:0] = [os.path.dirname(os.path.abspath(script)), *json.loads(paths)]
    run_file(script)


if __name__ == "__main__":
    main()
