"""What do other compilers' stages cost? A compile of resnet18 with and without them, and a key beside 100 MB of dumps.

    python tests/benchmarks/bench_stages.py [ROUNDS] [--backend turbine_cpu|openvino ...] [--keys]

Every compile is a fresh process; with and without take turns. CPU seconds are those of all threads of the process, in
which both compilers work; whatever else goes on adds to a measurement and takes nothing from it, so the least of each
side are compared (medians are beside them). Bound: under 3 % of a compile. Compiles of 10 s vary by more than that on a
shared machine: what our own code takes of each compile is measured beside it, and of IREE alone what it takes to dump.

A key: the session of tests/recordings, and the same with a stage of 100 MB as a file. The time of a key is that from
its press to an idle app, in the pane Source and in the pane Graph; first the stage is shown, which reads it.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BOUND = 1.03
ROOT = Path(__file__).resolve().parents[2]
OPTIONS: dict[str, dict[str, Any]] = {"turbine_cpu": {}, "openvino": {"aot_autograd": True}}
"""Without AOTAutograd OpenVINO's compile of resnet18 fails on torch 2.15, without idbg too."""
BACKENDS = tuple(OPTIONS)
PROGRAM = """
import torch, torchvision

def program():
    torch.manual_seed(0)
    return torchvision.models.resnet18(weights=None).eval().requires_grad_(False), (torch.randn(1, 3, 64, 64),)
"""
LINE = "    %{0} = linalg.generic ins(%{1} : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>\n"
LONG = 100 << 20  # bytes
KEYS = 60


