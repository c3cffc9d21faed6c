"""How does a command go over to the screen? It becomes `idbg-tui`: nothing here may import the screen's package."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from idbg.schema.errors import BadInput

SCREEN = ("idbg_tui", "textual")


def become_screen(arguments: Sequence[str]) -> int:
    """Go on as `idbg-tui ARGUMENTS` in this very process; whatever it exits with is our status.

    Raises BadInput if it is not installed.
    """
    missing = [name for name in SCREEN if find_spec(name) is None]
    if missing:
        raise BadInput(
            f"the screen is not installed here: there is no package {missing[0]}",
            hint="pip install --force-reinstall idbg brings it; without one, idbg run and idbg report tell the same",
        )
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: what lies in the folder that the user stands in must not be imported as ours
    os.execv(sys.executable, [sys.executable, "-P", "-m", SCREEN[0], *arguments])
