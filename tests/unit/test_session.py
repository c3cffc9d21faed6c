"""A session runs one job at a time, writes all of it down, and tells its listeners in order."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from idbg.schema import events
from idbg.schema.diff import DiffReport, FailedBy, TensorDiff
from idbg.schema.errors import AcceleratorError, BadInput, OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Sought
from idbg.session.queue import JobQueue
from idbg.session.reading import load
from idbg.session.session import Session
from idbg.session.store import Store
from idbg.worker.protocol import Minify
from tests.harness.fake_sessions import FAKE, Open, fake_sessions, until

RULES = 'name = "mine"\n[[rules]]\nkind = "alignment"\nmultiple = 16\n'
NODE = NodeId(GraphId("0/0", "dynamo"), "relu")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Make sessions whose program behaves as its path says (see fake_child)."""
    with fake_sessions(tmp_path / "out", Target()) as make:
        yield make


def kinds(session: Session) -> list[str]:
    return [type(event).__name__ for event in session.events]


def verdicts(session: Session) -> dict[int, str]:
    runs = session.history.runs.values()
    return {run.number: run.failure.kind if run.failure else run.ended or "" for run in runs}


def test_a_run_is_numbered_at_once_and_told_from_start_to_end(opened: Open) -> None:
    session = opened()
    assert session.run() == 1
    assert session.wait(60)
    told = kinds(session)
    assert told[:2] == ["SessionOpened", "RunStarted"]
    assert told[-1] == "RunEnded"
    assert session.history.runs[1].verdict == "compiled"
    assert "".join(event.text for event in session.history.runs[1].output if event.stream == "stdout") == (
        "hello from stdout\n"
    )


def test_a_run_while_one_runs_cancels_it_and_the_newest_wins(opened: Open) -> None:
    session = opened("sleep")
    session.run()
    until(lambda: "PhaseChanged" in kinds(session))
    session.program = Program(path="print")
    assert [session.run(), session.run(), session.run()] == [2, 3, 4]
    assert session.wait(60)
    ended = verdicts(session)
    assert (ended.pop(1), ended.pop(4)) == ("cancelled", "clean")
    assert {*ended.values()} <= {"cancelled"}  # one that began before the next was requested
    assert 2 <= kinds(session).count("WorkerStarted") <= 2 + len(ended)  # or was cancelled before its worker started
    assert "WorkerDied" not in kinds(session)


def test_cancel_ends_the_run_and_forgets_what_waits(opened: Open) -> None:
    session = opened("sleep")
    session.run()
    until(lambda: "PhaseChanged" in kinds(session))
    session.run()
    session.cancel()
    assert session.wait(60)
    # the second waits for the first one's end, or, on a busy machine, has just begun when the cancel comes
    assert set(verdicts(session).values()) == {"cancelled"}


def test_a_run_after_a_cancel_runs_in_a_fresh_worker(opened: Open) -> None:
    session = opened("sleep")
    session.run()
    until(lambda: "PhaseChanged" in kinds(session))
    session.program = Program(path="print")
    session.cancel()
    session.run()
    assert session.wait(60)
    assert verdicts(session) == {1: "cancelled", 2: "clean"}
    assert kinds(session).count("WorkerStarted") == 2
    assert "WorkerDied" not in kinds(session)


def test_cancel_with_nothing_to_cancel_is_quiet(opened: Open) -> None:
    session = opened()
    session.cancel()
    session.run()
    assert session.wait(60)
    session.cancel()
    assert verdicts(session) == {1: "clean"}


def test_wait_says_when_it_was_not_enough(opened: Open) -> None:
    session = opened("sleep")
    session.run()
    assert not session.wait(0.05)


def test_listeners_hear_all_in_order_on_one_thread_and_a_failing_one_stops_nothing(opened: Open) -> None:
    session = opened()
    heard: list[SessionEvent] = []
    threads: set[str] = set()

    def listen(event: SessionEvent) -> None:
        threads.add(threading.current_thread().name)
        heard.append(event)

    def fail(event: SessionEvent) -> None:
        raise RuntimeError("a mistake in a listener")

    before = len(session.events)
    session.subscribe(fail)
    unsubscribe = session.subscribe(listen)
    session.run()
    assert session.wait(60)
    assert heard == session.events[before:]
    assert len(threads) == 1
    unsubscribe()
    session.run()
    assert session.wait(60)
    assert not any(isinstance(event, events.RunStarted) and event.run == 2 for event in heard)


def test_all_of_it_is_on_disk_and_opens_again_without_a_worker(opened: Open) -> None:
    session = opened()
    session.run()
    session.wait(60)
    session.edit_rules(RULES)
    session.close()
    assert load(session.folder) == session.events
    saved = Session.open(session.folder)
    assert saved.events == session.events
    assert not saved.live
    assert saved.target.rules == RULES
    assert saved.program == session.program
    assert saved.history.runs[1].verdict == "compiled"
    saved.close()


