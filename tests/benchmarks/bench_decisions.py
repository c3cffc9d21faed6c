"""What does it cost a compile that every decision of the compiler is listened to? The same compile with all listeners
of engine/decisions and with none, cold and warm, of a small model and of resnet18, as ratios.

    python tests/benchmarks/bench_decisions.py [ROUNDS] [--only LISTENER ...] [--model small|resnet18]

Every measurement is a fresh process; with and without take turns. Cold ones begin with a copy of a cache in which there
is nothing but what each folder has once (the check of the CPU's instructions, the precompiled header), which would hide
what we cost; warm ones have the cache that the cold one before left. Everything that is told is encoded, as a worker
does. The CPU seconds are this process's own: those of the compilers that torch starts are not ours. Whatever else goes
on adds to a measurement and takes nothing from it, so the least of each side are compared (medians are beside them).
"rest" is the CPU seconds without Python's collector: one collection of everything takes 0.1 s and more, and a few
thousand objects decide whether the last of them falls inside of what is measured ("full": how many did).
Bound: under 5 % of a compile's CPU seconds, cold and warm.
"""

import argparse
import gc
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BOUND = 1.05
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "resnet.py"
SMALL = """
import torch

def program():
    layers = [torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 32)]
    return torch.nn.Sequential(*layers), (torch.randn(8, 32, requires_grad=True),)
"""
SEED = "import torch\n\ndef program():\n    return torch.nn.Softplus(), (torch.randn(7, 11),)\n"
MODELS = ("small", "resnet18")


def measure(model: str, listeners: list[str] | None) -> dict[str, float]:
    """One compile and run in this process: wall and CPU seconds, and how much was told."""
    from idbg.engine import decisions
    from idbg.schema import event_log, events
    from idbg.schema.programs import Program, Target
    from idbg.worker.jobs import Jobs
    from idbg.worker.protocol import Compile

    importlib.import_module("torch._inductor.compile_fx")  # both sides need it, and it takes longer than we do
    if listeners is not None:
        named = {recorder.__module__.rpartition(".")[2]: recorder for recorder in decisions.RECORDERS}
        decisions.RECORDERS = tuple(named[name] for name in listeners)
    size = {"events": 0, "bytes": 0}

    def emit(event: events.SessionEvent) -> None:
        size["events"] += 1
        size["bytes"] += len(event_log.encode(event))

    folder = tempfile.mkdtemp()
    path = EXAMPLE
    if model != "resnet18":
        path = Path(folder) / "program.py"
        path.write_text(SMALL if model == "small" else SEED)
    request = Compile(1, Program(str(path)), Target(backend="inductor"), folder)
    gc.collect()
    gc.freeze()  # a whole collection of what is imported takes 0.3 s, and comes to either side by chance
    collector = Collector()
    gc.callbacks.append(collector)
    began, cpu = time.perf_counter(), time.process_time()
    ended = Jobs(emit).compile(request)
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    gc.callbacks.remove(collector)
    shutil.rmtree(folder)
    assert ended.failure is None, ended.failure
    return {"wall": seconds, "cpu": used, "rest": used - collector.seconds, "full": collector.full, **size}


class Collector:
    """The CPU seconds of Python's collector, and how many of its collections were of everything."""

    def __init__(self) -> None:
        self.seconds, self.began, self.full = 0.0, 0.0, 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.began = time.thread_time()
            return
        self.seconds += time.thread_time() - self.began
        self.full += info["generation"] == 2


def measured(model: str, listeners: list[str] | None, cache: Path) -> dict[str, float]:
    chosen = [] if listeners is None else ["--listeners", *listeners]
    done = subprocess.run(
        [sys.executable, __file__, "--measure", model, *chosen],
        env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(cache), PYTHONHASHSEED="0"),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(rounds: int, only: list[str] | None, models: list[str]) -> None:
    sides: dict[str, list[str] | None] = {"without": [], "with": only}
    with tempfile.TemporaryDirectory() as folder:
        seed = Path(folder) / "seed"
        measured("seed", [], seed)
        for model in models:
            took: dict[tuple[str, str], list[dict[str, float]]] = {}
            for round_number in range(rounds):
                for side in sorted(sides, reverse=bool(round_number % 2)):
                    cache = Path(folder) / f"{model}-{round_number}-{side}"
                    shutil.copytree(seed, cache)
                    for heat in ("cold", "warm"):
                        took.setdefault((heat, side), []).append(measured(model, sides[side], cache))
                    shutil.rmtree(cache)
            for heat in ("cold", "warm"):
                report(model, heat, took)


def report(model: str, heat: str, took: dict[tuple[str, str], list[dict[str, float]]]) -> None:
    words = []
    for what in ("cpu", "wall", "rest"):
        ours, reference = ([each[what] for each in took[heat, side]] for side in ("with", "without"))
        medians = statistics.median(ours) / statistics.median(reference)
        words.append(f"{what} ratio {min(ours) / min(reference):.3f} (of medians {medians:.3f};")
        words.append(f"{min(reference):.2f} s, with it {min(ours):.2f} s)")
    told = [statistics.median(each[what] for each in took[heat, "with"]) for what in ("events", "bytes")]
    print(
        f"{model} {heat}: {'  '.join(words)}   bound {BOUND}   {told[0]:.0f} events, {told[1] / 1e6:.2f} MB", flush=True
    )
    for side in ("without", "with"):
        samples = {
            what: [round(each[what], 2) for each in took[heat, side]] for what in ("cpu", "wall", "rest", "full")
        }
        print(f"    {side}: {samples}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--measure")
    parser.add_argument("--listeners", nargs="*")
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure, args.listeners)))
    else:
        main(args.rounds, args.only, args.model or list(MODELS))
