"""Split the command line at `--`. It is imported before anything else."""

import re
from collections.abc import Sequence


def split(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Our arguments, and the program's own after the first `--`. As in Python, `-mNAME` is `-m NAME`."""
    at = argv.index("--") if "--" in argv else len(argv)
    ours: list[str] = []
    for text in argv[:at]:
        ours += ["-m", text[2:]] if re.match(r"-m[^=]", text) else [text]
    return ours, tuple(argv[at + 1 :])
