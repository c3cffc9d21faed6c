"""Sessions whose worker is `fake_child.py`: it does what the program's path says, and starts in a moment."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from idbg.schema.programs import Program, Target
from idbg.session.session import Session

FAKE_CHILD = Path(__file__).with_name("fake_child.py")
FAKE = (sys.executable, str(FAKE_CHILD))
Open = Callable[..., Session]


@contextmanager
def fake_sessions(output: Path, usual: Target) -> Iterator[Open]:
    """Makes sessions that are closed at the end: `make(how, target)`, for the usual target where none is given."""
    made: list[Session] = []

    def make(how: str = "print", target: Target | None = None, **more: Any) -> Session:
        made.append(Session(Program(path=how), target or usual, output=output, command=FAKE, **more))
        return made[-1]

    try:
        yield make
    finally:
        for session in made:
            session.close()


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    """Wait for what comes when another process lets it."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not happen in {seconds:.0f} seconds"
        time.sleep(0.01)
