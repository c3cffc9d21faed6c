"""What can come next on a command line? A script for each shell, made of the parsers.

Looked at first: shtab (made for this, and has no fish), argcomplete (has all three, and starts Python whenever the
key is pressed: 0.1 s and more). Here flags and choices stand in the script, and Python
is started for names that change.
"""

from collections.abc import Callable, Mapping

from idbg.cli.completions import bash, fish, zsh
from idbg.cli.completions.model import Program
from idbg.cli.completions.model import programs as programs

SHELLS: Mapping[str, Callable[[list[Program]], str]] = {"bash": bash.script, "fish": fish.script, "zsh": zsh.script}
