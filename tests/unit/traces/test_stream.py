"""A trace's bytes become records, whatever is damaged between them."""

import io
from collections.abc import Iterator

from idbg.traces.stream import Record, RecordStream
from tests.harness.traces import line


def stream(data: bytes, limit: int = 1 << 20) -> RecordStream:
    return RecordStream(io.BytesIO(data), 2026, limit)


def kinds(records: Iterator[Record]) -> list[str]:
    return [record.kind for record in records]


FIRST = line({"first": {}, "frame_id": 0}, "one\n\ttwo\n")
SECOND = line({"second": {}})


def test_records_have_their_payload_as_torch_had_it() -> None:
    first, second = stream(FIRST + SECOND).records(is_whole=True)
    assert first.text == "one\n\ttwo\n" and first.pid == 4711 and first.writer == "torch/_dynamo/convert_frame.py"
    assert second.kind == "second" and second.payload == b""


def test_a_torn_last_record_is_left_out_and_said() -> None:
    torn = stream(SECOND + FIRST[:-6])
    assert kinds(torn.records(is_whole=True)) == ["second"]
    assert sum(torn.left_out.values()) == 1 and "cut off" in next(iter(torn.left_out))


def test_a_record_that_grows_is_read_once_when_it_is_whole(tmp_path: object) -> None:
    file = io.BytesIO()
    growing = RecordStream(file, 2026)
    found: list[str] = []
    for at in range(0, len(FIRST + SECOND), 7):
        file.seek(0, io.SEEK_END)
        file.write((FIRST + SECOND)[at : at + 7])
        file.seek(growing.read_bytes)
        found += kinds(growing.records(is_whole=False))
    assert found == ["first", "second"] and not growing.left_out


def test_output_of_another_process_between_lines_of_a_payload_is_removed() -> None:
    head, payload, rest = FIRST.partition(b"\n\tone")
    mixed = stream(head + payload + b"\nDownloading: 100%" + rest)
    assert [record.text for record in mixed.records(is_whole=True)] == ["one\n\ttwo\n"]


def test_a_payload_that_is_not_the_one_that_was_written_is_left_out() -> None:
    wrong = stream(FIRST.replace(b"\tone", b"\tuno") + SECOND)
    assert kinds(wrong.records(is_whole=True)) == ["second"] and wrong.left_out.total() == 1


def test_a_record_beyond_the_limit_is_skipped_in_bounded_memory() -> None:
    long = line({"long": {}}, "x" * (3 << 20))
    found = stream(FIRST + long + SECOND, limit=1 << 20)
    assert kinds(found.records(is_whole=True)) == ["first", "second"]
    assert "longer than" in next(iter(found.left_out))


def test_foreign_lines_and_bytes_that_are_no_utf8_end_nothing() -> None:
    noise = b"V is no header\nVx\n\xff\xfe\x00\n"
    found = stream(noise + FIRST + noise + SECOND.replace(b"{}", b'{"a": "\xff"}'))
    assert kinds(found.records(is_whole=True)) == ["first", "second"]
    assert found.left_out.total() >= 2


def test_metadata_may_hold_what_python_writes_and_json_lacks() -> None:
    assert kinds(stream(line({"odd": {"a": float("nan")}})).records(is_whole=True)) == ["odd"]
