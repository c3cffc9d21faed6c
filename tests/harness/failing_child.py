"""Compile one program of the table in this process, and write its script: `failing_child.py NAME FOLDER [minify]`.

The last line that it prints is JSON: the script's path, or why there is none.
"""

import json
import os
import sys
from pathlib import Path

from idbg.schema.diff import Comparison
from idbg.schema.errors import IdbgError
from idbg.schema.repros import Budget, Sought
from tests.harness.failing_compiles import FAILING
from tests.harness.minified import Minifying

NO_RULES = 'name = "none"\n'


def repro(name: str, folder: Path) -> dict[str, object]:
    bench = Minifying(folder, FAILING[name].text, rules=NO_RULES, backend=FAILING[name].backend)
    try:
        return {"script": str(bench.script())}
    except (ValueError, IdbgError) as error:
        return {"refused": str(error)}


def minify(name: str, folder: Path) -> dict[str, object]:
    case = FAILING[name]
    held_against = Comparison(per_kernel=True) if case.wrong else None
    bench = Minifying(folder, case.text, held_against, rules=NO_RULES, backend=case.backend)
    ended = bench.ended_as(Sought("wrong" if case.wrong else "failure"), budget=Budget(calls=300, seconds=200))
    if ended.minified is None:
        return {"refused": ended.failure.message if ended.failure else ""}
    found = ended.minified
    return {"script": found.path, "kind": found.signature.kind, "size": found.size, "reproduced": found.reproduced}


if __name__ == "__main__":
    here = Path(sys.argv[2])
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(here / "inductor")
    os.environ["XDG_CACHE_HOME"] = str(here / "cache")
    told = (minify if "minify" in sys.argv[3:] else repro)(sys.argv[1], here)
    print("\n" + json.dumps(told), flush=True)
