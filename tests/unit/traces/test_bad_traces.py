"""A damaged, foreign or hostile trace is opened as far as it is intact, with a sentence for what is not."""

import json
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from idbg.format.verdicts import verdict_words
from idbg.schema.decisions.dynamo import FrameResult
from idbg.schema.ranks import RankComparison
from idbg.schema.runs import History, fold
from idbg.session import processes, ranks
from idbg.session.importing import Import
from idbg.session.reading import load
from idbg.traces import records
from idbg.traces.sources import kind_of
from idbg.views.ranks import sentence
from tests.harness.traces import line, recordings, trace_in, unpacked


def session_of(trace: Path) -> Path:
    importing = Import(trace, trace.parent / "out")
    importing.read()
    return importing.folder


def history_of(trace: Path) -> History:
    return fold(load(session_of(trace)))


def recorded(program: str = "breaking") -> bytes:
    name = recordings(program)[0]
    with tempfile.TemporaryDirectory() as folder:
        return next(unpacked(name, Path(folder)).glob("*.log")).read_bytes()


def missing(history: History) -> list[str]:
    """What was left out; records of `line` have another date and process than those that were recorded."""
    return [text for text in history.missing if "left out" in text]


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_truncated_trace_has_what_came_before(part: float, tmp_path: Path) -> None:
    whole = recorded()
    history = history_of(trace_in(tmp_path / "trace", whole[: int(len(whole) * part)]))
    assert history.last is not None and history.last.frames and history.last.ended is not None
    assert len(history.missing) <= 1


def test_two_traces_written_into_one_file_are_told_apart_as_far_as_records_are_whole(tmp_path: Path) -> None:
    whole = recorded()
    other = line({"dynamo_start": {"stack": []}, "frame_id": 90, "frame_compile_id": 0}, pid=99)
    lines = whole.split(b"\n")
    torn = b"\n".join([*lines[:2000], other.rstrip(b"\n"), *lines[2000:]])
    history = history_of(trace_in(tmp_path / "trace", torn))
    assert history.last is not None and len(history.last.frames) >= 8
    assert any("several processes (99 beside the first)" in text for text in history.missing)


def test_records_of_a_newer_torch_are_ignored_or_counted(tmp_path: Path) -> None:
    newer = line({"a_kind_of_2030": {"x": 1}, "frame_id": 0}, "payload") + line({"dynamo_start": 7, "frame_id": "x"})
    newer += line({"compilation_metrics": [1, 2], "frame_id": {}}) + line({"str": "no list"})
    newer += line({"str": [1]}) + line({"create_symbol": {"val": 3}, "frame_id": 1})
    history = history_of(trace_in(tmp_path / "trace", newer + recorded()))
    assert history.last is not None and len(history.last.graphs) > 10
    assert any("of an unknown form, maybe of a newer torch" in text for text in history.missing)


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    content = recorded().replace(b"breaking.py", b"br\xffaking.py")
    history = history_of(trace_in(tmp_path / "trace", content))
    assert history.last is not None and history.last.frames


def test_a_clock_that_goes_back_is_said(tmp_path: Path) -> None:
    late = line({"a": {}}, second=50) + line({"b": {}}, second=5)
    history = history_of(trace_in(tmp_path / "trace", late))
    assert any("goes back by 45 s" in text for text in history.missing)


def test_a_foreign_log_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("2026-11-28 INFO started\n" * 10)
    assert kind_of(tmp_path) is None and kind_of(tmp_path / "server.log") is None


def test_two_jobs_in_one_folder_are_processes_of_other_names_and_it_is_said(tmp_path: Path) -> None:
    content = line({"a": {}, "rank": 0}, pid=10)
    trace_in(tmp_path / "trace", content, "dedicated_log_torch_trace_rank_0_a.log")
    trace_in(tmp_path / "trace", content.replace(b" 10 ", b" 20 "), "dedicated_log_torch_trace_rank_0_b.log")
    trace_in(tmp_path / "trace", content.replace(b" 10 ", b" 30 "), "dedicated_log_torch_trace_rank_1_a.log")
    folder = session_of(tmp_path / "trace")
    assert processes.names(folder) == ["rank0", "rank0-2", "rank1"]
    assert any("rank 0" in text and "two jobs" in text for text in fold(load(folder)).missing)


def test_a_growing_trace_is_followed_with_processes_that_start_later(tmp_path: Path) -> None:
    trace = trace_in(tmp_path / "trace", b"")
    whole = recorded()
    file = trace / "dedicated_log_torch_trace_x1.log"
    file.write_bytes(whole[:100_000])
    importing = Import(trace, tmp_path / "out")
    steps = iter(range(100))

    def is_over() -> bool:
        step = next(steps)
        if step == 2:
            assert fold(load(importing.folder)).last is not None
            trace_in(trace, line({"dynamo_start": {}, "frame_id": 0}, pid=77), "dedicated_log_torch_trace_child.log")
        with open(file, "ab") as grows:
            grows.write(whole[100_000 * (step + 1) : 100_000 * (step + 2)])
        return 100_000 * (step + 2) > len(whole)

    importing.follow(is_over)
    history = fold(load(importing.folder))
    assert history.last is not None and len(history.last.graphs) > 10 and history.last.ended
    assert list(history.processes) == ["process-77"] and not history.missing


