"""How much of correct programs is judged, and is nothing accused? On a GPU, or on the CPU where there is none.

    python tests/benchmarks/bench_judged.py [--jobs N] [--json FILE] [NAME ...]

Prints a line a program: verdict, judged stages and launches, seconds, and the reasons why the others are not judged.
A stage that was not run, as what comes of it is right, counts as judged. Bounds: no program fails, nothing is accused,
every stage and 98 % of the launches are judged.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

SECONDS = 180  # to wait for a program, once those before it have ended
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "core")]


def judged(name: str) -> dict[str, Any]:
    """The figures of one program, as JSON."""
    import torch

    from idbg import KernelDiff
    from idbg.schema.remarks import Remark
    from idbg.views import remarks
    from tests.harness.correct_programs import correct_program

    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.perf_counter()
    try:
        program = correct_program(name, device)
        report = KernelDiff(program.model, program.inputs, backward=program.train, per_kernel=True).compare()
    except Exception as error:  # a program that cannot be built is a line of the table
        return {"name": name, "verdict": f"{type(error).__name__}: {str(error)[:300]}"}
    failed = [
        f"{diff.name} {diff.failed_by} {diff.baseline} {diff.note}"
        for diff in (*report.outputs, *report.gradients)
        if diff.failed
    ]
    accused = [f"{stage.stage} {stage.node} {stage.error} {stage.added}" for stage in report.stages if stage.bad]
    accused += [f"{stage.stage} changed {stage.node} {stage.node_error}" for stage in report.stages if stage.changed]
    if report.culprit is not None:
        one = report.culprit
        accused.append(f"{one.name} {one.nodes} {one.buffer} {one.isolated} {one.isolated_eager}")
    whys = {one.stage: remarks.sentence(one.reason) for one in report.stages if not one.judged}
    unknown = {stage: why for stage, why in whys.items() if why != remarks.sentence(Remark("as dynamo"))}
    reasons = Counter(remarks.sentence(one.reason) for one in report.kernels if not one.observed)
    return {
        "name": name,
        "verdict": report.verdict,
        "stages": [len(report.stages) - len(unknown), len(report.stages)],
        "launches": [sum(one.observed for one in report.kernels), len(report.kernels)],
        "seconds": round(time.perf_counter() - began, 1),
        "failed": failed,
        "accused": accused,
        "sides": [f"{side.name}: {side.failure.message}" for side in report.sides if side.failure],
        "stages not judged": unknown,
        "launches not judged": dict(reasons),
        "not judged": [(one.name, one.nodes) for one in report.kernels if not one.observed][:40],
        "not comparable": report.not_comparable,
    }


def line(row: dict[str, Any]) -> str:
    """One program, in one line and a line a reason."""
    counts = " ".join(f"{kind} {row[kind][0]}/{row[kind][1]}" for kind in ("stages", "launches") if kind in row)
    text = [f"{row['name']:<26} {row['verdict']} {counts} {row.get('seconds', '')}"]
    for kind in ("failed", "accused", "sides"):
        text += [f"    {kind}: {each}" for each in row.get(kind, [])[:6]]
    for kind in ("stages not judged", "launches not judged"):
        text += [f"    {kind}: {key} {value}" for key, value in row.get(kind, {}).items()]
    if row.get("not comparable"):
        text.append(f"    not comparable: {row['not comparable']}")
    return "\n".join(text)


def main() -> None:
    """Run the programs, `--jobs` at a time, and print the totals."""
    from tests.harness.correct_programs import names

    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    rows = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs) as pool:  # leaving it ends what still runs
        results = [(name, pool.apply_async(judged, (name,))) for name in options.names or list(names())]
        for name, result in results:
            try:
                row = result.get(SECONDS)
            except multiprocessing.TimeoutError:
                row = {"name": name, "verdict": f"did not end within {SECONDS} s"}
            rows.append(row)
            print(line(row), flush=True)
            if options.json:
                Path(options.json).write_text(json.dumps(rows, indent=1))
    stages, launches = (
        [sum(row[kind][at] for row in rows if kind in row) for at in (0, 1)] for kind in ("stages", "launches")
    )
    print(f"{sum(row['verdict'] == 'passed' for row in rows)} of {len(rows)} programs pass (bound: all)")
    print(f"{sum(bool(row.get('accused')) for row in rows)} accuse something (bound: 0)")
    print(f"{stages[0]} of {stages[1]} stages are judged (bound: all)")
    print(f"{launches[0]} of {launches[1]} launches are judged: {launches[0] / max(1, launches[1]):.1%} (bound: 98 %)")


if __name__ == "__main__":
    main()
