"""How does a script run as with `python FILE`, and its compilers write as those of a run do?

By `python -P -m idbg.worker.alone FILE`. The process is killed when the worker is, and must leave nothing torn in
Inductor's cache either.
"""

import os
import runpy
import sys

from idbg.engine.compat.builds import scratch


def main() -> None:
    """Run the script of the command line; what it raises and how it exits is its own."""
    script = sys.argv[1]
    scratch.begin()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