def test_a_saved_session_takes_edits_of_rules_but_runs_nothing(opened: Open) -> None:
    session = opened()
    session.run()
    session.wait(60)
    session.close()
    saved = Session.open(session.folder)
    assert saved.edit_rules(RULES) is not None
    assert saved.target.rules == RULES
    for action in (saved.start, saved.run, saved.cancel, lambda: saved.export_repro(NODE)):
        with pytest.raises(BadInput, match="read from disk"):
            action()
    saved.close()
    assert load(session.folder) == session.events


def test_an_edit_that_is_valid_is_in_force_and_one_that_is_not_is_refused_at_its_line(opened: Open) -> None:
    session = opened()
    edited = session.edit_rules(RULES)
    assert edited is not None and edited.name == "mine"
    assert session.edit_rules(RULES.replace("16", "-16")) is None
    assert session.target.rules == RULES
    refused = session.events[-1]
    assert isinstance(refused, events.RulesRefused) and refused.line == 4
    session.run()
    session.wait(60)
    assert session.history.runs[1].target.rules == RULES


def test_a_new_target_brings_the_rules_of_its_accelerator(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(RULES)
    session = opened()
    session.run(Target(backend="eager", accelerator=str(tmp_path / "mine.toml")))
    assert session.target.rules == RULES
    assert isinstance(session.events[1], events.RulesEdited)
    with pytest.raises(AcceleratorError):
        session.run(Target(accelerator="no-such"))
    session.wait(60)
    assert session.history.runs[1].target.backend == "eager"


def test_a_mistake_in_the_accelerators_file_is_named_with_the_file_and_line(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(RULES.replace("multiple", "multipel"))
    with pytest.raises(AcceleratorError, match=r"mine\.toml:4: "):
        opened(target=Target(accelerator=str(tmp_path / "mine.toml")))
    assert not (tmp_path / "out").exists()


def test_mock_variables_change_the_preset_mock_and_no_file(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text(RULES)
    monkeypatch.setenv("MOCK_ALIGNMENT", "7")
    assert "multiple = 7" in opened().target.rules
    assert opened(target=Target(accelerator=str(tmp_path / "mine.toml"))).target.rules == RULES


def test_rules_that_another_program_changes_are_taken(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(RULES)
    session = opened(rules_path=file)
    session.start()
    file.write_text(RULES.replace("16", "32"))
    until(lambda: "multiple = 32" in session.target.rules)
    edited = next(event for event in session.events if isinstance(event, events.RulesEdited))
    assert edited.origin == str(file)
    replaced = tmp_path / "swap"
    replaced.write_text("nonsense =")
    os.replace(replaced, file)
    until(lambda: "RulesRefused" in kinds(session))
    assert "multiple = 32" in session.target.rules


def test_a_file_that_is_not_utf8_is_refused_at_its_line_and_a_marked_one_is_read(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xef\xbb\xbf" + RULES.encode())
    session = opened(rules_path=file)
    assert session.target.rules == RULES
    session.start()
    file.write_bytes(RULES.encode() + b"# \xe9\n")
    until(lambda: "RulesRefused" in kinds(session))
    refused = session.events[-1]
    assert isinstance(refused, events.RulesRefused) and "UTF-8" in refused.message
    assert refused.line == RULES.count("\n") + 1
    file.write_bytes(b"\xef\xbb\xbf" + RULES.encode())
    until(lambda: "RulesEdited" in kinds(session))
    assert session.target.rules == RULES


def test_a_slow_disk_holds_up_nobody_and_all_of_it_is_written_in_order(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, free, gave_up = Store.append, threading.Event(), threading.Event()

    def slow(store: Store, event: SessionEvent) -> None:
        if isinstance(event, events.PhaseChanged):
            free.wait(60) or gave_up.set()
        append(store, event)

    session = opened()
    monkeypatch.setattr("idbg.session.store.Store.append", slow)
    session.run()
    until(lambda: "RunEnded" in kinds(session))
    session.edit_rules(RULES)
    assert session.run() == 2 and not gave_up.is_set()
    assert not session.wait(0.1), "not idle before it is on disk"
    free.set()
    assert session.wait(60)
    assert load(session.folder) == session.events


def test_a_file_that_nobody_changed_does_not_undo_an_edit(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(RULES)
    session = opened(rules_path=file)
    session.start()
    edited = RULES.replace("16", "64")
    session.edit_rules(edited)
    time.sleep(1.2)
    assert session.target.rules == edited


def test_a_repro_is_told_from_start_to_end(opened: Open) -> None:
    session = opened()
    with pytest.raises(BadInput, match="nothing was run yet"):
        session.export_repro(NODE)
    session.run()
    session.export_repro(NODE, "alignment")
    assert session.wait(60)
    started, ended = session.events[-2:]
    assert isinstance(started, events.ReproStarted) and (started.run, started.rule) == (1, "alignment")
    assert isinstance(ended, events.ReproEnded) and ended.path == str(session.folder / "repros" / "repro.py")


def test_a_search_for_a_violation_asks_the_rules_that_are_in_force_now(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, asked = opened(), list[Minify]()
    session.run()
    assert session.wait(60)
    session.edit_rules(RULES)
    monkeypatch.setattr(JobQueue, "add", lambda _, job: asked.append(job))
    session.minify(Sought("violation", NODE, "alignment"))
    session.minify(Sought("failure"))
    assert [request.target.rules == RULES for request in asked] == [True, False]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("rmse", ""),
        ("unsteady", "eager itself gives something else each time"),
        ("effect", "what differs is what is left in the program's Python state"),
        ("draws", "what differs is random operators"),
    ],
)
def test_no_script_is_searched_where_no_tensor_is_wrong(
    opened: Open, monkeypatch: pytest.MonkeyPatch, rule: FailedBy, why: str
) -> None:
    session, searches = opened(), list[Minify]()
    session.run()
    assert session.wait(60)
    failed = TensorDiff(name="log", passed=False, failed_by=(rule,))
    report = DiffReport(test="inductor", reference="eager", verdict="failed", mode="float64", outputs=(failed,))
    session.history.runs[1].diff = report
    monkeypatch.setattr(JobQueue, "add", lambda _, job: searches.append(job))
    with pytest.raises(BadInput, match=why) if why else nullcontext():
        session.minify(Sought("wrong"))
    assert bool(searches) != bool(why)


def test_a_worker_that_dies_fails_the_run_and_the_next_run_works(opened: Open) -> None:
    session = opened("segfault")
    session.run()
    assert session.wait(60)
    assert "WorkerDied" in kinds(session)
    session.program = Program(path="print")
    session.run()
    assert session.wait(60)
    assert verdicts(session) == {1: "worker", 2: "clean"}


def test_an_output_folder_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        Session(Program(path="print"), Target(), output=tmp_path / "file", command=FAKE)


def test_a_disk_that_fills_up_is_noted_once_and_the_session_goes_on(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    session = opened()
    monkeypatch.setattr("idbg.session.store.Store.append", full)
    session.run()
    assert session.wait(60)
    session.run()
    assert session.wait(60)
    notes = [event.text for event in session.events if isinstance(event, events.Noted)]
    assert len(notes) == 1 and "No space left on device" in notes[0]
    assert verdicts(session) == {1: "clean", 2: "clean"}


def test_a_disk_that_refuses_repros_costs_one_temporary_folder(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuses(store: object) -> Path:
        raise OSError(28, "No space left on device")

    made: list[str] = []

    def mkdtemp(prefix: str) -> str:
        made.append(str(tmp_path / f"{prefix}{len(made)}"))
        return made[-1]

    monkeypatch.setattr("idbg.session.store.Store.repro_folder", refuses)
    monkeypatch.setattr("idbg.session.queue.tempfile", SimpleNamespace(mkdtemp=mkdtemp))
    session = opened()
    session.run()
    for _ in range(3):
        session.map_errors("out")
        session.export_repro(None)
    assert session.wait(60)
    repros = [event.path for event in session.events if isinstance(event, events.ReproEnded)]
    assert len(made) == 1 and repros == [f"{made[0]}/repro.py"] * 3
    assert len([event for event in session.events if isinstance(event, events.ErrorsMapped)]) == 3


def test_close_is_idempotent_ends_the_run_and_leaves_no_thread(opened: Open) -> None:
    before = set(threading.enumerate())
    session = opened("sleep")
    session.start()
    session.run()
    until(lambda: "PhaseChanged" in kinds(session))
    session.close()
    session.close()
    assert verdicts(session) == {1: "cancelled"}
    assert load(session.folder) == session.events
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name.startswith("idbg-")]
    with pytest.raises(BadInput, match="closed"):
        session.run()


def test_what_is_odd_in_valid_rules_is_told_once_with_its_line(opened: Open) -> None:
    odd = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["convolutoin"]\n'
    session = opened(target=Target(rules=odd, accelerator="mine.toml"))
    session.edit_rules(odd + "# edited\n")
    session.edit_rules('[[rules]]\nkind = "rank"\nmax = 4\n')
    session.edit_rules(odd)
    told = [event.text for event in session.events if isinstance(event, events.Noted)]
    message = '3: no op of torch matches "convolutoin"; did you mean convolution?'
    assert told == [f"mine.toml:{message}", f"the rules:{message}"]


def test_rules_that_are_saved_to_a_file_are_that_files_from_then_on(opened: Open, tmp_path: Path) -> None:
    session = opened()
    session.start()
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    assert session.edit_rules(RULES, origin=str(path)) is not None
    assert session.target.accelerator == str(path)
    path.write_text(RULES + "# by another program\n")
    until(lambda: session.target.rules.endswith("# by another program\n"))
