"""Whose a kernel's error is, on resnet18: from the end of the comparison to the verdict, of every launch, and how long
its script takes to write. The verdict of the slowest launch must be there within 2 s.

Usage: python tests/benchmarks/bench_attribution.py [--device cuda] [--batch 2] [--backward]
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
import torchvision

from idbg import KernelDiff
from idbg.engine.kerneldiff.kernel_attribution.script import launch_script
from idbg.format.attributions import sentence
from idbg.schema.errors import OutputError

LIMIT = 2.0  # seconds


def main() -> int:
    """Print how long each launch took, and exit 1 where one took longer than LIMIT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--backward", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torchvision.models.resnet18().train(args.backward).to(args.device)
    x = torch.randn(args.batch, 3, 224, 224, device=args.device)
    began = time.perf_counter()
    comparison = KernelDiff(model, (x,), per_kernel=True, backward=args.backward).begin()
    report = comparison.run()
    print(f"compared, {len(report.kernels)} launches: {time.perf_counter() - began:.1f} s, {report.verdict}")
    took, kinds = [], Counter[str]()
    scripts, written = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for launch, kernel in enumerate(report.kernels):
            start = time.perf_counter()
            found = comparison.owner(report, launch)
            took.append((time.perf_counter() - start, kernel.name, sentence(found.verdict)))
            kinds[found.verdict.kind] += 1
            start = time.perf_counter()
            try:
                launch_script(found, Path(folder))
            except (ValueError, OutputError) as error:
                print(f"  no script of {kernel.name}: {error}")
                continue
            scripts, written = scripts + 1, written + time.perf_counter() - start
    seconds = [each[0] for each in took]
    slowest = max(took)
    print(
        f"the verdict, a launch: median {statistics.median(seconds):.2f} s, slowest {slowest[0]:.2f} s ({slowest[1]})"
    )
    print(f"kinds: {dict(kinds)}; {scripts} scripts, {written / max(1, scripts):.2f} s each to write")
    for _, name, words in [each for each in took if "nobody's" not in each[2]][:12]:
        print(f"  {name}: {words}")
    return 0 if slowest[0] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
