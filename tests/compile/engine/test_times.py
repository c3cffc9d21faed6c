"""Where the time of a compile goes: told while it lasts, nested as it happened, cold, warm, failed and cancelled."""

import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._inductor.fx_passes import post_grad

from idbg.accelerators import registry
from idbg.analysis.decisions import times
from idbg.engine.decisions import times as heard_times
from idbg.schema import events
from idbg.schema.decisions.inductor import Span
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from idbg.traces import spans as nested
from idbg.views.time import explained
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile
from tests.harness.decided import of_kind

Compiled = Callable[..., tuple[Run, list[events.SessionEvent]]]


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    """The run of a program's text in this process, and all that was told of it."""

    def compiled(
        text: str,
        backend: str = "inductor",
        device: str = "",
        seen: Callable[[events.SessionEvent], None] = lambda event: None,
    ) -> tuple[Run, list[events.SessionEvent]]:
        def emit(event: events.SessionEvent) -> None:
            told.append(event)
            seen(event)

        path = tmp_path / "subject.py"
        path.write_text(text)
        program = Program(str(path), cwd=str(tmp_path))
        target = Target(backend=backend, rules=registry.find("mock")[0], device=device)
        told: list[events.SessionEvent] = [events.RunStarted(run=1, program=program, target=target)]
        torch._dynamo.reset()
        told.append(Jobs(emit).compile(Compile(1, program, target, str(tmp_path / "repros"))))
        return fold(told).runs[1], told

    return compiled


def small(before: str = "") -> str:
    """A program that no cache knows, and whose C++ is quickly built."""
    number = random.SystemRandom().random()  # also where another test has seeded the others
    return f"import torch\n{before}\ntorch.compile(lambda x: (x * {number}).sin().sum())(torch.ones(300, 300))\n"


def spans(run: Run) -> list[Span]:
    return list(run.decided.last(Span).values())


def until(span: Span) -> float:
    assert span.seconds is not None
    return span.began + span.seconds


def batches(told: list[events.SessionEvent]) -> list[events.DecisionsRecorded]:
    return [event for event in told if isinstance(event, events.DecisionsRecorded) and event.of(Span)]


RESETTING = """\
import torch
for _ in range({times}):
    torch._dynamo.reset()
    torch.compile(lambda x: x.sin())(torch.ones(2))
"""
SLOW_PASS = """
import shown
def slow(graph):
    shown.wait(60)
torch._inductor.config.post_grad_custom_pre_pass = slow
"""


