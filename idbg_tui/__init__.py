"""The terminal front end of idbg: panes over one fold of the session's events."""

import signal
import sys
from pathlib import PurePath

if sys.argv[0] == "-m" or PurePath(sys.argv[0]).name == "idbg-tui":
    # ctrl+c while the modules of the screen are imported: it ends as other programs do, without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)
