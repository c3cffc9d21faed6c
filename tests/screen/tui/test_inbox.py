"""Do events from another thread arrive once, in order, and in batches?"""

import asyncio
import threading
from collections.abc import Callable

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg_tui.state.inbox import Inbox


class Source:
    def __init__(self, *past: SessionEvent) -> None:
        self.events = list(past)
        self.listener: Callable[[SessionEvent], None] | None = None

    def subscribe(self, listener: Callable[[SessionEvent], None]) -> Callable[[], None]:
        self.listener = listener
        return lambda: setattr(self, "listener", None)


def noted(number: int) -> events.Noted:
    return events.Noted(level="info", text=str(number))


async def delivered(batches: list[list[SessionEvent]], count: int) -> None:
    """Wait for so many events."""
    async with asyncio.timeout(60):
        while sum(map(len, batches)) < count:
            await asyncio.sleep(0.01)


async def test_a_flood_from_a_thread_arrives_in_order_and_in_few_batches() -> None:
    source, batches = Source(), list[list[SessionEvent]]()
    Inbox(source, asyncio.get_running_loop(), batches.append)  # type: ignore[arg-type]
    sent = [noted(number) for number in range(2000)]
    listener = source.listener
    assert listener is not None
    thread = threading.Thread(target=lambda: [listener(event) for event in sent])
    thread.start()
    thread.join()  # the loop does not turn meanwhile, however long the thread takes
    await delivered(batches, len(sent))
    assert [event for batch in batches for event in batch] == sent
    assert len(batches) == 1


async def test_an_event_that_is_in_the_past_is_not_delivered_again() -> None:
    first, second = noted(1), noted(2)
    source, batches = Source(first), list[list[SessionEvent]]()
    inbox = Inbox(source, asyncio.get_running_loop(), batches.append)  # type: ignore[arg-type]
    assert inbox.past == [first] and source.listener is not None
    source.listener(first)
    source.listener(second)
    await delivered(batches, 1)
    assert batches == [[second]]


async def test_a_closed_inbox_delivers_nothing() -> None:
    source, batches = Source(), list[list[SessionEvent]]()
    inbox = Inbox(source, asyncio.get_running_loop(), batches.append)  # type: ignore[arg-type]
    assert source.listener is not None
    source.listener(noted(1))
    inbox.close()
    await asyncio.sleep(0.1)
    assert batches == [] and source.listener is None
