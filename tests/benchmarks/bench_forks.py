"""What does it cost to run a script in a process of its own? From the request to its first compile, forked from a warm
process, beside a fresh Python, as a ratio.

    python tests/benchmarks/bench_forks.py [TIMES]

Both run in turn, on scripts that differ in a constant, so that each builds a kernel (g++ takes most of the forked one's
time: "to the compile" is without it). The caches are the same for all, and warm but for the kernel.
"""

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from idbg.engine.minify.forks.client import Forks

SCRIPT = """\
import time
import torch
import torch._inductor.compile_fx
began = time.time()
torch.compile(lambda x: x.sin() + {constant})(torch.ones(8))
print("times", began, time.time())
"""


@dataclass
class Taken:
    """Seconds of each script, from the request: to where it can compile, to the end of that, and to the answer."""

    name: str
    ready: list[float] = field(default_factory=list)
    compiled: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)

    def run(self, forks: Forks, script: Path) -> None:
        asked = time.time()
        tried = forks.run(script, seconds=600, memory=8 << 30)
        answered = time.time()
        told = next(line.split() for line in tried.printed.splitlines() if line.startswith("times"))
        self.ready.append(float(told[1]) - asked)
        self.compiled.append(float(told[2]) - asked)
        self.answered.append(answered - asked)

    def line(self) -> str:
        texts = [f"{statistics.median(each):6.2f} s ({min(each):.2f} to {max(each):.2f})" for each in self.rows]
        return f"{self.name:<14}" + "   ".join(texts)

    @property
    def rows(self) -> tuple[list[float], list[float], list[float]]:
        return self.ready, self.compiled, self.answered


def main(times: int) -> None:
    warm, cold = Taken("forked"), Taken("fresh Python")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        script = place / "script.py"
        with Forks(place, (), place / "scratch") as forks, Forks(place, (), place / "scratch", fork=False) as fresh:
            for number in range(times + 1):
                for taken, each in ((warm, forks), (cold, fresh)):
                    script.write_text(SCRIPT.format(constant=f"{number}.{1 if taken is warm else 2}5"))
                    taken.run(each, script)
    for row in (*warm.rows, *cold.rows):
        del row[0]  # what is built once
    print(f"{'':<14}to the compile           compiled                 answered           (n {times})")
    print(warm.line())
    print(cold.line())
    ratios = [statistics.median(b) / statistics.median(a) for a, b in zip(warm.rows, cold.rows, strict=True)]
    print("a fresh Python takes " + ", ".join(f"{ratio:.1f}" for ratio in ratios) + " times as long")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
