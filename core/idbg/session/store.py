"""Write a session to disk; `reading` reads it again.

OUTPUT/resnet-20260301-101500/
    events.jsonl                  one event a line, on disk before it is on the screen
    summary.json                  the session's row in a list
    run-1/rules.toml              the accelerator of the run
    run-1/frame-0_0/dynamo.py     each graph as readable Python; dynamo.metadata.json has its shapes, dtypes, strides
    run-1/frame-0_0/output_code-inference.py
    run-1/frame-0_0/kernels/inference/cpp_fused_relu_0.cpp; cpp_fused_relu_0.v1.cpp is an edited version
    run-1/stages/003-iree-flow.mlir   what other compilers made of a graph
    processes/rank3/events.jsonl      of a process beside the main one, with all of the above
    repros/
"""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from idbg.format.amounts import size
from idbg.schema import event_log, events, strict_json
from idbg.schema.code import OutputCode
from idbg.schema.errors import OutputError, output_errors
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.processes import Process
from idbg.schema.programs import Program
from idbg.schema.runs import History
from idbg.schema.summaries import SessionSummary
from idbg.session import files, processes, summaries
from idbg.session.files import LOG
from idbg.session.reading import LINE_LIMIT, can_be_read

SUFFIXES = {"cpp": ".cpp", "c++": ".cpp", "triton": ".py", "python": ".py", "cuda": ".cu"}
NAME_LIMIT = 80  # characters; file systems take 255 bytes, and names get suffixes


def safe_name(text: str) -> str:
    """`text` as a file name: letters, digits, `.`, `_`, `-`, never hidden, never empty."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._-")[:NAME_LIMIT] or "unnamed"


def distinct_names(texts: Iterable[str]) -> dict[str, str]:
    """A distinct file name for each text, also on a file system that ignores case."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for text in texts:
        if text in names:
            continue
        name = safe_name(text)
        if name.casefold() in taken or len(text) > NAME_LIMIT:  # long names differ at their ends
            name = f"{name[: NAME_LIMIT - 9]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"
        taken.add(name.casefold())
        names[text] = name
    return names