KINDS = (
    *("dynamo_start", "dynamo_output_graph", "compilation_metrics", "artifact", "chromium_event", "create_symbol"),
    *("inductor_output_code", "dynamo_cpp_guards_str", "graph_dump", "str", "aot_forward_graph"),
)
ARTIFACTS = (
    *("recompile_reasons", "fx_graph_cache_miss", "dynamo_graph_break_reason", "torch_version", "dynamo_error"),
    *("inductor_provenance_tracking_node_mappings", "anything"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["stack", "name", "line"]), inner),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            VALUES | st.fixed_dictionaries({"name": st.sampled_from(ARTIFACTS)}),
            st.none() | st.text(max_size=30) | VALUES.map(json.dumps),
            st.none() | st.integers(0, 3),
        ),
        max_size=8,
    )
)
def test_whatever_records_hold_the_session_can_be_read(
    records: list[tuple[str, object, str | None, int | None]], tmp_path: Path
) -> None:
    folder = tmp_path / str(time.monotonic_ns()) / "trace"
    content = b"".join(
        line({kind: about, **({} if frame is None else {"frame_id": frame})}, payload)
        for kind, about, payload, frame in records
    )
    history = history_of(trace_in(folder, content))
    assert history.last is not None and history.last.ended is not None


NUMBERS = ("1e999", "NaN", "-1e999", "true", '"soon"', "1" + "0" * 400, "1e300", "-5", "[]")


@pytest.mark.parametrize("bad", NUMBERS)
def test_a_span_at_an_impossible_time_is_left_out_and_all_else_is_read(bad: str, tmp_path: Path) -> None:
    span = line({"chromium_event": {}}, f'{{"name": "dynamo", "ph": "B", "ts": {bad}}}')
    history = history_of(trace_in(tmp_path / "trace", span + recorded()))
    assert history.last is not None and len(history.last.graphs) > 10 and history.last.ended
    assert [text for text in missing(history) if text.startswith("1 record of ")] == missing(history) != []


@pytest.mark.parametrize("bad", [True, 10**30, 1.5, "x", float("nan"), None, []])
def test_a_value_that_no_field_can_hold_is_not_known_and_the_rest_is(bad: object, tmp_path: Path) -> None:
    names = ("graph_op_count", "guard_count", "cache_size", "co_firstlineno", "entire_frame_compile_time_s")
    metrics = {"co_name": "f", **dict.fromkeys(names, bad)}
    content = line({"compilation_metrics": metrics, "frame_id": 90, "frame_compile_id": 0})
    history = history_of(trace_in(tmp_path / "trace", recorded() + content))
    assert history.last is not None and len(history.last.graphs) > 10 and not missing(history)
    assert history.last.decided.last(FrameResult)["90/0"].ops is None


def test_an_event_that_cannot_be_read_again_is_left_out_alone(tmp_path: Path) -> None:
    node = f'        x: "f32[{"9" * 12}, {"9" * 12}]" = torch.f()\n'
    graph = f"class GraphModule(torch.nn.Module):\n    def forward(self):\n{node}"
    content = line({"dynamo_output_graph": {}, "frame_id": 90, "frame_compile_id": 0}, graph)
    history = history_of(trace_in(tmp_path / "trace", content + recorded()))
    assert history.last is not None and len(history.last.graphs) > 10 and history.last.ended
    assert missing(history) == ["1 fact of the trace left out: their values are beyond all bounds"]


def test_code_that_would_take_gigabytes_to_parse_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_ATOMS", 10_000)
    code = "async_compile = 1\n" + "a = 1\n" * 6_000
    graph = "class GraphModule(torch.nn.Module):\n    def forward(self):\n" + "        a = 1\n" * 6_000
    where: dict[str, object] = {"frame_id": 0, "frame_compile_id": 0}
    content = line({"inductor_output_code": {}, **where}, code) + line({"dynamo_output_graph": {}, **where}, graph)
    history = history_of(trace_in(tmp_path / "trace", content))
    assert history.last is not None and history.last.verdict == "compiled"  # not "nothing was compiled"
    assert sum("has more than 10,000 names, numbers and brackets" in text for text in history.missing) == 2


def test_quoted_text_and_comments_are_no_code_of_that_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_ATOMS", 50)
    assert not records.too_long("x = '''" + "a b c (d) " * 100 + "'''  # " + "e f " * 100)
    assert records.too_long("x = [" * 60)


