"""Read tritonparse's ndjson: the Triton kernels that one process compiled and launched.

A line is {"event_type": "compilation", "pid": ..., "timestamp": ..., "payload": {"metadata": {...}, "file_content":
{"kernel.ttir": ...}, "python_source": {...}, "pt_info": {...}}}, or {"event_type": "launch", ...}. With compression
each line is a gzip member of its own.
"""

import contextlib
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from idbg.format.amounts import counted, size
from idbg.schema import events
from idbg.schema.code import Kernel, Lowered, LoweredText, OutputCode, Resources
from idbg.schema.graphs import Frame
from idbg.traces.imported import RUN
from idbg.traces.process import Emit, Opening, ProcessLog
from idbg.traces.records import compile_id, count_of

LINE_LIMIT = 32 << 20  # bytes of a line that are read
NO_FRAME = "triton"
"""The frame of kernels that no frame of Dynamo's compiled: the user's own."""
# suffix of a file in `file_content` -> the name and the language of what the kernel was lowered to
_TEXTS = {
    "ttir": ("TTIR", "mlir"),
    "ttgir": ("TTGIR", "mlir"),
    "llir": ("LLVM IR", "llvm"),
    "ptx": ("PTX", "ptx"),
    "amdgcn": ("AMDGCN", "asm"),
    "sass": ("SASS", "sass"),
}


class TritonFiles:
    """The files of one process on their way into a log: one as it was written, or several that were made of it, a file
    for each frame. Raises OSError where there is none that can be read.
    """

    def __init__(self, files: Sequence[Path], opening: Opening, write: Emit) -> None:
        self._log = ProcessLog(opening, write)
        self._files = [(file, file.stat().st_mtime) for file in files]
        self.read_bytes = 0  # of the files, which may be compressed
        self._left_out: Counter[str] = Counter()
        self._kernels: dict[str, list[Kernel]] = {}  # by frame
        self._launches: Counter[str] = Counter()  # by the kernel's hash
        self._hashes: dict[str, str] = {}  # the name of the kernel with this hash

    @property
    def last_phase(self) -> str:
        """Not in these files."""
        return ""

    def steps(self, *, is_whole: bool) -> Iterator[int]:
        """Read the files, which do not grow."""
        while self._files:
            file, changed = self._files.pop(0)
            with open(file, "rb") as raw:
                is_packed = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                lines = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if is_packed else raw
                before = self.read_bytes
                for line in self._whole_lines(lines):
                    self._take(line, changed)
                    self.read_bytes = before + raw.tell()
                    yield self.read_bytes

    def _whole_lines(self, lines: BinaryIO) -> Iterator[bytes]:
        try:
            while line := lines.readline(LINE_LIMIT + 1):
                if len(line) <= LINE_LIMIT:
                    yield line
                    continue
                self._left_out[f"longer than the {size(LINE_LIMIT)} that are read of one"] += 1
                while line and not line.endswith(b"\n"):
                    line = lines.readline(LINE_LIMIT)
        except (EOFError, OSError, zlib.error):
            self._left_out["the file is damaged from there on"] += 1

    def _take(self, line: bytes, changed: float) -> None:
        """`changed`: when the file was, for an event that has no time."""
        if not line.strip():
            return
        try:
            event: Any = msgspec.json.decode(line)
            self._log.begin(_seconds(event) or changed)
            if event["event_type"] == "compilation":
                self._compiled(event["payload"])
            elif event["event_type"] == "launch":
                self._launches[str(event.get("compilation_metadata", {}).get("hash", ""))] += 1
        # a line may be anything
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError):
            self._left_out["damaged, cut off, or of an unknown form"] += 1

    def _compiled(self, payload: Mapping[str, Any]) -> None:
        metadata, texts = payload["metadata"], payload.get("file_content") or {}
        info = payload.get("pt_info") or {}
        frame = compile_id(info) or NO_FRAME
        source = payload.get("python_source") or {}
        if frame not in self._kernels:
            file, line = str(source.get("file_path") or ""), count_of(source.get("start_line")) or 0
            self._kernels[frame] = []
            function = (file or "kernels of the program") if frame == NO_FRAME else "?"
            self._log.run.frame_started(Frame(frame, function, file, line))
        known = {kernel.name for kernel in self._kernels[frame]}
        name = base = str(metadata.get("name") or "kernel")
        number = 1
        while name in known:
            number += 1
            name = f"{base} ({number})"
        code = str(source.get("code") or "")
        self._kernels[frame].append(Kernel(frame=frame, part="", name=name, language="triton", source=code))
        self._hashes[str(metadata.get("hash", ""))] = name
        lowered = Lowered(tuple(_lowered(texts)), _resources(metadata))
        self._log.emit(events.KernelLowered(run=RUN, frame=frame, part="", name=name, lowered=lowered))

    def end(self) -> None:
        """Write the code of each frame with its kernels, and end the run."""
        for frame, kernels in self._kernels.items():
            text = "\n\n".join(dict.fromkeys(kernel.source for kernel in kernels))
            self._log.emit(events.CodeCaptured(run=RUN, code=OutputCode(frame, "", text, tuple(kernels))))
        launched = [
            f"{name} {counted(self._launches[each], 'time')}"
            for each, name in self._hashes.items()
            if self._launches[each]
        ]
        if launched:
            self._log.emit(events.Noted(level="info", text=f"kernels launched: {', '.join(launched)}"))
        self._log.run.has_graphs = bool(self._kernels)
        self._log.end(
            [f"{counted(count, 'line')} of tritonparse's left out: {why}" for why, count in self._left_out.items()]
        )


def _seconds(event: Mapping[str, Any]) -> float:
    """The time of an event, of whose text the fraction of a second is not filled in; 0 where it has none."""
    text = str(event.get("timestamp") or "").partition(".")[0]
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(text).timestamp()
    return 0.0


def _lowered(texts: Mapping[str, Any]) -> Iterator[LoweredText]:
    by_suffix = {name.rpartition(".")[2]: str(text) for name, text in texts.items()}
    for suffix, (name, language) in _TEXTS.items():
        if suffix in by_suffix:
            yield LoweredText(name, language, by_suffix[suffix])


def _resources(metadata: Mapping[str, Any]) -> Resources:
    def count(*names: str) -> int | None:
        found = (metadata.get(name) for name in names)
        return next((value for value in map(count_of, found) if value is not None), None)

    return Resources(
        registers=count("n_regs"), spills=count("n_spills"), shared_bytes=count("shared"), warps=count("num_warps")
    )
