"""How soon is the list of many sessions there? `idbg list` as a whole process, beside a plain Python, and beside one
that only looks at each log's size, in the same run.

    python tests/benchmarks/bench_list.py [TIMES]

Bounds: 1,000 sessions 0.3 s, 10,000 1 s. "first" is with no index: each session's own summary is read, and of every
twentieth, which was killed, the log.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.session.event_bus import EventBus
from idbg.session.store import Store
from idbg.session.summaries import NAME

BOUNDS = {1_000: 0.3, 10_000: 1.0}
PLAIN = [sys.executable, "-c", "pass"]
STAT = "import os, sys\nfor e in os.scandir(sys.argv[1]): os.stat(e.path + '/events.jsonl')"
LIST = [sys.executable, "-m", "idbg", "list", "--output"]


def make(output: Path, count: int) -> None:
    """As many sessions as real writers leave, each with a run."""
    for number in range(count):
        program = Program(path=f"examples/net_{number % 17}.py", cwd="/home/user/project")
        bus = EventBus(kept := Store.create(output, program))
        bus.emit(events.SessionOpened(version="0.1.0", program=program, folder=str(kept.folder), at=1.7e9 + number))
        bus.emit(events.RunStarted(run=1, program=program, target=Target(rules="name = 'x'\n" * 50)))
        bus.emit(events.RunEnded(run=1, verdict="clean", seconds=1.5))
        bus.close()
        if number % 20 == 0:
            (kept.folder / NAME).unlink()


def seconds(command: list[str], environ: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environ})
    return time.perf_counter() - began


def main(times: int) -> None:
    for count, bound in BOUNDS.items():
        with tempfile.TemporaryDirectory() as folder:
            output, cache = Path(folder, "out"), Path(folder, "cache")
            make(output, count)
            environ = {"XDG_CACHE_HOME": str(cache), "IDBG_SETTINGS": ""}
            taken: dict[str, list[float]] = {}

            def note(name: str, *command: str) -> None:
                taken.setdefault(name, []).append(seconds([*command], environ))  # noqa: B023  # called at once

            for _ in range(times):
                shutil.rmtree(cache, ignore_errors=True)
                note("python -c pass", *PLAIN)
                note("python, stat of each log", sys.executable, "-c", STAT, str(output))
                note("idbg list, first", *LIST, str(output))
                note("idbg list", *LIST, str(output))
                note("idbg list --json", *LIST, str(output), "--json")
                note("idbg list --limit 20", *LIST, str(output), "--limit", "20")
            print(f"{count:,} sessions (bound {bound} s), seconds: median, least to most, n {times}")
            for name, each in taken.items():
                print(f"  {name:26} {statistics.median(each):.3f}   {min(each):.3f} to {max(each):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
