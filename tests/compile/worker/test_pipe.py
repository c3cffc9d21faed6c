"""Whatever text a program makes, the worker can say it."""

import os

from idbg.schema import event_log, events
from idbg.schema.programs import Failure
from idbg.worker.main import Pipe


def test_text_that_is_not_utf8_is_said_with_the_bad_characters_spelled() -> None:
    read, write = os.pipe()
    failure = Failure(kind="user", type="ValueError", message="bad \udcff é")
    Pipe(write).emit(events.RunEnded(run=3, verdict="failed", seconds=0.5, failure=failure))
    heard = event_log.decode(os.read(read, 65_536))
    os.close(read)
    assert isinstance(heard, events.RunEnded) and heard.failure is not None
    assert (heard.run, heard.failure.message) == (3, "bad \\udcff é")
