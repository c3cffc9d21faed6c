"""Output folders with sessions in them, made of recordings, as a run leaves them or as a killed one does."""

import shutil
from pathlib import Path

from idbg.schema import event_log, events
from idbg.schema.programs import Program
from idbg.session.event_bus import EventBus
from idbg.session.store import Store
from tests.harness import recorded


def session_of(name: str, output: Path) -> Path:
    """The folder of a session that wrote down what was recorded, and was closed."""
    log = recorded.log(name)
    kept = Store.create(output, Program(path="model.py"))
    bus = EventBus(kept)
    for event in log:
        bus.emit(event)
    bus.close()
    return kept.folder


def killed_session_of(name: str, output: Path, folder: str = "killed") -> Path:
    """The folder of a session that has its log alone."""
    (output / folder).mkdir(parents=True)
    shutil.copy(recorded.RECORDINGS / f"{name}.jsonl", output / folder / "events.jsonl")
    return output / folder


def small_log(folder: Path, *, at: float, program: str = "model.py") -> Path:
    """A session's folder with a log of one event."""
    folder.mkdir(parents=True)
    opened = events.SessionOpened(version="0", program=Program(path=program), folder=str(folder), at=at)
    (folder / "events.jsonl").write_bytes(event_log.encode(opened) + b"\n")
    return folder
