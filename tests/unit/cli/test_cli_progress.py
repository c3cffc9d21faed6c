"""The line on stderr that says how far it is: no number that was not measured, no flood, nothing left behind."""

import io
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from idbg.cli import bar as bars
from idbg.cli import output
from idbg.cli.bar import APART, EVERY, Activity, Bar, line, part_and_time
from idbg.cli.progress import Progress, Steps
from idbg.format.tables import cells
from idbg.schema import event_log, events
from idbg.schema.events import OutputWritten, PhaseChanged, RunEnded, RunStarted, SessionEvent
from idbg.schema.programs import Program, Target

RECORDINGS = Path(__file__).parents[2] / "recordings"
NOT_A_LINE = ("\n", "\t", "\x1b", "\x07", "\u202e", "\x9b", "\ud800")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def on(stream: io.StringIO, clock: Clock) -> Bar:
    return Bar(stream, clock=clock, ticks=False)


PHASES: tuple[SessionEvent, ...] = (
    PhaseChanged(run=1, phase="lowering"),
    PhaseChanged(run=1, phase="lowering"),
    OutputWritten(run=1, stream="stdout", text="hi\n"),
    PhaseChanged(run=1, phase="lowering", seconds=1.0),
    OutputWritten(run=1, stream="stdout", text="no end of line"),
    RunEnded(run=1, verdict="clean", seconds=1.0),
)


def test_on_a_terminal_it_is_one_line_that_output_passes_by(clock: Clock) -> None:
    stream = Terminal()
    progress = Progress(on(stream, clock), clock=clock)
    for event in PHASES:
        progress(event)
    assert stream.getvalue() == "\r\x1b[K… lowering  0 s\r\x1b[Khi\nno end of line\n"


def test_elsewhere_it_is_plain_lines(clock: Clock) -> None:
    stream = io.StringIO()
    progress = Progress(on(stream, clock), clock=clock)
    for event in PHASES:
        progress(event)
    assert stream.getvalue() == "… lowering\nhi\nno end of line\n"


def test_quiet_leaves_the_programs_own_output(clock: Clock) -> None:
    for stream in (Terminal(), io.StringIO()):
        progress = Progress(Bar(stream, quiet=True, clock=clock), clock=clock)
        for event in PHASES:
            progress(event)
        assert stream.getvalue() == "hi\nno end of line\n"


# ------------------------------------------------------------- the time


def test_where_nothing_is_known_no_time_left_is_told() -> None:
    assert part_and_time(Activity("lowering", since=10.0), 15.0) == (None, "5 s")
    assert line(Activity("lowering", since=10.0), 15.0, 80) == "… lowering  5 s"


def test_what_is_usual_gives_the_time_left_and_a_part() -> None:
    doing = Activity("lowering", since=10.0, usual=20.0)
    assert part_and_time(doing, 15.0) == (0.25, "5 s, about 15 s left")
    assert line(doing, 15.0, 80) == "[###...........] lowering  5 s, about 15 s left"


def test_what_takes_longer_says_so_and_is_never_full() -> None:
    doing = Activity("lowering", since=10.0, usual=20.0)
    assert part_and_time(doing, 30.2) == (1.0, "20 s")  # may end at any moment: nothing is promised
    assert line(doing, 155.0, 80) == "[#############.] lowering  2 min 25 s, 2 min 5 s over the usual 20 s"


def test_what_is_over_in_a_second_promises_nothing() -> None:
    assert part_and_time(Activity("lowering", since=10.0, usual=0.4), 10.1) == (None, "0 s")


def test_of_several_things_the_time_left_is_what_those_before_took(clock: Clock) -> None:
    stream = Terminal()
    steps = Steps(on(stream, clock), 4, clock)
    steps.show("one")
    assert stream.getvalue().endswith("[..............] one  1 of 4, 0 s")
    clock.now += 30
    steps.next()
    steps.show("two")
    assert stream.getvalue().endswith("[###...........] two  2 of 4, 30 s, about 1 min 30 s left")
    clock.now += 45  # longer than the first: what is left is the other two
    steps.show("two, again")
    assert stream.getvalue().endswith("two, again  2 of 4, 1 min 15 s, about 1 min left")


# ------------------------------------------------------------- the line


