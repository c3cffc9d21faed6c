"""Whatever a program does to the worker, the host hears of it once, in order, and nothing is left behind."""

import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure, Program, Target
from idbg.worker import output
from idbg.worker.client import Worker
from idbg.worker.protocol import Compile, WriteRepro
from tests.harness.fake_sessions import FAKE


class Host:
    """A worker, and what it has said so far."""

    def __init__(self, command: tuple[str, ...] = FAKE, **seconds: Any) -> None:
        self.said: list[SessionEvent] = []
        self._queue: queue.SimpleQueue[SessionEvent] = queue.SimpleQueue()
        self.worker = Worker(self._queue.put, command=command, **seconds)

    def until(self, *kinds: type) -> SessionEvent:
        """Wait for an event of one of these kinds."""
        while True:
            event = self._queue.get(timeout=60)
            self.said.append(event)
            if isinstance(event, kinds):
                return event

    def result(self, request: Compile | WriteRepro) -> events.RunEnded:
        self.worker.submit(request)
        event = self.until(events.RunEnded, events.ReproEnded)
        assert isinstance(event, events.RunEnded)
        return event

    def all(self, kind: type) -> list:
        while not self._queue.empty():
            self.said.append(self._queue.get())
        return [event for event in self.said if isinstance(event, kind)]

    def printed(self, stream: str = "stdout") -> str:
        return "".join(event.text for event in self.all(events.OutputWritten) if event.stream == stream)


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.worker.close()


def job(how: str, run: int = 1) -> Compile:
    return Compile(run=run, program=Program(path=how), target=Target(), folder="/nowhere")


