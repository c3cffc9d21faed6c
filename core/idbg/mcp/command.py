"""Run a command of idbg in a process, and end it when the client cancels."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec

from idbg.schema.errors import IdbgError
from idbg.worker.guard import dismiss, guard

MOST_BYTES = 256 << 20  # of a command's JSON: a large model's graphs with their code
_GRACE = 15.0  # seconds to end a run after SIGINT
_MAX_ERROR = 4000  # characters of stderr in an error

_running: set[asyncio.subprocess.Process] = set()

OnLine = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Done:
    """The result of a command: its JSON, its exit status, and its stderr."""

    argv: tuple[str, ...]
    report: dict[str, Any]
    status: int
    stderr: str

    @property
    def session(self) -> str:
        """The folder of the session that it wrote or read; "" where it names none."""
        named = re.findall(r"^session: (.+)$", self.stderr, re.MULTILINE)
        return named[-1] if named else ""


def spelled(argv: tuple[str, ...]) -> str:
    """The command, quoted for a shell."""
    return shlex.join(["idbg", *argv])


async def run(argv: tuple[str, ...], on_line: OnLine | None = None) -> Done:
    """Run `idbg ARGV --json`, and call `on_line` with each line of its stderr.

    Raises IdbgError where there is no report. If the caller is cancelled, or this process is killed, the command and
    its processes end.
    """
    environ = {**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "idbg", "--json", *argv),  # -P: import no module from the client's folder
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env=environ,
        limit=1 << 20,
    )
    _running.add(process)
    guarding = guard(-process.pid)  # ends the command if this process gets SIGKILL
    try:
        assert process.stdout is not None and process.stderr is not None
        out, stderr = await asyncio.gather(_read(process.stdout), _read_lines(process.stderr, on_line))
        status = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            dismiss(guarding)
            _running.discard(process)
    return _done(argv, out, status, stderr)


async def all_ended() -> None:
    """Wait for the cancelled commands to end."""
    while _running:
        await asyncio.sleep(0.02)


async def _read(stream: asyncio.StreamReader) -> bytes:
    pieces, size = [], 0
    while piece := await stream.read(1 << 20):
        size += len(piece)
        if size <= MOST_BYTES:
            pieces.append(piece)
    return b"".join(pieces) if size <= MOST_BYTES else b""


async def _read_lines(stream: asyncio.StreamReader, on_line: OnLine | None) -> str:
    lines: list[str] = []
    async for raw in _lines(stream):
        line = raw.decode(errors="replace").rstrip()
        if on_line is not None and line:
            await on_line(line)
        lines.append(line[:2000])
        del lines[:-500]
    return "\n".join(lines)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines, or pieces of a line that is longer than the reader's limit."""
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                yield error.partial
            return
        except asyncio.LimitOverrunError as error:
            line = await stream.readexactly(error.consumed)
        yield line


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it with SIGINT, then kill its process group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_drained(process), _GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Wait for its end, and read its output: a full pipe would block it."""
    assert process.stdout is not None and process.stderr is not None
    await asyncio.gather(_read(process.stdout), _read(process.stderr), process.wait())


def _done(argv: tuple[str, ...], out: bytes, status: int, stderr: str) -> Done:
    try:
        report = msgspec.json.decode(out, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        report = {}
    error = report.get("error") if str(report.get("schema", "")).startswith("idbg.error/") else None
    if isinstance(error, dict):
        raise IdbgError(str(error.get("message", "")), hint=str(error.get("hint", "")))
    if not report:
        ended = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        why = stderr[-_MAX_ERROR:].strip() or "no output"
        raise IdbgError(f"{spelled(argv)} {ended} without a report: {why}", hint="run it in a terminal to see more")
    return Done(argv, report, status, stderr)