@pytest.fixture
def of_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock counts what this process and the compilers that it starts compute, and not when others ran."""
    subprocess.run(["true"], check=True)  # what processes of earlier tests computed is counted when they are waited for
    now = time.time()

    def computed() -> float:
        usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return now + sum(each.ru_utime + each.ru_stime for each in usages)

    monkeypatch.setattr(time, "time", computed)
    monkeypatch.setattr(time, "time_ns", lambda: int(computed() * 1e9))


@pytest.mark.usefixtures("of_processors", "compiles_anew")
def test_a_cold_and_a_warm_compile_are_told_from_each_other_and_explained(compiled: Compiled):
    text = small()
    cold, _ = compiled(text)
    warm, told = compiled(text)
    assert (times.heat(cold), times.heat(warm)) == ("cold", "warm")
    kernels = {kernel.name for kernel in cold.kernels}
    assert kernels and {each.span.what for each in times.builds(times.tree(cold))} == kernels
    assert times.builds(times.tree(warm)) == []
    names = {span.name for span in spans(cold)}
    assert names >= {"run", "frame compile", "dynamo", "aot autograd", "lowering", "scheduling", "codegen", "guards"}
    for run in (cold, warm):
        assert all(span.seconds is not None for span in spans(run))
        assert {span.frame for span in spans(run) if span.name == "dynamo"} == {"0/0"}
    assert (explained(times.spent(times.tree(cold))) or 0) > 0.9  # measured: 0.94 to 0.99
    assert len(batches(told)) < 25


def test_phases_are_the_same_fact(compiled: Compiled):
    run, _ = compiled(small())
    for phase in ("dynamo", "lowering", "codegen", "kernel build"):
        assert run.phases[phase] == pytest.approx(
            sum(until(span) - span.began for span in spans(run) if span.name == phase)
        )


def test_each_span_lies_in_its_parent(compiled: Compiled):
    run, _ = compiled(small())
    by_id = run.decided.last(Span)
    pairs = [(span, by_id[span.parent]) for span in spans(run) if span.parent and span.times == 1]
    assert len(pairs) > 20
    assert [span.name for span, around in pairs if span.began < around.began - 1e-6] == []
    inside = [(span, around) for span, around in pairs if span.thread == around.thread]
    assert [span.name for span, around in inside if until(span) > until(around) + 1e-6] == []


def test_what_goes_on_is_told_before_it_is_over_and_not_too_often(compiled: Compiled, monkeypatch: pytest.MonkeyPatch):
    shown, name = threading.Event(), "post_grad_custom_pre_pass"
    monkeypatch.setitem(sys.modules, "shown", shown)  # the pass runs until its span was emitted

    def seen(event: events.SessionEvent) -> None:
        if any(each.what.endswith(name) for each in of_kind([event], Span)):
            shown.set()

    run, told = compiled(small(SLOW_PASS), seen=seen)
    (slow,) = (span for span in spans(run) if span.what.endswith(name))
    assert slow.seconds is not None and slow.nodes is not None
    opened = next(batch for batch in batches(told) if any(each.id == slow.id for each in batch.of(Span)))
    assert next(each for each in opened.of(Span) if each.id == slow.id).seconds is None
    assert heard_times.TICK * 1.5 < 0.2  # it is emitted once it has run for half a tick
    gaps = [after.at - before.at for before, after in zip(batches(told), batches(told)[1:-1], strict=False)]
    assert min(gaps) > 0.1


def test_a_pass_says_how_many_nodes_it_was_given_and_left(compiled: Compiled, monkeypatch: pytest.MonkeyPatch):
    adds = (
        "import time\ndef adds(graph):\n    node = next(node for node in graph.nodes if node.op == 'call_function')\n"
        "    with graph.inserting_after(node):\n        graph.call_function(torch.ops.aten.neg.default, (node,))\n"
        "    time.sleep(0.005)\n"
        "torch._inductor.config.post_grad_custom_pre_pass = adds\n"
        "from torch._inductor.fx_passes import post_grad as torchs\n"
        "def group_batch_fusion_passes(*args, fuses=torchs.group_batch_fusion_passes, **kwargs):\n"
        "    time.sleep(0.005)\n    return fuses(*args, **kwargs)\n"
        "group_batch_fusion_passes.__module__ = torchs.group_batch_fusion_passes.__module__\n"
        "torchs.group_batch_fusion_passes = group_batch_fusion_passes\n"
    )
    name = "group_batch_fusion_passes"
    monkeypatch.setattr(post_grad, name, vars(post_grad)[name])  # so that it is put back
    run, _ = compiled(small(adds))
    (own,) = [span.nodes for span in spans(run) if span.what.endswith("post_grad_custom_pre_pass")]
    assert own is not None and own[1] == own[0] + 1
    # torch times this one, which follows it, by the name of the program's pass; both are long enough to be told here
    (torchs,) = [span.nodes for span in spans(run) if span.what == "post-grad: group_batch_fusion_passes"]
    assert torchs is not None and torchs[0] >= own[1]


def test_a_compile_that_fails_leaves_nothing_open(compiled: Compiled):
    fails = "def fails(graph):\n    raise ValueError('no')\ntorch._inductor.config.post_grad_custom_pre_pass = fails"
    run, _ = compiled(small(fails))
    assert run.verdict == "failed"
    assert [span.name for span in spans(run) if span.seconds is None] == []
    assert "post-grad passes" in {span.name for span in spans(run)} and times.heat(run) == ""


def test_a_compile_that_is_cancelled_leaves_nothing_open(compiled: Compiled):
    cancels = "import signal\ndef c(graph):\n    signal.raise_signal(signal.SIGINT)\n"
    cancels += "torch._inductor.config.post_grad_custom_pre_pass = c"
    run, told = compiled(small(cancels))
    assert run.failure is not None and run.failure.kind == "cancelled"
    assert [span.name for span in spans(run) if span.seconds is None] == []
    assert not [event for event in told if isinstance(event, events.Noted) and event.level != "info"]


def test_a_worker_that_is_killed_leaves_open_spans_that_end_with_the_run():
    run = Run(1, Program("p.py"), Target(), 100.0)
    run.apply(events.DecisionsRecorded(run=1, decisions=(Span(id=1, name="codegen", began=101.0),)))
    run.apply(events.RunEnded(run=1, verdict="failed", seconds=5.0))
    (timing,) = times.tree(run)
    assert timing.lasts and timing.seconds == 4.0


def test_recompiles_have_frames_of_their_own(compiled: Compiled):
    text = "import torch\nf = torch.compile(lambda x: x.sin(), dynamic=False)\nf(torch.ones(2))\nf(torch.ones(3))\n"
    run, _ = compiled(text, backend="eager")
    assert {span.frame for span in spans(run) if span.name == "dynamo"} == {"0/0", "0/1"}
    seconds, compiles = times.again(times.tree(run))
    assert compiles == 1 and seconds > 0


def test_a_frame_after_a_reset_has_its_own_name(compiled: Compiled):
    text = RESETTING.format(times=2)
    run, _ = compiled(text, backend="eager")
    assert {span.frame for span in spans(run) if span.name == "dynamo"} == set(run.frames) == {"0/0", "0/0#2"}


def test_a_listener_of_ours_that_fails_is_said_once_and_breaks_nothing(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> None:
        raise ValueError("ours")

    monkeypatch.setattr(heard_times.Timekeeper, "_begin", fails)
    run, told = compiled(small())
    assert run.verdict == "compiled" and run.kernels
    notes = [event.text for event in told if isinstance(event, events.Noted)]
    assert len([note for note in notes if "times of the compile" in note]) == 1


def test_torchs_functions_are_put_back(compiled: Compiled):
    from torch._inductor import codecache
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.cpu_vec_isa import VecISA

    def now() -> list[object]:
        names = ("cpp", "cpp_pybinding", "triton", "submit")
        return [*map(vars(AsyncCompile).get, names), codecache._precompile_header, vars(VecISA)["check_build"]]

    before = now()
    compiled(small())
    assert now() == before


def test_beyond_the_limit_only_what_is_outermost_is_counted(compiled: Compiled, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(nested, "LIMIT", 12)
    monkeypatch.setattr(nested, "SHORT", 0.0)
    text = RESETTING.format(times=8)
    run, _ = compiled(text, backend="eager")
    (counted,) = (span for span in spans(run) if span.times > 1)
    assert counted.name in ("frame", "frame compile") and counted.times >= 5
    assert len(spans(run)) < 20


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_the_build_of_each_triton_kernel_is_told(compiled: Compiled):
    number = random.SystemRandom().random()  # also where another test has seeded the others
    call = f"torch.compile(lambda x: (x * {number}).sin().sum(-1).cos())(torch.ones(3000, 300, device='cuda'))"
    run, _ = compiled(f"import torch\n{call}\n")
    kernels = {kernel.name for kernel in run.kernels if kernel.language == "triton"}
    built = times.builds(times.tree(run))
    assert kernels and {each.span.what for each in built} >= kernels
    assert all(each.seconds > 0 and not each.lasts for each in built)
    assert times.spent(times.tree(run))[0].use in ("triton", "caches", "aot", "passes")
