"""The event bus survives any exception of its store and its listeners, and a flush has an end."""

import shutil
from pathlib import Path
from typing import cast

import pytest

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program, Target
from idbg.session.event_bus import EventBus
from idbg.session.store import Store

SOON = 30.0  # seconds: an end, and no measure


def test_a_record_that_no_encoder_takes_ends_the_saving_and_not_the_delivery(tmp_path: Path) -> None:
    bus = EventBus(Store.create(tmp_path, Program("p.py")))
    heard: list[SessionEvent] = []
    bus.subscribe(heard.append)
    target = Target(backend=cast("str", lambda gm, inputs: gm))  # msgspec raises TypeError
    bus.emit(events.RunStarted(run=1, program=Program("p.py"), target=target))
    bus.emit(events.Noted(level="info", text="later"))
    assert bus.flush(SOON), "the delivery thread died"
    texts = [event.text for event in heard if isinstance(event, events.Noted)]
    assert "later" in texts and any("from here on nothing is saved" in text for text in texts)
    bus.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_flush_ends_with_the_thread_that_delivers() -> None:
    bus = EventBus()

    def ends(event: SessionEvent) -> None:
        raise SystemExit

    bus.subscribe(ends)
    bus.emit(events.Noted(level="info", text="one"))
    bus.emit(events.Noted(level="info", text="never delivered"))
    assert not bus.flush(SOON)
    bus.close()


def test_a_session_that_is_removed_while_it_lives_is_said_and_leaves_no_half_of_one(tmp_path: Path) -> None:
    store = Store.create(tmp_path, Program("p.py"))
    bus = EventBus(store)
    bus.emit(events.SessionOpened(version="0", program=Program("p.py"), folder=str(store.folder)))
    assert bus.flush(SOON)
    shutil.rmtree(store.folder)
    bus.emit(events.RunStarted(run=1, program=Program("p.py"), target=Target()))
    assert bus.flush(SOON)
    bus.close()
    assert any("its folder was removed meanwhile" in text for text in bus.history.missing)
    assert not store.folder.exists()
