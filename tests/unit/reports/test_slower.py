"""What is slower is said to be slower only by rows that can be trusted; what cannot be said is said."""

import pytest
from msgspec.structs import replace

from idbg.bench.suite import change
from idbg.schema.bench import Machine, Row
from idbg.views.regressions import lines, verdict
from tests.harness.bench_rows import row


def judged(now: Row, before: Row | None) -> tuple[int, int, int]:
    found = change(now, before) if before is not None else None
    told = verdict([now], [found] if found else [])
    assert len(list(lines(told))) == sum(map(len, told))
    return len(told.slower), len(told.undecided), len(told.new)


def test_slower_beyond_the_noise_is_slower_and_the_rest_is_not() -> None:
    before = row(1.0, seed=1)
    assert judged(row(1.3), before) == (1, 0, 0)
    assert judged(row(1.01), before) == (0, 0, 0)
    assert judged(row(0.7), before) == (0, 0, 0)


@pytest.mark.parametrize("at", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("who", ["now", "before"])
def test_a_noisy_row_or_a_busy_machine_proves_nothing_either_way(at: float, who: str) -> None:
    busy = ("other processes used 40 % of the processors",)
    now, before = row(at), row(1.0, seed=1)
    now, before = (replace(now, caveats=busy), before) if who == "now" else (now, replace(before, caveats=busy))
    assert judged(now, before) == (0, 1, 0)


def test_what_noise_may_explain_is_not_passed_in_silence() -> None:
    assert judged(row(1.25, spread=0.3), row(1.0, spread=0.3, seed=1)) == (0, 1, 0)
    assert judged(row(2.0, n=3), row(1.0, n=3, seed=1)) == (0, 1, 0)


def test_another_device_is_no_proof_and_another_host_of_its_kind_is() -> None:
    before = row(1.0, seed=1, machine=Machine(host="a", device="Xeon", threads=2))
    assert judged(row(1.3, machine=Machine(host="a", device="EPYC", threads=2)), before) == (0, 1, 0)
    assert judged(row(1.3, machine=Machine(host="a", device="Xeon", threads=4)), before) == (0, 1, 0)
    assert judged(row(1.3, machine=Machine(host="b", device="Xeon", threads=2)), before) == (1, 0, 0)


def test_a_row_without_a_past_is_told_and_one_that_failed_is_told_elsewhere() -> None:
    assert judged(row(1.0), None) == (0, 0, 1)
    assert judged(Row(program="a.py", backend="eager", status="failed"), None) == (0, 0, 0)
