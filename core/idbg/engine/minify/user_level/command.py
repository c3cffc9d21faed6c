"""What does the script say that gives a program's file to a command of the user's?"""

import shlex

import torch

from idbg import __version__
from idbg.engine.minify.user_level.script import EXITS, quotable
from idbg.engine.minify.user_level.wanted import Wanted

_SCRIPT = '''\
"""`{words} {name}` exits with {status}

{name} is what is left of {original}, in which each statement is needed for that.
Written by idbg {version} with torch {torch}. Run it: python repro.py
{exits}
"""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = {command!r}
FILE = Path(__file__).resolve().with_name({name!r})

paths = [{folder!r}, *filter(None, [os.environ.get("PYTHONPATH")])]  # the program's own modules
environment = os.environ | {{"PYTHONPATH": os.pathsep.join(paths)}}
done = subprocess.run([*COMMAND, str(FILE)], cwd={cwd!r}, env=environment)
if done.returncode == {status}:
    print("REPRODUCED", {told!r})
    sys.exit(1)
if done.returncode:
    print(f"OTHER exit status {{done.returncode}}")
    sys.exit(2)
'''


def rendered(wanted: Wanted, name: str, original: str, folder: str, cwd: str) -> str:
    """The script that gives the file `name` beside it to the command, in the folder and with the modules of the
    program.
    """
    words = shlex.join(wanted.command)
    return _SCRIPT.format(
        words=quotable(words),
        name=name,
        original=quotable(original),
        status=wanted.status,
        version=__version__,
        torch=torch.__version__,
        exits=EXITS,
        command=list(wanted.command),
        folder=folder,
        cwd=cwd,
        told=f"{words} {name} exits with {wanted.status}",
    )