class Store:
    """A live session's folder. `append` raises OSError when the disk refuses. One that is `imported`, from a trace of
    anybody, has no file for each graph and kernel, and in its log no event that cannot be read again; `left_out` counts
    those.
    """

    def __init__(self, folder: Path, log: BinaryIO, limit: int = 0, *, imported: bool = False) -> None:
        self.folder, self._log, self._limit = folder, log, limit
        self._written = 0  # bytes of the log and of all other files
        self._is_full = False
        self._imported = imported
        self.left_out = 0
        self._opened: events.SessionOpened | None = None
        self._last = 0.0
        files.claim(log.fileno())

    @classmethod
    def create(
        cls, output: Path, program: Program, limit: int = 0, name: str = "", *, imported: bool = False
    ) -> "Store":
        """Create a session folder under `output` for at most `limit` bytes (0: no limit). Its name begins with `name`
        or the program's.

        Raises OutputError if it cannot be written, so call this before there is work to lose.
        """
        with output_errors(
            f"cannot write to the output folder {output}", "name another with --output FOLDER (or IDBG_OUTPUT)"
        ):
            folder = _new_folder(output.absolute(), safe_name(name or _stem(program)).lower())
            return cls(folder, (folder / LOG).open("xb"), limit, imported=imported)

    @classmethod
    def of_process(
        cls, session: Path, process: Process, limit: int = 0, *, imported: bool = False
    ) -> "tuple[Store, Process]":
        """Create the folder of a process of this session; the process has the name that it got, as names are distinct.

        Raises OutputError if it cannot be written.
        """
        hint = "check the permissions of the session's folder"
        with output_errors(f"cannot write to {session / processes.FOLDER}", hint):
            folder = processes.new_folder(session.absolute(), safe_name(process.name))
            store = cls(folder, (folder / LOG).open("xb"), limit, imported=imported)
        return store, replace(process, name=folder.name)

    @classmethod
    def resume(cls, folder: Path, saved: Sequence[SessionEvent], missing: str, limit: int = 0) -> "Store":
        """The store of a saved session, which goes on after these events. What a writer that was killed left of a line
        is removed.

        Raises OutputError if another process writes to it, if the log is not whole (`missing` says how), or if it
        cannot be written.
        """
        if missing:
            raise OutputError(f"nothing can be added to {folder}: {missing}", hint="run the program again: idbg run")
        if files.is_live(folder):
            raise OutputError(
                f"another process writes to the session {folder}", hint="close the screen that has it, or wait for it"
            )
        with output_errors(f"cannot write to the session {folder}", "check its permissions"):
            log = files.opened_to_append(folder / LOG)
        store = cls(folder, log, limit)
        store._written = log.tell()
        store._opened = next((event for event in saved if isinstance(event, events.SessionOpened)), None)
        return store

    def append(self, event: SessionEvent) -> events.Noted | None:
        """Write the event to the log, and the graph or code that it carries to files of their own. Returns a note when
        the size limit is reached: nothing is written from there on, as a log with gaps would mislead.
        """
        if self._is_full:
            return None
        if self._is_gone():
            raise OSError(errno.ENOENT, "its folder was removed meanwhile")
        line = event_log.encode(event) + b"\n"
        if self._imported and not can_be_read(line):
            self.left_out += 1
            return None
        if why := self._too_much(len(line)):
            self._is_full = True
            note = events.Noted(level="warning", text=f"{why}; from here on nothing is saved", missing=True)
            self._write_line(event_log.encode(note) + b"\n")
            return note
        self._write_line(line)
        self._last = event.at
        if isinstance(event, events.SessionOpened):
            self._opened = event
        self._write_artifacts(event)
        return None

    def _is_gone(self) -> bool:
        """Whether somebody removed the log: later writes would be lost, and recreate a folder without one."""
        return os.fstat(self._log.fileno()).st_nlink == 0

    def _write_line(self, line: bytes) -> None:
        self._log.write(line)
        self._log.flush()
        self._written += len(line)

    def _too_much(self, more: int) -> str:
        if more > LINE_LIMIT:
            return f"one event of the session takes {size(more)}, more than the {size(LINE_LIMIT)} that are read again"
        if self._limit and self._written + more > self._limit:
            return f"the session would take more than {size(self._limit)} (the setting session_size)"
        return ""

    def summary(self, history: History) -> SessionSummary | None:
        """The session's summary; None before `SessionOpened`."""
        return None if self._opened is None else summaries.summary(self.folder, self._opened, history, self._last)

    def keep(self, summary: SessionSummary) -> None:
        """Write the summary file. If that fails, lists read the log."""
        with contextlib.suppress(OSError, ValueError):  # a full disk, or a log that was closed under us
            if not self._is_gone():
                whole = replace(summary, bytes=summaries.bytes_within(self.folder))
                summaries.write(self.folder, whole, self._log.tell())

    @property
    def descriptor(self) -> int:
        """Of the log, which is locked."""
        return self._log.fileno()

    def repro_folder(self) -> Path:
        """The folder for repros; created if it is missing. Raises OSError."""
        folder = (self.folder / "repros").absolute()
        folder.mkdir(exist_ok=True)
        return folder

    def close(self) -> None:
        """Release and close the log. Idempotent."""
        with contextlib.suppress(OSError, ValueError):  # a full disk: what could be written was, at each event
            files.give_up(self._log.fileno())
            self._log.close()

    def _run(self, run: int) -> Path:
        return self.folder / f"run-{run}"

    def _write_artifacts(self, event: SessionEvent) -> None:
        match event:
            case events.RunStarted():
                self._write(self._run(event.run) / "rules.toml", event.target.rules)
            case events.FrameStarted():  # one that began before is traced anew
                shutil.rmtree(self._frame(event.run, event.frame.id), ignore_errors=True)
            case events.GraphCaptured() if not self._imported:
                self._write_graph(event.run, event.graph)
            case events.CodeCaptured() if not self._imported:
                self._write_code(event.run, event.code)
            case events.StageCaptured(stage=stage) if stage.file:
                if stage.text:
                    self._write(self.folder / stage.file, stage.text)
                else:  # the worker wrote it, as it is long
                    self._written += stage.size
            case events.KernelEdited():
                self._write_edit(event.run, event.edit)
            case _:
                pass

    def _write_graph(self, run: int, graph: Graph) -> None:
        path = self._frame(run, graph.id.frame) / "-".join(filter(None, (graph.id.stage, graph.id.part)))
        self._write(path.with_name(path.name + ".py"), graph.code)
        described = strict_json.formatted({"graph": graph.id, "nodes": graph.nodes}, indent=1)
        self._write(path.with_name(path.name + ".metadata.json"), described.decode())

    def _write_code(self, run: int, code: OutputCode) -> None:
        frame = self._frame(run, code.frame)
        self._write(frame / ("-".join(filter(None, ("output_code", code.part))) + ".py"), code.text)
        names = distinct_names(kernel.name for kernel in code.kernels)
        for kernel in code.kernels:
            if kernel.source:
                suffix = SUFFIXES.get(kernel.source_language.lower(), ".txt")
                self._write(frame / "kernels" / (code.part or "all") / (names[kernel.name] + suffix), kernel.source)

    def _write_edit(self, run: int, edit: KernelEdit) -> None:
        suffix = SUFFIXES.get(edit.language.lower(), ".txt")
        name = f"{safe_name(edit.name)}.v{edit.version}{suffix}"
        self._write(self._frame(run, edit.frame) / "kernels" / (edit.part or "all") / name, edit.text)

    def _write(self, path: Path, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        files.write(path, data)
        self._written += len(data)

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
