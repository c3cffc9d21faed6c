"""What does capturing cost? `aot` on resnet18 beside plain torch.compile of the same model, cold and warm, as
ratios.

    python tests/benchmarks/bench_capture.py [REPEATS]

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
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
