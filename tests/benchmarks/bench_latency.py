"""Does our latency agree with torch.utils.benchmark's? Run by hand, alone on the machine, in no test run.

    python tests/benchmarks/bench_latency.py [ROUNDS]

A compiled model is timed by both, by turns, in one process; the noise is how far either differs from itself.
"""

import sys
from statistics import median

import torch
from torch import nn
from torch.utils.benchmark import Timer

from idbg.engine.bench.latency import latency


def by_timer(call: object, seconds: float) -> float:
    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=seconds).median * 1e3


def main(rounds: int) -> None:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for width in (64, 1024):
        model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).to(device).eval()
        x = torch.randn(256, width, device=device)
        compiled = torch.compile(model)

        def call(compiled: nn.Module = compiled, x: torch.Tensor = x) -> torch.Tensor:  # type: ignore[assignment]
            with torch.no_grad():
                return compiled(x)

        call()
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(latency(call, 200).median)
            theirs.append(by_timer(call, 1.0))
        ratio = median(ours) / median(theirs)
        noise = max(max(side) / min(side) for side in (ours, theirs))
        print(
            f"width {width:>5}: ours {median(ours):.4f} ms, Timer's {median(theirs):.4f} ms: ratio {ratio:.3f}", end=""
        )
        print(f" (noise {noise:.3f})   {'ok' if 1 / noise <= ratio <= noise else 'APART'}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