@contextmanager
def our_seconds() -> Iterator[list[float]]:
    """While it lasts, the seconds of each call of our code that captures stages, but for those within another."""
    from unittest.mock import patch

    from idbg.engine.compat import openvino_stages, origins
    from idbg.engine.stages import readers
    from idbg.traces import stages

    took: list[float] = []
    inside = False

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def timing(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:
                return call(*args, **kwargs)
            inside, began = True, time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                inside = False
                took.append(time.perf_counter() - began)

        return timing

    with (
        patch.object(readers._Reading, "begin", timed(readers._Reading.begin)),
        patch.object(readers._Reading, "read", timed(readers._Reading.read)),
        patch.object(stages.Stages, "add", timed(stages.Stages.add)),
        patch.object(stages.Stages, "frame_done", timed(stages.Stages.frame_done)),
        patch.object(openvino_stages, "save", timed(openvino_stages.save)),
        patch.object(origins, "running_node", timed(origins.running_node)),
    ):
        yield took


def measure(backend: str, has_stages: bool) -> dict[str, float]:
    """One compile and run in this process: wall and CPU seconds, those of our own code, stages and their bytes."""
    from idbg.engine import decisions, stages
    from idbg.schema import event_log, events
    from idbg.schema.programs import NO_ACCELERATOR, Program, Target
    from idbg.worker.jobs import Jobs
    from idbg.worker.protocol import Compile

    if not has_stages:
        decisions.RECORDERS = tuple(each for each in decisions.RECORDERS if each is not stages.record)
    size = {"stages": 0, "bytes": 0}

    def emit(event: events.SessionEvent) -> None:
        event_log.encode(event)
        if isinstance(event, events.StageCaptured):
            size["stages"] += 1
            size["bytes"] += event.stage.size

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(PROGRAM)
        target = Target(backend=backend, accelerator=NO_ACCELERATOR, options=OPTIONS[backend], options_for=backend)
        request = Compile(1, Program(str(path)), target, folder, session=folder)
        jobs = Jobs(emit)
        began, cpu = time.perf_counter(), time.process_time()
        with our_seconds() as ours:
            ended = jobs.compile(request)
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
    assert ended.failure is None, ended.failure
    return {"wall": seconds, "cpu": used, "ours": sum(ours), **size}


def measured(backend: str, side: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", backend, "--side", side],
        env=dict(os.environ, PYTHONHASHSEED="0"),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(backend: str, rounds: int) -> None:
    """Print the ratios of one backend."""
    took: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
    for number in range(rounds):
        for side in sorted(took, reverse=bool(number % 2)):
            took[side].append(measured(backend, side))
    words = []
    for what in ("cpu", "wall"):
        ours, reference = ([each[what] for each in took[side]] for side in ("with", "without"))
        medians = statistics.median(ours) / statistics.median(reference)
        words.append(f"{what} ratio {min(ours) / min(reference):.3f} (of medians {medians:.3f};")
        words.append(f"{min(reference):.2f} s, with it {min(ours):.2f} s)")
    last = took["with"][-1]
    print(f"resnet18 {backend}: {'  '.join(words)}  bound {BOUND}", flush=True)
    print(f"    {last['stages']:.0f} stages, {last['bytes'] / 1e6:.2f} MB", flush=True)
    shares = [each["ours"] / each["wall"] for each in took["with"]]
    least = min(each["ours"] for each in took["with"])
    print(f"    our own code: {least * 1000:.0f} ms, {statistics.median(shares):.1%} of a compile (median)", flush=True)
    for side, each in took.items():
        print(
            f"    {side}: cpu {[round(one['cpu'], 2) for one in each]} wall {[round(one['wall'], 2) for one in each]}"
        )


def keys() -> None:
    """Print what a key takes with and without 100 MB of dumps."""
    sys.path.insert(0, str(ROOT))
    took = {side: asyncio.run(_keys(has_dumps=side == "with")) for side in ("without", "with")}
    for where in took["with"]:
        ours, reference = (sorted(took[side][where]) for side in ("with", "without"))
        if where == "shown":
            print(f"to show the stage: {reference[0] * 1000:.0f} ms, of {LONG >> 20} MB {ours[0] * 1000:.0f} ms")
            continue
        half = statistics.median(ours) / statistics.median(reference)
        rare = _percentile(ours, 95) / _percentile(reference, 95)
        print(
            f"a key in {where}: p50 {statistics.median(ours) * 1000:.1f} ms (ratio {half:.2f}), p95 "
            f"{_percentile(ours, 95) * 1000:.1f} ms (ratio {rare:.2f}), worst {ours[-1] * 1000:.1f} ms"
        )


def _percentile(values: list[float], percent: int) -> float:
    return values[min(len(values) - 1, len(values) * percent // 100)]


async def _keys(*, has_dumps: bool) -> dict[str, list[float]]:
    from msgspec.structs import replace

    from idbg.config.settings import Settings
    from idbg.schema import event_log, events
    from idbg.session.session import Session
    from tests.harness.recorded import log
    from tests.harness.screen import ReadyApp, settle

    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for event in log("foreign"):
            if isinstance(event, events.RunEvent) and event.run > 1:
                continue
            if isinstance(event, events.StageCaptured) and event.stage.name == "flow" and has_dumps:
                text = "".join(LINE.format(number, number - 1) for number in range(LONG // len(LINE)))
                Path(folder, "long.mlir").write_text(text)
                event = replace(event, stage=replace(event.stage, text="", file="long.mlir", size=len(text)))
            lines.append(event_log.encode(event))
        Path(folder, "events.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        app = ReadyApp(lambda: Session.open(Path(folder)), Settings())
        took: dict[str, list[float]] = {"shown": [], "Source": [], "Graph": []}
        async with app.run_test(size=(160, 45)) as pilot:
            await settle(pilot)
            stage = next(each for each in app.state.history.runs[1].stages.values() if each.name == "flow")
            began = time.perf_counter()
            app.state.choose_stage(stage.key)
            app.controllers.navigation._context.show()
            await pilot.pause()
            took["shown"].append(time.perf_counter() - began)
            for where, key in (("Source", "2"), ("Graph", "1")):
                await pilot.press(key)
                await settle(pilot)
                for number in range(KEYS):
                    began = time.perf_counter()
                    await pilot.press("down" if number % 12 < 6 else "up")
                    took[where].append(time.perf_counter() - began)
        return took


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument("--backend", action="append", choices=BACKENDS)
    parser.add_argument("--keys", action="store_true", help="only the time of a key")
    parser.add_argument("--measure", choices=BACKENDS)
    parser.add_argument("--side")
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure, args.side == "with")))
    else:
        for name in () if args.keys else args.backend or BACKENDS:
            compare(name, args.rounds)
        keys()