def test_kernels_without_a_time_are_there(tmp_path: Path) -> None:
    event = {"event_type": "compilation", "payload": {"metadata": {"name": "k", "hash": "h"}, "python_source": {}}}
    for timestamp in (None, "2026-01-01T00:00:00Z", "no time", 5, "0001-01-01"):
        folder = tmp_path / str(timestamp)
        folder.mkdir()
        content = json.dumps(event if timestamp is None else {**event, "timestamp": timestamp}) + "\n"
        (folder / "x.ndjson").write_text(content * 2)
        history = history_of(folder)
        assert history.last is not None and history.last.verdict == "compiled" and not history.missing
        assert [kernel.name for kernel in history.last.kernels] == ["k", "k (2)"]


def test_a_trace_whose_lines_end_as_on_windows_has_all_records(tmp_path: Path) -> None:
    whole = recorded()
    history = history_of(trace_in(tmp_path / "trace", whole.replace(b"\n", b"\r\n")))
    plain = history_of(trace_in(tmp_path / "plain" / "trace", whole))
    assert history.last is not None and plain.last is not None and not history.missing
    assert history.last.graphs == plain.last.graphs and len(history.last.graphs) > 10


def test_a_trace_of_which_nothing_can_be_read_is_no_program_that_compiled_nothing(tmp_path: Path) -> None:
    damaged = line({"dynamo_output_graph": {}, "frame_id": 0}).replace(b": 0}", b": 0")
    history = history_of(trace_in(tmp_path / "trace", damaged * 3))
    assert history.last is not None and any("3 records of" in text for text in history.missing)
    assert verdict_words(history.last) == "no graph is in the trace"


def test_json_that_was_changed_is_read_as_it_is_and_said(tmp_path: Path) -> None:
    where: dict[str, object] = {"artifact": {"name": "recompile_reasons", "encoding": "json"}, "frame_id": 0}
    content = line(where, '["0/0: x"]').replace(b'["0/0: x"]', b'["0/0: y"]')
    start = line({"dynamo_start": {"stack": [{"line": 3, "name": "f", "filename": "m.py"}]}, "frame_id": 0})
    history = history_of(trace_in(tmp_path / "trace", content + start))
    assert history.last is not None and [each.reason for each in history.last.recompiles] == ["0/0: y"]
    assert any(text.startswith("1 record of") and "changed since torch wrote" in text for text in history.missing)
    torn = history_of(trace_in(tmp_path / "torn" / "trace", content.replace(b'y"]', b"") + start))
    assert torn.last is not None and not torn.last.recompiles


def test_an_artifact_that_is_no_compile_is_no_frame(tmp_path: Path) -> None:
    order = line({"artifact": {"name": "graph_execution"}}, '{"graph_execution_order": [{"compile_id": "0/0"}]}')
    alone = history_of(trace_in(tmp_path / "trace", recorded() + order)).last
    assert alone is not None and "aoti" not in alone.frames and "aoti" not in alone.backend


def ranks_of(folder: Path, *contents: bytes) -> RankComparison:
    for rank, content in enumerate(contents):
        trace_in(folder / "trace", content, f"dedicated_log_torch_trace_rank_{rank}.log")
    return ranks.of_session(session_of(folder / "trace"))


def test_ranks_differ_in_the_collectives_of_a_graph_and_in_the_order_of_calls(tmp_path: Path) -> None:
    def rank(schedule: list[str], order: list[str]) -> bytes:
        where: dict[str, object] = {"frame_id": 0, "frame_compile_id": 0}
        stack = {"stack": [{"line": 3, "name": "step", "filename": "train.py"}]}
        ops = json.dumps([f"torch.ops._c10d_functional.{op}.default" for op in schedule])
        calls = json.dumps({"graph_execution_order": [{"compile_id": each} for each in order]})
        content = line({"dynamo_start": stack, **where})
        content += line({"artifact": {"name": "inductor_collective_schedule"}, **where}, ops)
        return content + line({"artifact": {"name": "graph_execution"}}, calls)

    one = rank(["all_reduce", "wait_tensor"], ["0/0", "0/1"])
    for number, (other, words) in enumerate(
        (
            (rank(["all_gather", "wait_tensor"], ["0/0", "0/1"]), "collective number 1 of compiled graph 0/0 differs"),
            (rank(["all_reduce"], ["0/0", "0/1"]), "collective number 2 of compiled graph 0/0 differs"),
            (rank(["all_reduce", "wait_tensor"], ["0/1", "0/0"]), "number 1 of calls of compiled graphs differs"),
        )
    ):
        found = ranks_of(tmp_path / str(number), one, one, other)
        (difference,) = found.differences
        assert sentence(difference).startswith(words) and difference.sides[0].ranks == (2,)
        assert len(found.columns) == 2
    assert not ranks_of(tmp_path / "equal", one, one).differences
