"""Record the traces in tests/recordings/traces: what torch itself writes with TORCH_TRACE, for small programs.

    python -m tools.record_traces                     with the torch of this environment
    python -m tools.record_traces --python OTHER/bin/python     with that of another

`debug` is what TORCH_COMPILE_DEBUG dumps of the program `train`. `attention` needs a GPU with Triton: it was run by
hand on an H200 with torch 2.11 and TORCH_TRACE alone, so that nothing in it names the nodes of kernels, as in most
traces. `triton_kernels` was run there too, with tritonparse 0.6: it is in tests/recordings/tritonparse. Each program
is run in a folder of its own under a fixed path, as its path is in the trace. Nothing is edited: a record's payload is
held against its MD5.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "tests" / "recordings" / "traces"
PROGRAMS = ("train", "breaking", "ranks", "debug", "failing", "exported")
WITHOUT_PROVENANCE = ("failing", "exported")  # as most traces are
JOB = Path("/tmp/idbg-traced-job")  # whatever TMPDIR is
TIMEOUT = 600


def version(python: str) -> str:
    """The torch of an environment: "2.6"."""
    code = "import torch; print('.'.join(torch.__version__.split('.')[:2]))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def record(python: str, name: str, to: Path) -> list[Path]:
    """Run one program with TORCH_TRACE, and store its compressed trace files in `to`."""
    shutil.rmtree(JOB, ignore_errors=True)
    traces = JOB / "trace"
    traces.mkdir(parents=True)
    file = "train.py" if name == "debug" else f"{name}.py"
    program = shutil.copy(ROOT / "programs" / file, JOB / file)
    environment = {
        **os.environ,
        **({"TORCH_COMPILE_DEBUG": "1"} if name == "debug" else {"TORCH_TRACE": str(traces)}),
        "TORCHINDUCTOR_CACHE_DIR": str(JOB / "cache"),
        "INDUCTOR_PROVENANCE": "0" if name in WITHOUT_PROVENANCE else "1",
    }
    ended = subprocess.run([python, program], cwd=JOB, env=environment, timeout=TIMEOUT, check=False)
    if ended.returncode != (1 if name == "failing" else 0):
        raise SystemExit(f"{name} ended with {ended.returncode}")
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    if name == "debug":
        return [Path(shutil.make_archive(str(to / "torch_compile_debug"), "gztar", JOB, "torch_compile_debug"))]
    stored = []
    for trace in sorted(traces.iterdir()):
        path = to / f"{trace.name}.gz"
        path.write_bytes(gzip.compress(trace.read_bytes(), mtime=0))
        stored.append(path)
    shutil.rmtree(JOB)
    return stored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    args = parser.parse_args()
    torch = version(args.python)
    for name in args.programs:
        for path in record(args.python, name, ROOT / f"{name}-{torch}"):
            print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
