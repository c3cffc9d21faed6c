"""Latency, memory and sizes are those of the program that was asked for."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor, nn

from idbg.engine.bench import latency as latencies
from idbg.engine.bench import measure, resources, workload
from idbg.engine.bench.latency import latency, settle
from idbg.engine.bench.workload import Call
from idbg.engine.program.load import Workload
from idbg.schema.bench import BenchBackend, BenchCase, Failed, Measured
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target

TICK = 1e-6  # seconds that pass at each look at the clock


class Clock:
    """A clock in place of the machine's, so that a busy machine changes no result."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += TICK
        return self.now

    def taking(self, seconds: float) -> Call:
        def call() -> None:
            self.now += seconds

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(latencies, "time", clock)
    return clock


def test_a_latency_is_the_time_of_the_call(clock: Clock) -> None:
    found = latency(clock.taking(0.01), 12)
    assert len(found.samples) == 12 and found.block == 1
    assert found.median == pytest.approx(10, abs=0.01) and found.median <= found.p95


def test_what_is_too_short_for_the_timer_is_timed_in_blocks(clock: Clock) -> None:
    found = latency(clock.taking(1e-6), 20)
    assert found.block > 1 and found.median == pytest.approx(1e-3, rel=0.05)
    assert found.median * found.block >= 10 * 1e3 * TICK


def test_the_warm_up_ends_when_the_times_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([max(0.03 - 0.002 * number, 0.01) for number in range(1, 100)])
    monkeypatch.setattr("idbg.engine.bench.latency.seconds", lambda call: next(told))  # no busy machine has a say
    times, settled = settle(lambda: None)
    assert settled and len(times) >= 15 and max(times[-5:]) < 0.02
    told = iter([0.01] * 3)
    times, settled = settle(lambda: None, most=0.015)
    assert not settled and len(times) == 2


def test_the_peak_is_of_what_was_allocated_on_the_way() -> None:
    before = resources.resident()

    def call() -> int:
        return int(torch.ones(64 << 20, dtype=torch.uint8).max())

    found = resources.peak_bytes(call, before)
    if found is None:
        pytest.skip("this system does not tell of peaks")
    assert 60 <= found / 2**20 <= 200


def test_others_are_not_we(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 10 s of 2 processors all used 9 s, of which 4 s were ours: a quarter was others'."""
    moments = {"_machine_seconds": iter([100.0, 109.0]), "_own_seconds": iter([50.0, 54.0])}
    for name, values in moments.items():
        monkeypatch.setattr(resources, name, lambda values=values: next(values))
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(resources.time, "perf_counter", lambda: next(clock))  # type: ignore[attr-defined]
    monkeypatch.setattr(resources.os, "cpu_count", lambda: 2)  # type: ignore[attr-defined]
    assert resources.OtherProcesses().share() == pytest.approx(0.25)


def model() -> Workload:
    return Workload(nn.Linear(4, 2), (torch.ones(3, 4), torch.arange(3)), {"scale": torch.ones(2)})


def test_a_batch_is_repeated_or_cut_where_it_is_as_long_as_the_first_input() -> None:
    more = workload.in_batches_of(model(), 5)
    x, ids = more.args
    assert isinstance(x, Tensor) and isinstance(ids, Tensor)
    assert x.shape == (5, 4)  # type: ignore[attr-defined]
    assert ids.tolist() == [0, 1, 2, 0, 1] and more.kwargs["scale"].shape == (2,)  # type: ignore[attr-defined]
    assert workload.batch_of(more) == 5
    assert workload.batch_of(workload.in_batches_of(model(), 2)) == 2
    with pytest.raises(BadInput, match="no input of the program has a batch"):
        workload.in_batches_of(Workload(abs, (3,)), 2)


def test_weights_and_floating_inputs_are_cast() -> None:
    found = workload.in_dtype(model(), "bf16")
    x, ids = found.args
    assert isinstance(x, Tensor) and isinstance(ids, Tensor) and isinstance(found.model, nn.Linear)
    assert found.model.weight.dtype == x.dtype == torch.bfloat16 and ids.dtype == torch.int64
    with pytest.raises(BadInput, match="there is no dtype 'bf17'"):
        workload.in_dtype(model(), "bf17")
    with pytest.raises(BadInput, match="a function"):
        workload.in_dtype(Workload(torch.relu, (torch.ones(2),)), "bf16")


def test_the_modes_options_then_those_asked_for_reach_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}

    def compile(model: object, **settings: object) -> object:
        given.update(settings)
        return model

    monkeypatch.setattr(torch, "compile", compile)
    asked = BenchCase(
        program=Program("m.py"),
        backend=BenchBackend("inductor", "max-autotune-no-cudagraphs"),
        options={"coordinate_descent_tuning": False, "epilogue_fusion": False},
        dynamic=True,
    )
    measure._compiled(torch.relu, asked)
    assert given["dynamic"] is True
    options = given["options"]
    assert isinstance(options, dict)
    assert options["max_autotune"] is True and options["coordinate_descent_tuning"] is False
    assert options["epilogue_fusion"] is False


def test_a_row_is_measured_under_the_targets_conditions(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import torch\ndef program():\n    return torch.nn.Linear(2, 2), (torch.ones(1, 2),)\n"
    )
    program = Program(str(tmp_path / "m.py"), cwd=str(tmp_path))
    target = Target("eager", stance="force_eager", settings={"dynamo.recompile_limit": 3}, mode="default", dynamic=True)
    case = BenchCase.of(program, target)
    assert (case.backend, case.stance, case.dynamic) == (BenchBackend("eager"), "force_eager", True)
    assert isinstance(measure.answer(case, "cold"), Measured)
    refused = measure.answer(BenchCase.of(program, replace(target, settings={"dynamo.nope": 3})), "cold")
    assert isinstance(refused, Failed)
    assert "no setting 'dynamo.nope'" in refused.failure.message
