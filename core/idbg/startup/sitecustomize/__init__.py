"""Capture this Python process as one of a session, from the first thing that it compiles.

Python imports this package at its start, as its folder stands first on PYTHONPATH. The Python may be any other than the
one that idbg is installed in, so nothing but the standard library is imported here, and the modules find each other by
relative imports. A process that compiles nothing pays for a few patched functions of `os`.

The program sees its own environment and sys.path: what leads here is passed on to the processes that it starts below
Python's `os.environ`, and removed from theirs again. Where idbg cannot be imported, torch writes its trace instead.
"""

import sys

if __name__ == "sitecustomize":
    from .capture import start

    start()
    for _name in [name for name in sys.modules if name.partition(".")[0] == __name__]:
        del sys.modules[_name]
    __import__("sitecustomize")  # the program's own, or the ImportError that Python expects where there is none
