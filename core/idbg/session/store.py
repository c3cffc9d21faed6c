"""How is a session kept on disk? `reading` reads it again.

OUTPUT/resnet-20260301-101500/
    events.jsonl                  everything that happened, a line each, on disk before it is on the screen
    summary.json                  what that comes to in a line of a list
    run-1/rules.toml              the accelerator that the run was made for
    run-1/frame-0_0/dynamo.py     each graph as readable Python; dynamo.metadata.json has its shapes, dtypes, strides
    run-1/frame-0_0/output_code-inference.py
    run-1/frame-0_0/kernels/inference/cpp_fused_relu_0.cpp
    repros/
"""

import contextlib
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from idbg.schema import event_log, events
from idbg.schema.code import OutputCode
from idbg.schema.errors import OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph
from idbg.schema.programs import Program
from idbg.schema.runs import History
from idbg.schema.summaries import SessionSummary
from idbg.session import files, kept_summary, liveness
from idbg.session.files import LOG
from idbg.session.summarizing import bytes_within, summary

SUFFIXES = {"cpp": ".cpp", "c++": ".cpp", "triton": ".py", "python": ".py", "cuda": ".cu"}
NAME_LIMIT = 80  # characters; file systems take 255 bytes, and names get suffixes


def safe_name(text: str) -> str:
    """`text` as a file name: letters, digits, `.`, `_`, `-`, never hidden, never empty."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._-")[:NAME_LIMIT] or "unnamed"


class Store:
    """A live session's folder. `append` raises OSError when the disk refuses."""

    def __init__(self, folder: Path, log: BinaryIO) -> None:
        self.folder, self._log = folder, log
        self._opened: events.SessionOpened | None = None
        self._last = 0.0
        liveness.claim(log.fileno())

    @classmethod
    def create(cls, output: Path, program: Program) -> "Store":
        """A folder of its own under `output`, which is made if it is not there.

        Raises OutputError if it cannot be written, so call this before there is work to lose.
        """
        try:
            folder = _new_folder(output.absolute(), safe_name(_stem(program)))
            return cls(folder, (folder / LOG).open("xb"))
        except OSError as error:
            raise OutputError(
                f"cannot write to the output folder {output}: {error.strerror or error}",
                hint="name another with --output FOLDER (or IDBG_OUTPUT)",
            ) from error

    def append(self, event: SessionEvent) -> None:
        """Write the event to the log, and what it carries to files of its own."""
        self._log.write(event_log.encode(event) + b"\n")
        self._log.flush()
        self._last = event.at
        if isinstance(event, events.SessionOpened):
            self._opened = event
        self._write_artifacts(event)

    def told(self, history: History) -> SessionSummary | None:
        """What the session has come to; None before it has begun."""
        return None if self._opened is None else summary(self.folder, self._opened, history, self._last)

    def keep(self, told: SessionSummary) -> None:
        """Write down what the session has come to, for lists of many: where that cannot be, they read the log."""
        with contextlib.suppress(OSError, ValueError):  # a full disk, or a log that was closed under us
            kept_summary.write(self.folder, replace(told, bytes=bytes_within(self.folder)), self._log.tell())

    def repro_folder(self) -> Path:
        """The folder for repros, which is made where it is not there. Raises OSError if it cannot be."""
        folder = (self.folder / "repros").absolute()
        folder.mkdir(exist_ok=True)
        return folder

    def close(self) -> None:
        """Close the log; it is whole as it is."""
        with contextlib.suppress(OSError, ValueError):  # a full disk: what could be written was, at each event
            liveness.give_up(self._log.fileno())
            self._log.close()

    def _run(self, run: int) -> Path:
        return self.folder / f"run-{run}"

    def _write_artifacts(self, event: SessionEvent) -> None:
        match event:
            case events.RunStarted():
                _write(self._run(event.run) / "rules.toml", event.target.rules)
            case events.FrameStarted():  # one that began before is traced anew
                shutil.rmtree(self._frame(event.run, event.frame.id), ignore_errors=True)
            case events.GraphCaptured():
                self._write_graph(event.run, event.graph)
            case events.CodeCaptured():
                self._write_code(event.run, event.code)
            case _:
                pass

    def _write_graph(self, run: int, graph: Graph) -> None:
        path = self._frame(run, graph.id.frame) / "-".join(filter(None, (graph.id.stage, graph.id.part)))
        _write(path.with_name(path.name + ".py"), graph.code)
        described = msgspec.json.encode({"graph": graph.id, "nodes": graph.nodes})
        _write(path.with_name(path.name + ".metadata.json"), msgspec.json.format(described, indent=1).decode())

    def _write_code(self, run: int, code: OutputCode) -> None:
        frame = self._frame(run, code.frame)
        _write(frame / ("-".join(filter(None, ("output_code", code.part))) + ".py"), code.text)
        for kernel in code.kernels:
            if kernel.source:
                suffix = SUFFIXES.get(kernel.language.lower(), ".txt")
                _write(frame / "kernels" / (code.part or "all") / (safe_name(kernel.name) + suffix), kernel.source)

    def _frame(self, run: int, frame: str) -> Path:
        return self._run(run) / f"frame-{safe_name(frame)}"


def _stem(program: Program) -> str:
    return program.path.rpartition(".")[2] if program.module else Path(program.path).stem


def _new_folder(output: Path, stem: str) -> Path:
    output.mkdir(parents=True, exist_ok=True)
    for name in _candidates(f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"):
        with contextlib.suppress(FileExistsError):
            (output / name).mkdir()
            return output / name
    raise AssertionError("the names do not end")


def _candidates(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}-{number}"
        number += 1


def _write(path: Path, text: str) -> None:
    files.write(path, text.encode("utf-8", "backslashreplace"))
