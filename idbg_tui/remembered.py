"""Keep what the user did before in small JSON files. One that cannot be read or written costs the memory alone."""

import contextlib
from pathlib import Path
from threading import Lock, Thread
from typing import TypeVar

import msgspec

Value = TypeVar("Value")
THREAD = "idbg-remember"  # the name of each thread that writes
_latest: dict[Path, bytes] = {}  # what is to be written: the last of several
_one_at_a_time = Lock()


def read(path: Path, kind: type[Value]) -> Value:
    """What the file holds; an empty `kind` where it holds none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, ValueError, msgspec.DecodeError):
        return kind()


def write(path: Path, value: object) -> None:
    """Write it on a thread: a disk may be slow."""
    _latest[path] = msgspec.json.encode(value)
    Thread(target=_write, args=(path,), name=THREAD, daemon=True).start()


def _write(path: Path) -> None:
    from idbg.whole_file import write_whole  # the first frame needs it not

    with _one_at_a_time, contextlib.suppress(OSError):
        if (content := _latest.pop(path, None)) is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
