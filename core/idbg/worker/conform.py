"""The process that runs one program of the conformance kit: the script that it runs calls `main` with CASE and FILE.

The case is a BenchCase as JSON; the answer is written to FILE as a whole, so that a crash leaves none.
"""

import sys
from pathlib import Path

import msgspec

from idbg.engine.bench.measure import answer
from idbg.schema.bench import BenchCase
from idbg.whole_file import write_whole


def main() -> None:
    """Do the case of the command line."""
    case = msgspec.json.decode(sys.argv[1], type=BenchCase)
    write_whole(Path(sys.argv[2]), msgspec.json.encode(answer(case, "conform")))
