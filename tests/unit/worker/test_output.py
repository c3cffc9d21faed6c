"""Does the log get the beginning and the end of what a program prints, and no more than it can keep?"""

from idbg.schema.events import Noted, OutputWritten
from idbg.worker.output import HEAD_LIMIT, TAIL_LIMIT, ChildOutput


def printed(*events: Noted | OutputWritten) -> str:
    return "".join(event.text for event in events if isinstance(event, OutputWritten))


def test_a_run_that_prints_too_much_keeps_its_beginning_and_its_end_and_says_what_is_gone() -> None:
    output = ChildOutput()
    output.restart(3)
    lines = [f"line {number}\n".encode() for number in range(400_000)]
    for line in lines:
        output.feed("stdout", line)
    head = printed(*output.take())
    note, *tail = output.rest()
    assert head.startswith("line 0\nline 1\n") and len(head) == HEAD_LIMIT
    assert printed(*tail).endswith("line 399998\nline 399999\n") and len(printed(*tail)) == TAIL_LIMIT
    assert isinstance(note, Noted)
    assert f"{sum(map(len, lines)) - HEAD_LIMIT - TAIL_LIMIT:,} bytes" in note.text
    assert {event.run for event in tail if isinstance(event, OutputWritten)} == {3}
    assert output.rest() == []


def test_what_fits_into_both_is_whole_and_nothing_is_said() -> None:
    output = ChildOutput()
    text = "é" * ((HEAD_LIMIT + TAIL_LIMIT) // 2 - 1) + "!"
    output.feed("stdout", b"x" + text.encode())  # the limit falls into the middle of a character
    assert printed(*output.take(), *output.rest()) == "x" + text


def test_the_end_does_not_begin_with_half_a_character() -> None:
    output = ChildOutput()
    for _ in range(3):
        output.feed("stderr", ("é" * 333_333).encode() + b".")
    output.take()
    assert "\ufffd" not in printed(*output.rest())


def test_the_next_run_begins_with_all_its_room() -> None:
    output = ChildOutput()
    output.feed("stdout", b"x" * 3_000_000)
    output.take()
    output.restart(2)
    assert output.rest() == []
    output.feed("stdout", b"fresh\n")
    assert printed(*output.take()) == "fresh\n"
