"""What does capturing cost? `aot` on resnet18 beside plain torch.compile of the same model, cold and warm, as
ratios.

    python tests/benchmarks/bench_capture.py [REPEATS]
    python tests/benchmarks/bench_capture.py --ranks N [REPEATS]

With --ranks the same script, which compiles that model in each of N gloo ranks, runs under `torch.distributed.run` and
under `idbg run --nproc-per-node N`, in turn. Beside the seconds of the slowest rank the processor seconds of all ranks
and of what they start are compared, from the start of their Python to its end.

Every measurement is a fresh process; cold ones have an empty Inductor cache, warm ones the cache of the cold one
before. The time is from the call of torch.compile to the first result; for `aot` it includes checking the rules and
encoding every event. Bounds: cold at most 1.15x, warm at most 2x.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "resnet.py"


def plain() -> float:
    import runpy

    import torch

    model, inputs = runpy.run_path(str(EXAMPLE))["program"]()
    began = time.perf_counter()
    with torch.no_grad():
        torch.compile(model)(*inputs)
    return time.perf_counter() - began


def aot() -> float:
    from idbg.accelerators import registry
    from idbg.schema import event_log, events
    from idbg.schema.programs import Program, Target
    from idbg.worker.jobs import Jobs
    from idbg.worker.protocol import Compile

    told: list[events.SessionEvent] = []

    def emit(event: events.SessionEvent) -> None:
        event_log.encode(event)
        told.append(event)

    rules, _ = registry.find("mock")
    ended = Jobs(emit).compile(Compile(1, Program(str(EXAMPLE)), Target(rules=rules), tempfile.mkdtemp()))
    assert ended.failure is None, ended.failure
    loading = sum(
        event.seconds or 0 for event in told if isinstance(event, events.PhaseChanged) and event.phase == "program"
    )
    return ended.seconds - loading


def measured(what: str, cache: str) -> float:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", what],
        env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


RANK = """
import atexit, json, os, resource, sys, time

def report():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    with open(os.path.join(sys.argv[2], os.environ["RANK"]), "w") as file:
        json.dump({"seconds": seconds, "cpu": cpu}, file)

atexit.register(report)  # before torch is imported: after all that idbg does at the end
import runpy
import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
model, inputs = runpy.run_path(sys.argv[1])["program"]()
began = time.perf_counter()
with torch.no_grad():
    torch.compile(model)(*inputs)
seconds = time.perf_counter() - began
torch.distributed.destroy_process_group()
"""


def of_ranks(what: str, count: int, cache: str) -> dict[str, float]:
    """The seconds of the slowest rank, and the processor seconds of all."""
    with tempfile.TemporaryDirectory() as folder:
        script, results = Path(folder) / "rank.py", Path(folder) / "results"
        script.write_text(RANK)
        results.mkdir()
        ranks, own = f"--nproc-per-node={count}", (str(EXAMPLE), str(results))
        command = {
            "plain": ("-m", "torch.distributed.run", "--standalone", ranks, str(script), *own),
            "idbg": ("-m", "idbg", "run", ranks, "--output", folder, str(script), "--", *own),
        }[what]
        environ = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache, OMP_NUM_THREADS="1")
        subprocess.run([sys.executable, *command], env=environ, capture_output=True, check=True)
        found = [json.loads(path.read_text()) for path in results.iterdir()]
        assert len(found) == count
        return {"seconds": max(each["seconds"] for each in found), "cpu": sum(each["cpu"] for each in found)}


def main_of_ranks(count: int, repeats: int) -> None:
    samples: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(repeats):
        for what in ("plain", "idbg"):
            with tempfile.TemporaryDirectory() as cache:
                for heat in ("cold", "warm"):
                    for name, value in of_ranks(what, count, cache).items():
                        samples.setdefault((what, heat, name), []).append(value)
    for heat, bound in (("cold", 1.15), ("warm", 2.0)):
        for name in ("seconds", "cpu"):
            plain, ours = (samples[what, heat, name] for what in ("plain", "idbg"))
            ratio = statistics.median(ours) / statistics.median(plain)
            every = f"plain {[round(value, 2) for value in plain]}  idbg {[round(value, 2) for value in ours]}"
            limit = f" (bound {bound})" if name == "seconds" else ""
            print(f"{count} ranks, {heat}: {name} ratio {ratio:.2f}{limit}   {every}", flush=True)


def main(repeats: int) -> None:
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(repeats):
        for what in ("plain", "aot"):
            with tempfile.TemporaryDirectory() as cache:
                for heat in ("cold", "warm"):
                    seconds.setdefault((what, heat), []).append(measured(what, cache))
    for heat, bound in (("cold", 1.15), ("warm", 2.0)):
        reference, ours = (statistics.median(seconds[what, heat]) for what in ("plain", "aot"))
        samples = "  ".join(f"{what} {[round(value, 2) for value in seconds[what, heat]]}" for what in ("plain", "aot"))
        ratio = f"ratio {ours / reference:.2f} (bound {bound})"
        print(f"{heat}: plain {reference:.2f} s, aot {ours:.2f} s, {ratio}   {samples}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps({"plain": plain, "aot": aot}[sys.argv[2]]()))
    elif sys.argv[1:2] == ["--ranks"]:
        main_of_ranks(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
