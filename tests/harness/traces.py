"""Recorded traces of torch, unpacked and imported; and lines of a trace, as torch writes them."""

import gzip
import hashlib
import json
from pathlib import Path

from idbg.schema.runs import Run, fold
from idbg.session.importing import Import
from idbg.session.reading import load

RECORDED = Path(__file__).resolve().parents[1] / "recordings" / "traces"


def recordings(program: str = "") -> list[str]:
    """The names of the recordings, PROGRAM-TORCH, of one program or of all."""
    return sorted(path.name for path in RECORDED.iterdir() if path.name.startswith(f"{program}-" if program else ""))


def unpacked(name: str, to: Path) -> Path:
    """The recording as the folder that TORCH_TRACE named."""
    to.mkdir(parents=True, exist_ok=True)
    for packed in sorted((RECORDED / name).glob("*.log.gz")):
        (to / packed.name.removesuffix(".gz")).write_bytes(gzip.decompress(packed.read_bytes()))
    return to


def imported(trace: Path, output: Path, accelerator: str = "") -> Run:
    """The run of a trace of one process, imported into a session in `output`."""
    importing = Import(trace, output, accelerator=accelerator)
    importing.read()
    history = fold(load(importing.folder))
    assert history.last is not None
    return history.last


def line(metadata: dict[str, object], payload: str | None = None, pid: int = 4711, second: int = 0) -> bytes:
    """One record as torch writes it."""
    if payload is not None:
        metadata = {**metadata, "has_payload": hashlib.md5(payload.encode()).hexdigest()}
    text = f"V1128 17:45:{second:02}.123456 {pid} torch/_dynamo/convert_frame.py:12] {json.dumps(metadata)}"
    if payload is not None:
        text += "".join(f"\n\t{each}" for each in payload.split("\n"))
    return text.encode() + b"\n"


def trace_in(folder: Path, content: bytes, name: str = "dedicated_log_torch_trace_x1.log") -> Path:
    """A folder with one trace file of this content."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder
