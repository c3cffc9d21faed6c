"""Where do a target's rules come from, and did another program change that file?"""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators import model
from idbg.schema.errors import AcceleratorError
from idbg.schema.programs import Target

POLL_SECONDS = 0.5
SETTLE_SECONDS = 0.05  # an editor empties a file before it fills it

Stamp = tuple[int, int, int]


def rules_for(target: Target) -> tuple[str, Path | None]:
    """The target's rules as valid TOML text, and the file that they are in if it is the user's own and not a preset.

    The `MOCK_*` variables apply to the preset `mock`. Raises AcceleratorError or SettingsError.
    """
    if target.rules:
        text, path, place = target.rules, None, target.accelerator
    else:
        text, place = model.find(target.accelerator)
        path = None if model.is_preset(target.accelerator) else Path(place).absolute()
        if target.accelerator == "mock":
            text = model.from_environment(text, os.environ)
    try:
        model.parse(text)
    except AcceleratorError as error:
        line = f":{error.line}" if error.line else ""
        raise AcceleratorError(f"{place}{line}: {error.message}", hint=error.hint, line=error.line) from error
    return text, path


def for_backend(target: Target, backend: str) -> Target:
    """The target with another backend. An accelerator that was only the old backend's own goes with it, to make room
    for the new one's, unless somebody edited its rules.
    """
    moved = replace(target, backend=backend)
    own = model.default_for(backend)
    if target.accelerator != model.default_for(target.backend) or target.accelerator == own:
        return moved
    edited = rules_for(replace(target, rules=""))[0] != target.rules
    return moved if edited else replace(moved, accelerator=own, rules="")


class RulesFile:
    """Watches one file by its size and time.

    On a thread of our own, `changed` gets its path and new text, or `refused` those and why it is not text.
    """

    def __init__(
        self, changed: Callable[[Path, str], None], refused: Callable[[Path, str, AcceleratorError], None]
    ) -> None:
        self._changed, self._refused = changed, refused
        self._path: Path | None = None
        self._text = ""
        self._stamp: Stamp | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, path: Path | None, text: str) -> None:
        """Watch this file, or none, from now on; `text` is what it held when it was read."""
        self._path, self._text, self._stamp = path, text, None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="idbg-rules", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self.look()

    def look(self) -> None:
        """Look at the file once."""
        path = self._path
        stamp = _stamp(path)
        if path is None or stamp is None or stamp == self._stamp:
            return
        while not self._stop.wait(SETTLE_SECONDS) and stamp != (latest := _stamp(path)):
            stamp = latest
        try:
            data = path.read_bytes()
        except OSError:
            return  # between two writes of an editor; the next look sees what came of it
        if path == self._path:
            self._stamp = stamp
            self._tell(path, data)

    def _tell(self, path: Path, data: bytes) -> None:
        try:
            text = model.decode(data)
        except AcceleratorError as error:
            self._text = data.decode(errors="replace")
            self._refused(path, self._text, error)
            return
        if text != self._text:
            self._text = text
            self._changed(path, text)


def _stamp(path: Path | None) -> Stamp | None:
    try:
        status = os.stat(path) if path else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if status else None
