"""The target and rules in force, and edits of the rules in an editor or in their file."""

import os
import threading
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators.lint import warnings
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.accelerators.watch import RulesFile
from idbg.schema import events
from idbg.schema.errors import AcceleratorError
from idbg.schema.programs import Target
from idbg.session.event_bus import EventBus


class RulesInForce:
    """The target of the next run, with its rules. Edits are emitted on the bus. Safe to use from any thread."""

    def __init__(self, target: Target, bus: EventBus) -> None:
        self.target = target
        self._bus = bus
        self._lock = threading.RLock()
        self._file = RulesFile(self._file_changed, self._file_refused)
        self._refused = False  # the last edit
        self._warned: set[str] = set()  # what was odd in the rules in force

    def follow(self, path: Path | None) -> None:
        """The rules in force are those of this file, or of none: say what is odd in them, and watch it once started."""
        self._file.follow(path, self.target.rules)
        self._warn(self.target.rules, str(path or self.target.accelerator))

    def start(self) -> None:
        """Watch the rules' file, on a thread of its own."""
        self._file.start()

    def stop(self) -> None:
        """Watch no more. Idempotent."""
        self._file.stop()

    def edit(self, text: str, origin: str) -> Accelerator | None:
        """Put these rules in force: see `Session.edit_rules`."""
        try:
            valid = parse(text)
        except AcceleratorError as error:
            self._refuse(text, origin, error)
            return None
        with self._lock:
            if origin.endswith(".toml") and os.path.isfile(origin):
                self._file.follow(Path(origin).absolute(), text)
                self.target = replace(self.target, accelerator=origin)
            self.target, self._refused = replace(self.target, rules=text), False
            self._bus.emit(events.RulesEdited(text=text, origin=origin))
            self._warn(text, "the rules" if origin == "editor" else origin)
        return valid

    def aim(self, target: Target) -> None:
        """Take a new target, with the rules of the accelerator that it names where it brings none of its own.

        Raises AcceleratorError or SettingsError where those cannot be had.
        """
        text, own_file = rules_for(target)
        with self._lock:
            if not target.rules:
                self._file.follow(own_file, text)
            if text != self.target.rules:
                self._bus.emit(events.RulesEdited(text=text, origin=str(own_file or target.accelerator)))
                self._warn(text, str(own_file or target.accelerator))
            self.target = replace(target, rules=text)

    def _file_changed(self, path: Path, text: str) -> None:
        if text != self.target.rules or self._refused:
            self.edit(text, str(path))

    def _file_refused(self, path: Path, text: str, error: AcceleratorError) -> None:
        self._refuse(text, str(path), error)

    def _warn(self, text: str, origin: str) -> None:
        """Say what is odd in valid rules, once for as long as it stays."""
        odd = warnings(text)
        for warning in odd:
            if warning.message not in self._warned:
                self._bus.emit(events.Noted(level="warning", text=f"{origin}:{warning.line}: {warning.message}"))
        self._warned = {warning.message for warning in odd}

    def _refuse(self, text: str, origin: str, error: AcceleratorError) -> None:
        self._refused = True
        message = f"{error.message}; {error.hint}" if error.hint else error.message
        self._bus.emit(events.RulesRefused(text=text, origin=origin, message=message, line=error.line))
