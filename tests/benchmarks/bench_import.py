"""Import of a large trace: seconds and memory, beside tlparse in the same run, and the time to the first frame.

    python tests/benchmarks/bench_import.py [--megabytes 200] [--tlparse PATH] [--rounds 3]

The trace repeats recorded real ones (tests/recordings/traces) with other frame ids, and with a comment in each payload
of graphs and code, so that no text comes twice.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from idbg.traces.stream import Record, RecordStream
from tests.harness.traces import recordings, unpacked

STEP = 1000  # between the frame ids of two copies
_CODE = ("graph", "code", "runnable")


def repeated(folder: Path, to: Path, size: int) -> Path:
    """Write a trace of at least `size` bytes to this folder."""
    records: list[Record] = []
    for file in sorted(folder.rglob("*.log")):
        with open(file, "rb") as opened:
            records += RecordStream(opened, 2026).records(is_whole=True)
    to.mkdir(parents=True)
    copy = written = 0
    with open(to / "dedicated_log_torch_trace_repeated.log", "wb") as out:
        while written < size:
            for data in (line(record, copy) for record in records):
                written += out.write(data)
            copy += 1
    return to


def line(record: Record, copy: int) -> bytes:
    """The record as one of another frame."""
    metadata, payload = dict(record.metadata), record.payload
    if isinstance(frame := metadata.get("frame_id"), int):
        metadata["frame_id"] = frame + copy * STEP
    if "has_payload" in metadata:
        name = str(metadata.get("artifact") or record.kind)
        if copy and "cache" not in name and any(each in name for each in _CODE):
            payload += b"\n# copy %d" % copy
        metadata["has_payload"] = hashlib.md5(payload).hexdigest()
    head = f"V1128 17:45:00.{copy % 1_000_000:06} 4711 {record.writer}:1] {json.dumps(metadata)}\n".encode()
    body = b"\t" + payload.replace(b"\n", b"\n\t") + b"\n" if "has_payload" in metadata else b""
    return head + body


def timed(command: list[str]) -> tuple[float, float, int]:
    """Seconds, processor seconds and peak bytes of a command."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed: {status}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def first_frame(trace: Path, output: Path) -> float:
    """Seconds until the first graph of an import is in the log, which the screen follows."""
    began = time.perf_counter()
    command = [sys.executable, "-P", "-m", "idbg.session.import_process", str(trace), str(output), ""]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    folder = Path(json.loads(process.stdout.readline())["folder"])
    while not any(b'"graph_captured"' in log.read_bytes()[: 1 << 22] for log in folder.rglob("events.jsonl")):
        time.sleep(0.01)
    seconds = time.perf_counter() - began
    process.kill()
    process.communicate()
    return seconds


def opened(session: Path) -> tuple[float, int]:
    """Seconds to read a session, and the peak bytes of the process that does."""
    code = (
        "import sys, resource\nfrom pathlib import Path\nfrom idbg.session.session import Session\n"
        "session = Session.open(Path(sys.argv[1]))\nrun = session.history.last\n"
        "assert run is not None and run.graphs and not session.history.missing, session.history.missing\n"
        "session.close()\n"
    )
    seconds, _, peak = timed([sys.executable, "-c", code, str(session)])
    return seconds, peak


def measured(folder: Path, megabytes: int, tlparse: str, rounds: int) -> Iterator[str]:
    trace = repeated(unpacked_all(folder / "recorded"), folder / "trace", megabytes << 20)
    size = sum(file.stat().st_size for file in trace.iterdir()) / 1e6
    yield f"trace: {size:,.0f} MB"
    for _ in range(rounds):
        output = folder / "out"
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "idbg", "import", str(trace), "--output", str(output)]
        ours, cpu, peak = timed(command)
        words = f"import {ours:.1f} s ({cpu:.1f} s of processor), peak {peak / 1e6:,.0f} MB"
        if tlparse:
            theirs, their_cpu, their_peak = timed(
                [tlparse, str(next(trace.iterdir())), "-o", str(folder / "tl"), "--overwrite", "--no-browser"]
            )
            words += (
                f"; tlparse {theirs:.1f} s ({their_cpu:.1f} s), peak {their_peak / 1e6:,.0f} MB: {ours / theirs:.2f}x"
            )
        yield words
    session = next(output.glob("trace*"))
    seconds, peak = opened(session)
    yield f"opened again in {seconds:.1f} s, peak {peak / 1e6:,.0f} MB; its log {log_size(session):,.0f} MB"
    yield f"first graph after {first_frame(trace, folder / 'first'):.2f} s"


def log_size(session: Path) -> float:
    """MB of the session's log."""
    return (session / "events.jsonl").stat().st_size / 1e6


def unpacked_all(to: Path) -> Path:
    """The recordings of one process: of several ranks tlparse reads the first alone."""
    for name in recordings():
        if name.startswith(("train", "breaking")):
            unpacked(name, to / name)
    return to


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--tlparse", default=shutil.which("tlparse") or "")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-import-") as folder:
        for words in measured(Path(folder), args.megabytes, args.tlparse, args.rounds):
            print(words, flush=True)
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")


if __name__ == "__main__":
    main()
