"""Open the matrix of a job of 1,000 ranks: python -m tests.benchmarks.bench_ranks [RANKS].

A recorded log is replayed in each rank with other ids; three ranks compile another graph, and one began fewer
collectives. Prints the seconds and the memory of a fresh process that draws the matrix, with digests and without.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.harness.rank_logs import session_of_ranks, write_digests

SECONDS, MEMORY = 3.0, 1 << 30


def draw(session: Path) -> None:
    """Draw the matrix, and print what it took."""
    began = time.perf_counter()
    from idbg.render.text import text
    from idbg.session.ranks import of_session
    from idbg.views import ranks

    found = of_session(session)
    drawn = text(ranks.view(found))
    taken = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    record = {"seconds": taken, "bytes": memory, "columns": len(found.columns), "differences": len(found.differences)}
    print(json.dumps({**record, "lines": drawn.count("\n") + 1}))


def main(count: int) -> int:
    folder = Path(tempfile.mkdtemp(prefix="bench-ranks-"))
    try:
        session = session_of_ranks(folder / "job", count, calls=200, change=_planted)
        size = sum(path.stat().st_size for path in session.rglob("*") if path.is_file())
        print(f"{count:,} ranks, {size / 1e6:,.0f} MB of logs")
        without = _measured(session)
        print(f"without digests  {without['seconds']:.2f} s, {without['bytes'] / 1e6:,.0f} MB: {without}")
        shutil.rmtree(session)
        session = session_of_ranks(folder / "job", count, calls=200, change=_planted)
        write_digests(session)
        runs = [_measured(session) for _ in range(5)]
        for found in runs:
            print(f"with digests     {found['seconds']:.2f} s, {found['bytes'] / 1e6:,.0f} MB: {found}")
        worst = max(found["seconds"] for found in runs)
        most = max(found["bytes"] for found in runs)
        print(f"bounds: {worst:.2f} of {SECONDS} s, {most / 1e6:,.0f} of {MEMORY / 1e6:,.0f} MB")
        return int(worst > SECONDS or most > MEMORY)
    finally:
        shutil.rmtree(folder)


def _planted(rank: int, text: str) -> str:
    return text.replace("aten.sub.Tensor", "aten.div.Tensor") if rank % 400 == 7 else text


def _measured(session: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.bench_ranks", "--draw", str(session)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    if "--draw" in sys.argv:
        draw(Path(sys.argv[-1]))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
