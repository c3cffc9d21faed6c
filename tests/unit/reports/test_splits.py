"""How much a backend leaves to eager, and why, is one section for all outputs."""

from msgspec.structs import replace

from idbg.render.text import lines
from idbg.schema import events
from idbg.schema.decisions.backends import GraphSplit, NativeCall, SplitCalls
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, Run, fold
from idbg.views import findings, splits
from idbg.views.tree import Section

SPLIT = GraphSplit(
    number=0,
    backend="openvino",
    compiled=(("t", "addmm", "relu"), ("t_1", "addmm_1")),
    native=(NativeCall("j0", "aten.special_bessel_j0.default", "unsupported", file="/x/net.py", line=9),),
)


def run_of(*splits_: GraphSplit, calls: SplitCalls | None = None) -> Run:
    started = events.RunStarted(run=1, program=Program("net.py"), target=Target("openvino"))
    split = [events.DecisionsRecorded(run=1, frame="0/0", decisions=(each,)) for each in splits_]
    called = [events.DecisionsRecorded(run=1, frame="0/0", decisions=(calls,))] if calls else []
    return fold([started, *split, *called]).runs[1]


def test_nothing_is_claimed_of_a_run_whose_backend_split_nothing() -> None:
    section = splits.view(run_of())
    assert (section.count, section.verdict, section.body) == (0, "ok", ()) and "no backend reported" in section.summary
    assert splits.in_short(run_of()) == "" and splits.native(run_of()) is None


def test_the_share_of_time_is_said_only_where_it_was_measured() -> None:
    assert splits.in_short(run_of(SPLIT)) == "1 of 6 nodes in eager"
    once = run_of(SPLIT, calls=SplitCalls(number=0, calls=0))
    assert splits.in_short(once) == "1 of 6 nodes in eager"
    assert any("is not known, as that call compiles" in line for line in lines(splits.view(once)))
    timed = run_of(SPLIT, calls=SplitCalls(number=0, calls=9, seconds=2.0, native_seconds=0.5))
    assert splits.in_short(timed) == "1 of 6 nodes in eager (25 % of the time)"
    other = run_of(
        SPLIT, replace(SPLIT, number=1), calls=SplitCalls(number=0, calls=9, seconds=2.0, native_seconds=0.5)
    )
    assert splits.in_short(other) == "2 of 12 nodes in eager"
    elsewhere = run_of(SPLIT, calls=SplitCalls(number=0, calls=9))
    assert any("not known on this device" in line for line in lines(splits.view(elsewhere)))


def test_a_partition_that_failed_at_its_call_is_eagers() -> None:
    run = run_of(SPLIT, calls=SplitCalls(number=0, calls=1, failed=((1, "no kernel"),)))
    assert splits.count(run) == 3
    text = "\n".join(lines(splits.view(run)))
    assert "openvino compiles 3 of 6 nodes in 1 partition" in text and "partition 2, not run" in text
    assert "2 nodes in eager: what openvino compiled of it was not run: no kernel" in text
    assert "openvino does not support the op" in text and "net.py:9" in text


def test_a_backend_that_takes_all_is_no_finding() -> None:
    run = run_of(replace(SPLIT, native=()))
    section = splits.view(run)
    assert (section.count, section.verdict) == (0, "ok") and "openvino: all of 5 nodes" in section.summary


def test_what_eager_runs_is_a_finding() -> None:
    run = run_of(SPLIT, replace(SPLIT, number=1, native=()))
    history = History(runs={1: run})
    kinds = findings.kinds_of(history, run, Section("Violations", ""))
    assert [(kind.name, kind.section.count) for kind in kinds] == [("splits", 1)]
    (text,) = ["\n".join(lines(kind.section)) for kind in kinds]
    assert "1 node in eager" in text and text.count("openvino compiles") == 1
    assert findings.kinds_of(history, run_of(replace(SPLIT, native=())), Section("Violations", "")) == []
