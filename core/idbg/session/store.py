"""How is a session kept on disk, and read again?

OUTPUT/resnet-20260301-101500/
    events.jsonl                  everything that happened, a line each, on disk before it is on the screen
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

from idbg.schema import event_log, events
from idbg.schema.code import OutputCode
from idbg.schema.errors import OutputError
from idbg.schema.events import FORMAT, SessionEvent
from idbg.schema.graphs import Graph
from idbg.schema.programs import Program
from idbg.session.bounds import impossible

LOG = "events.jsonl"
SUFFIXES = {"cpp": ".cpp", "c++": ".cpp", "triton": ".py", "python": ".py", "cuda": ".cu"}
NAME_LIMIT = 80  # characters; file systems take 255 bytes, and names get suffixes


def safe_name(text: str) -> str:
    """`text` as a file name: letters, digits, `.`, `_`, `-`, never hidden, never empty."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._-")[:NAME_LIMIT] or "unnamed"


def is_session(folder: Path) -> bool:
    """Whether the folder has an event log; it may be damaged."""
    return (folder / LOG).is_file()


class Store:
    """A live session's folder. `append` raises OSError when the disk refuses."""

    def __init__(self, folder: Path, log: BinaryIO) -> None:
        self.folder, self._log = folder, log

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
        self._write_artifacts(event)

    def repro_folder(self) -> Path:
        """The folder for repros, which is made where it is not there. Raises OSError if it cannot be."""
        folder = (self.folder / "repros").absolute()
        folder.mkdir(exist_ok=True)
        return folder

    def close(self) -> None:
        """Close the log; it is whole as it is."""
        with contextlib.suppress(OSError):  # a full disk: what could be written was, at each event
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


def load(folder: Path) -> list[SessionEvent]:
    """The events of a saved session.

    Raises OutputError if this is not a session's folder, or its log is damaged or of a newer format.
    """
    path = folder / LOG
    try:
        with path.open("rb") as log:
            first = log.readline()
            _check_format(folder, first)
            log.seek(0)
            saved = list(event_log.decode_all(log))
    except FileNotFoundError as error:
        raise OutputError(
            f"{folder} is not a session: it has no {LOG}", hint="open a folder that a run made, under debug_artifacts/"
        ) from error
    except OSError as error:
        raise OutputError(
            f"cannot read the session {folder}: {error.strerror or error}", hint="check its permissions"
        ) from error
    except msgspec.DecodeError as error:
        raise OutputError(
            f"the log of the session {folder} is damaged at line {_bad_line(path)}: {error}",
            hint="cut that line out of events.jsonl to read the rest",
        ) from error
    if why := next(filter(None, map(impossible, saved)), ""):
        raise OutputError(
            f"the session {folder} says what cannot be: {why}",
            hint="it was damaged, or is not what it seems: compile the program again",
        )
    return saved


class _Opening(msgspec.Struct):
    type: str
    version: str = ""
    format: int = 0


def _check_format(folder: Path, line: bytes) -> None:
    opening = msgspec.json.decode(line, type=_Opening)
    if opening.type != "session_opened":
        raise OutputError(
            f"{folder} is not a session: its {LOG} does not begin with session_opened",
            hint="open a folder that a run made, under debug_artifacts/",
        )
    if opening.format > FORMAT:
        raise OutputError(
            f"the session {folder} was written by a newer idbg ({opening.version}, log format {opening.format})",
            hint=f"this one reads format {FORMAT}: pip install --upgrade idbg",
        )


def _bad_line(path: Path) -> int:
    """The 1-based number of the first line that is not an event."""
    with path.open("rb") as log:
        for number, line in enumerate(log, 1):
            try:
                event_log.decode(line)
            except msgspec.DecodeError:
                return number
    return 1  # an empty file


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
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
