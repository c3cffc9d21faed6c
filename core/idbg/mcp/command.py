"""How is a command of idbg run for an answer, and ended when nobody waits for it any more?"""

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
from idbg.worker.child import dismiss, guard

MOST_BYTES = 256 << 20  # of a command's JSON: a large model's graphs with their code
_GRACE = 15.0  # seconds to end a run after SIGINT: a worker is told, and its processes end
_SAID = 4000  # letters of stderr that an error carries

_running: set[asyncio.subprocess.Process] = set()

Hear = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Done:
    """What a command answered: its JSON, its exit status, and what it said on stderr."""

    argv: tuple[str, ...]
    told: dict[str, Any]
    status: int
    said: str

    @property
    def session(self) -> str:
        """The folder of the session that it made or read; "" where it named none."""
        named = re.findall(r"^session: (.+)$", self.said, re.MULTILINE)
        return named[-1] if named else ""


def spelled(argv: tuple[str, ...]) -> str:
    """The command as a shell takes it."""
    return shlex.join(["idbg", *argv])


async def run(argv: tuple[str, ...], hear: Hear | None = None) -> Done:
    """Run `idbg ARGV --json`; `hear` is told each line of its stderr. Raises IdbgError with what it said where it has
    no report. Where the caller is cancelled, or this process is killed, the command ends with all that it started.
    """
    environ = {**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "idbg", "--json", *argv),  # -P: no module of the client's folder is imported
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env=environ,
        limit=1 << 20,
    )
    _running.add(process)
    guarding = guard(process.pid)  # nobody else is left to end it after SIGKILL
    try:
        assert process.stdout is not None and process.stderr is not None
        out, said = await asyncio.gather(_read(process.stdout), _heard(process.stderr, hear))
        status = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            if guarding is not None:
                dismiss(guarding)
            _running.discard(process)
    return _done(argv, out, status, said)


async def all_ended() -> None:
    """Wait until no command runs any more: each was cancelled."""
    while _running:
        await asyncio.sleep(0.02)


async def _read(stream: asyncio.StreamReader) -> bytes:
    pieces, size = [], 0
    while piece := await stream.read(1 << 20):
        size += len(piece)
        if size <= MOST_BYTES:
            pieces.append(piece)
    return b"".join(pieces) if size <= MOST_BYTES else b""


async def _heard(stream: asyncio.StreamReader, hear: Hear | None) -> str:
    lines: list[str] = []
    async for raw in _lines(stream):
        line = raw.decode(errors="replace").rstrip()
        if hear is not None and line:
            await hear(line)
        lines.append(line[:2000])
        del lines[:-500]
    return "\n".join(lines)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines, or pieces of one that is longer than the reader holds."""
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
    """End it as Ctrl+C does, and all that is left of its group after that."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_drained(process), _GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Until it has ended; its last words are read, for a full pipe would hold it."""
    assert process.stdout is not None and process.stderr is not None
    await asyncio.gather(_read(process.stdout), _read(process.stderr), process.wait())


def _done(argv: tuple[str, ...], out: bytes, status: int, said: str) -> Done:
    try:
        told = msgspec.json.decode(out, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        told = {}
    error = told.get("error") if str(told.get("schema", "")).startswith("idbg.error/") else None
    if isinstance(error, dict):
        raise IdbgError(str(error.get("message", "")), hint=str(error.get("hint", "")))
    if not told:
        ended = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        why = said[-_SAID:].strip() or "it said nothing"
        raise IdbgError(f"{spelled(argv)} {ended} without a report: {why}", hint="run it in a terminal to see more")
    return Done(argv, told, status, said)
