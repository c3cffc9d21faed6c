"""Listening in a process in which nobody has imported Inductor: it is not imported for that, and heard once it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cold
COMPILES = """
import json, sys, tempfile
from idbg.schema.decisions.dynamo import FrameResult
from idbg.schema.decisions.inductor import CacheAnswer, FusionLog, PhaseRun, Span
from idbg.schema.programs import Program, Target
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile

told = []
ended = Jobs(told.append).compile(Compile(1, Program(sys.argv[1]), Target(backend=sys.argv[2]), tempfile.mkdtemp()))
assert ended.failure is None, ended.failure
every = lambda kind: [each for event in told if hasattr(event, "decisions") for each in event.of(kind)]
print(json.dumps({
    "frames": len(every(FrameResult)),
    "inductor": "torch._inductor.compile_fx" in sys.modules,
    "phases": [phase.phase for phase in every(PhaseRun)],
    "spans": sorted({span.name for span in every(Span)}),
    "caches": [answer.cache for answer in every(CacheAnswer)],
    "fused": len(every(FusionLog)),
}))
"""
PROGRAM = "import torch\n\ndef program():\n    return torch.nn.Softplus(), (torch.randn(7, 11),)\n"


def compiled(folder: Path, backend: str) -> dict[str, object]:
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-c", COMPILES, str(folder / "program.py"), backend],
        env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(folder / "cache"), TMPDIR=str(folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_program_that_inductor_does_not_lower_does_not_wait_for_its_import(tmp_path: Path):
    told = compiled(tmp_path, "eager")
    assert (told["frames"], told["inductor"], told["phases"]) == (1, False, [])


@pytest.mark.slow
def test_what_inductor_does_is_heard_from_its_first_pass_on_where_the_run_imports_it(tmp_path: Path):
    told = compiled(tmp_path, "inductor")
    assert told["inductor"] and told["phases"] == ["pre_grad", "joint", "post_grad"] and told["fused"] == 1
    assert told["caches"] == ["aot_autograd", "fx_graph", "kernel"]
    assert {"pre-grad passes", "cache key", "cache look-up", "c++ compile", "kernel code"} <= set(told["spans"])  # type: ignore[call-overload]
