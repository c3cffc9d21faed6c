"""What does `python -m idbg` do? The same as `idbg`."""

import sys

from idbg.cli import main

if __name__ == "__main__":
    sys.exit(main())