def alive(pid: int) -> bool:
    """Is there such a process, and does it still run? (A zombie whose parent is slow does not.)"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_start_warms_the_worker_before_any_request(host: Host) -> None:
    host.worker.start()
    assert isinstance(host.until(events.WorkerStarted), events.WorkerStarted)


def test_what_a_run_printed_comes_before_its_end_and_carries_its_number(host: Host) -> None:
    assert host.result(job("print", run=7)).verdict == "clean"
    assert host.printed() == "hello from stdout\n"
    assert host.printed("stderr") == "hello from stderr\n"
    assert {event.run for event in host.all(events.OutputWritten)} == {7}
    assert isinstance(host.said[-1], events.RunEnded)


def test_one_process_serves_many_requests(host: Host) -> None:
    for run in (1, 2, 3):
        assert host.result(job("print", run)).run == run
    assert len(host.all(events.WorkerStarted)) == 1


def test_a_program_that_prints_megabytes_fills_one_of_them_and_is_told(host: Host) -> None:
    host.result(job("print megabytes"))
    assert len(host.printed()) == 1_000_000
    (note,) = host.all(events.Noted)
    assert "3,000,000 bytes in its middle were dropped" in note.text
    assert max(len(event.text) for event in host.all(events.OutputWritten)) <= 65_536


def test_what_a_program_prints_between_two_events_is_one_event_before_the_second(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "FLUSH_SECONDS", 600.0)  # so that other events alone flush
    host.result(job("chatter"))
    ordered = [each for each in host.said if isinstance(each, events.OutputWritten | events.PhaseChanged)]
    whole = "".join(f"{number}\n" for number in range(300))
    assert [each.text if isinstance(each, events.OutputWritten) else each.phase for each in ordered] == [
        "behaving",
        whole,
        "between",
        whole,
        "between",
    ]


def test_a_character_that_comes_in_two_halves_is_whole_and_bad_bytes_are_replaced(host: Host) -> None:
    host.result(job("print in bits"))
    assert host.printed() == "é\ufffd\n"


def test_cancel_ends_the_run_and_its_process(host: Host) -> None:
    host.worker.submit(job("sleep"))
    host.until(events.PhaseChanged)
    host.worker.cancel()
    ended = host.until(events.RunEnded)
    assert isinstance(ended, events.RunEnded) and ended.failure is not None
    assert ended.failure.kind == "cancelled"
    assert host.result(job("print", run=2)).verdict == "clean"
    assert len({started.pid for started in host.all(events.WorkerStarted)}) == 2, (
        "what it left in torch's caches is gone with it"
    )


def test_a_run_that_ignores_the_cancel_is_killed_after_the_grace_and_the_worker_comes_back() -> None:
    host = Host(grace=0.2)
    host.worker.submit(job("ignore SIGINT"))
    host.until(events.PhaseChanged)
    host.worker.cancel()
    ended = host.until(events.RunEnded)
    assert isinstance(ended, events.RunEnded) and ended.failure is not None
    assert ended.failure.kind == "cancelled"
    assert host.until(events.WorkerStarted)
    assert host.all(events.WorkerDied) == []
    assert host.result(job("print", run=2)).verdict == "clean"
    host.worker.close()


def test_a_run_that_still_prints_when_its_cancel_ends_leaves_the_worker_working() -> None:
    heard: queue.SimpleQueue[SessionEvent] = queue.SimpleQueue()

    def listen(event: SessionEvent) -> None:
        heard.put(event)
        if isinstance(event, events.PhaseChanged) and event.seconds is not None:
            time.sleep(0.3)  # so that what it prints and its end are read in one go

    def until(kind: type) -> SessionEvent:
        while not isinstance(event := heard.get(timeout=60), kind):
            pass
        return event

    worker = Worker(listen, command=FAKE)
    worker.submit(job("clean up"))
    until(events.PhaseChanged)
    worker.cancel()
    until(events.RunEnded)
    worker.submit(job("print", run=2))
    ended = until(events.RunEnded)
    assert isinstance(ended, events.RunEnded) and (ended.run, ended.verdict) == (2, "clean")
    worker.close()


def test_a_second_cancel_kills_at_once() -> None:
    host = Host(grace=60)
    host.worker.submit(job("ignore SIGINT"))
    host.until(events.PhaseChanged)
    host.worker.cancel()
    host.worker.cancel()
    assert host.until(events.RunEnded)
    host.worker.close()


def test_cancel_of_a_run_that_waits_for_the_worker_drops_it(host: Host) -> None:
    host.worker.submit(job("print"))
    host.worker.cancel()
    ended = host.until(events.RunEnded)
    assert isinstance(ended, events.RunEnded) and ended.failure is not None
    assert ended.failure.kind == "cancelled"
    assert host.result(job("print", run=2)).run == 2


def test_cancel_of_nothing_does_nothing(host: Host) -> None:
    host.worker.cancel()
    assert host.result(job("print")).verdict == "clean"


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("segfault", "killed by SIGSEGV"),
        ("exit", "exited with status 3"),
        ("exit slowly", "exited with status 3"),
        ("close everything", "closed its pipes and did not exit"),
    ],
)
def test_a_worker_that_dies_in_a_run_is_reported_and_comes_back_warm(how: str, cause: str) -> None:
    host = Host(dying=2.5)
    ended = host.result(job(how))
    (died,) = host.all(events.WorkerDied)
    assert died.cause == cause
    assert ended.verdict == "failed" and isinstance(ended.failure, Failure)
    assert ended.failure.kind == "worker" and cause in ended.failure.message
    assert host.until(events.WorkerStarted)
    assert host.result(job("print", run=2)).verdict == "clean"
    host.worker.close()


def test_a_program_that_another_replaces_ends_as_that_does_and_is_not_killed(tmp_path: Path) -> None:
    host = Host(dying=0.2)
    ended = host.result(replace(job("become another"), session=str(tmp_path)))
    assert (ended.verdict, ended.exit_status, ended.children, ended.failure) == ("compiled", 3, 1, None)
    assert ended.seconds > 1.5 and host.printed() == "after\n"
    (note,) = tmp_path.glob("processes/.pids/*")
    assert note.read_text() == "child-1\n\n768"  # as os.waitpid has it
    crashed = host.result(job("become a crash", run=2))
    assert crashed.failure is not None and "killed by SIGSEGV" in crashed.failure.message
    assert host.result(job("print", run=3)).verdict == "clean"
    host.worker.close()


def test_a_request_that_comes_while_an_idle_worker_dies_is_for_the_next_one(host: Host) -> None:
    assert host.result(job("end and leave")).verdict == "clean"
    time.sleep(0.3)
    assert host.result(job("print", run=2)).verdict == "clean"
    assert len(host.all(events.WorkerDied)) == 1


def test_a_death_carries_the_last_words(host: Host) -> None:
    host.result(job("segfault"))
    (died,) = host.all(events.WorkerDied)
    assert died.last_output == "last words"


def test_an_uncaught_exception_of_cpp_is_the_message(host: Host) -> None:
    failure = host.result(job("terminate")).failure
    assert failure is not None and failure.message == "the worker was killed by SIGABRT: index out of bounds"


def test_a_worker_without_torch_is_reported_once_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_START", "no torch")
    host = Host()
    host.worker.start()
    note = host.until(events.Noted)
    assert isinstance(note, events.Noted) and "pip install torch" in note.text
    time.sleep(0.7)
    assert len(host.all(events.WorkerDied)) == 1
    failure = host.result(job("print")).failure
    assert failure is not None and "pip install torch" in failure.hint
    monkeypatch.delenv("FAKE_START")
    assert host.result(job("print", run=2)).verdict == "clean"
    host.worker.close()


def test_a_command_that_cannot_be_run_is_a_failed_start() -> None:
    host = Host(command=("/no/such/python",))
    failure = host.result(job("print")).failure
    assert failure is not None and failure.kind == "worker"
    host.worker.close()


def test_what_is_not_an_event_is_noted_and_the_run_goes_on(host: Host) -> None:
    assert host.result(job("garbage")).verdict == "clean"
    assert "not an event" in host.all(events.Noted)[0].text


def test_a_repro_request_ends_in_its_own_event(host: Host) -> None:
    host.worker.submit(WriteRepro(run=1, folder="/there"))
    ended = host.until(events.ReproEnded)
    assert isinstance(ended, events.ReproEnded) and ended.path == "/there/repro.py"


@pytest.mark.parametrize("how", ["orphan", "orphan and die"])
def test_no_process_of_the_group_is_left_behind(how: str) -> None:
    host = Host()
    host.worker.submit(job(how))
    written = host.until(events.OutputWritten)
    assert isinstance(written, events.OutputWritten)
    host.worker.close()
    (started, *_) = host.all(events.WorkerStarted)
    assert gone(int(written.text))
    assert gone(started.pid)


def test_close_ends_the_run_in_hand_at_once_and_is_idempotent() -> None:
    host = Host(grace=500)
    host.worker.submit(job("sleep"))
    host.until(events.PhaseChanged)
    host.worker.close()
    host.worker.close()
    host.worker.cancel()
    (ended,) = host.all(events.RunEnded)
    assert ended.failure.kind == "cancelled"


def test_nothing_stays_open_after_close() -> None:
    before = len(os.listdir("/proc/self/fd"))
    host = Host()
    host.result(job("print"))
    host.worker.close()
    assert len(os.listdir("/proc/self/fd")) == before
