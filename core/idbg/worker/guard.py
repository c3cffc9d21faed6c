"""End processes and remove folders where this process is killed, and so cannot do it itself."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_SCRIPT = """\
read -r word && exit
left=$2
kill -TERM "$1"
while [ "$left" -gt 0 ] && kill -0 "$1"; do sleep 1; left=$((left - 1)); done
kill -KILL "$1"
shift 2
rm -rf -- "$@"
"""
_NOBODY = 0x7FFFFFFF  # no process has this number: the folders alone go


def guard(process: int, *doomed: Path, patience: int = 1) -> "subprocess.Popen[bytes] | None":
    """A shell that waits for our end, and then ends this process, or the process group -`process`, and removes these
    folders. `patience`: seconds between SIGTERM and SIGKILL.

    The process may see our end for itself, but not while a program holds the GIL in C; nobody else is left after
    SIGKILL. `dismiss` it when there is nothing left to end. None where there is no shell.
    """
    try:
        return subprocess.Popen(
            ("/bin/sh", "-c", _SCRIPT, "idbg-guard", str(process), str(patience), *map(str, doomed)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what kills our group is no reason for it to end
        )
    except OSError:
        return None


def dismiss(guarding: "subprocess.Popen[bytes] | None") -> None:
    """End a guard that has nothing left to end."""
    if guarding is not None:
        guarding.communicate(b"over\n")


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that is removed on exit, and also where this process is killed."""
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        guarding = guard(_NOBODY, Path(folder))
        try:
            yield Path(folder)
        finally:
            dismiss(guarding)
