"""Open another process of the session, to be shown on the whole screen."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from idbg.schema.errors import OutputError
from idbg.schema.events import SessionEvent
from idbg.session import processes
from idbg.session.session import Session
from idbg_tui.state.inbox import Inbox
from idbg_tui.state.state import State


@dataclass(frozen=True)
class OpenedProcess:
    """The log of a process as a session, which is followed while it is written, and its state."""

    session: Session
    state: State
    inbox: Inbox

    def close(self) -> None:
        """Follow it no more."""
        self.inbox.close()
        self.session.close()


async def opened(
    folder: Path,
    name: str,
    main: State,
    in_thread: Callable[[Callable[[], Session]], Awaitable[Session]],
    take: Callable[[list[SessionEvent]], None],
) -> OpenedProcess:
    """The process of this name of the session in `folder`, whose state is `main`. Later events go to `take`.

    Raises OutputError if it has no log that can be read.
    """
    log = processes.find(folder, name)
    if log is None:
        raise OutputError(f"{name} has no log", hint="a process has one as soon as it compiles")
    session = await in_thread(lambda: Session.follow(log))
    state = State(live=False, arriving=session.arriving, target=session.target, folder=str(log), main=main)
    inbox = Inbox(session, asyncio.get_running_loop(), take)
    state.apply(inbox.past)
    return OpenedProcess(session, state, inbox)