@pytest.mark.parametrize("width", [0, 1, 2, 10, 20, 45, 46, 80, 300])
@pytest.mark.parametrize("words", ["lowering 0/0", "x" * 1_000_000, "模型" * 300, "é" * 90, "\x1b[31mred\n" * 9])
def test_it_never_wraps_and_is_never_obeyed(width: int, words: str) -> None:
    for doing in (Activity(words), Activity(words, since=0.0, usual=90.0), Activity(words, since=0.0, of=3, each=5.0)):
        shown = line(doing, 30.0, width)
        assert cells(shown) <= max(width - 1, 0)
        assert not any(each in shown for each in NOT_A_LINE)


def test_a_hostile_name_is_one_plain_line_too(clock: Clock) -> None:
    stream = io.StringIO()
    on(stream, clock).show(Activity("a\x1b[2J\nb\ud800"))
    assert stream.getvalue() == "… a\\x1b[2J b\\ud800\n"


def test_a_terminal_is_written_to_four_times_a_second_at_most(clock: Clock) -> None:
    stream = Terminal()
    bar = on(stream, clock)
    for number in range(1000):
        clock.now += 0.001
        bar.show(Activity(f"phase {number}"))
    assert stream.getvalue().count("\r") <= 1 / EVERY + 1


def test_plain_lines_are_for_what_is_new_and_else_seldom(clock: Clock) -> None:
    stream = io.StringIO()
    bar = on(stream, clock)
    for number in range(1000):
        clock.now += 0.01
        bar.show(Activity(f"lowering {number}/0", "lowering"))
        bar.show(Activity(f"codegen {number}/0", "codegen"))
    assert len(stream.getvalue().splitlines()) <= 2 + 10 / APART + 1


def test_the_line_is_written_over_as_time_goes_and_is_cleared_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "EVERY", 0.01)
    stream = Terminal()
    bar = Bar(stream)
    bar.show(Activity("lowering", since=time.monotonic() - 100.9))
    until = time.monotonic() + 5
    while "101 s" not in stream.getvalue().replace("1 min 41 s", "101 s") and time.monotonic() < until:
        time.sleep(0.01)
    bar.close()
    assert "1 min 40 s" in stream.getvalue() and "1 min 41 s" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nobody_reads_it() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    bar = Bar(Gone(), ticks=False)
    bar.show(Activity("lowering"))
    bar.close()


def test_a_dumb_terminal_has_plain_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    on(stream, clock).show(Activity("lowering"))
    assert stream.getvalue() == "… lowering\n"


def test_a_note_is_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    output.begin()
    output.bar().show(Activity("lowering"))
    output.note("session: there")
    assert stream.getvalue() == "\r\x1b[K… lowering\r\x1b[Ksession: there\n"
    output.begin()


# ------------------------------------------------------------- real sessions


def replayed(name: str) -> Iterable[SessionEvent]:
    for text in (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines():
        yield event_log.decode(text)


@pytest.mark.parametrize("name", ["mlp_train", "planted", "benched", "minified", "breaking"])
@pytest.mark.parametrize("columns", [20, 80])
def test_a_real_session_is_told_and_cleared(
    name: str, columns: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    progress = Progress(on(stream, clock), lambda run: 20.0, clock)
    for event in replayed(name):
        clock.now = event.at
        progress(event)
    drawn = [each for each in stream.getvalue().split("\r\x1b[K")[1:] if each.startswith(("…", "["))]
    assert drawn
    assert all(cells(each.partition("\n")[0]) < columns for each in drawn if "\n" not in each)
    assert stream.getvalue().endswith(("\r\x1b[K", "\n"))


def test_what_is_usual_is_asked_once_a_run_when_its_worker_is_up(clock: Clock) -> None:
    asked: list[int] = []

    def usual(run: int) -> float:
        asked.append(run)
        return 20.0

    stream = Terminal()
    progress = Progress(on(stream, clock), usual, clock)
    progress(RunStarted(run=7, program=Program("a.py"), target=Target()))
    assert stream.getvalue().endswith("… starting  0 s") and asked == []
    clock.now += 8  # torch is imported: that is no part of what is usual
    progress(PhaseChanged(run=7, phase="program"))
    clock.now += 5
    progress(PhaseChanged(run=7, phase="dynamo", frame="0/0"))
    assert stream.getvalue().endswith("[###...........] dynamo 0/0  5 s, about 15 s left")
    assert asked == [7]


def test_the_sides_of_a_comparison_are_named(clock: Clock) -> None:
    stream = io.StringIO()
    progress = Progress(on(stream, clock), clock=clock)
    progress(events.SideStarted(run=1, side="inductor"))
    progress(PhaseChanged(run=1, phase="dynamo", frame="0/0"))
    assert stream.getvalue() == "… side inductor\n… side inductor: dynamo 0/0\n"
