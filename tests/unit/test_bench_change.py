"""A change is told where the samples say so, and not where two runs of the same differ."""

import pytest

from idbg.analysis.significance import mann_whitney
from idbg.bench.suite import change
from idbg.schema.bench import Machine, Row, SpeedChange
from tests.harness.bench_rows import row


def found(now: Row, before: Row) -> SpeedChange:
    changed = change(now, before)
    assert changed is not None
    return changed


def test_the_p_of_the_u_test_is_that_of_the_tables() -> None:
    """Against scipy.stats.mannwhitneyu(method="asymptotic", use_continuity=True) of scipy 1.17.1."""
    one, other = (1.1, 2.2, 3.3, 4.4, 5.5), (2.0, 4.0, 6.0, 8.0, 10.0, 12.0)
    assert mann_whitney(one, other) == pytest.approx(0.12069080052744556, rel=1e-9)
    assert mann_whitney((1, 1, 2, 2, 3), (2, 3, 3, 4, 4)) == pytest.approx(0.05241162867102868, rel=1e-9)
    assert mann_whitney((1.0, 1.0), (1.0, 1.0)) == 1.0


def test_faster_and_slower_are_told() -> None:
    assert found(row(0.8), row(1.0, seed=1)).direction == "faster"
    assert found(row(1.3), row(1.0, seed=1)).direction == "slower"
    assert found(row(1.3), row(1.0, seed=1)).ratio == pytest.approx(1.3, rel=0.02)


def test_a_difference_smaller_than_two_processes_have_is_none() -> None:
    changed = found(row(1.03, spread=0.001), row(1.0, spread=0.001, seed=1))
    assert changed.p < 1e-6 and changed.direction == "same"


def test_noise_hides_what_it_is_wider_than() -> None:
    assert found(row(1.1, spread=0.3), row(1.0, spread=0.3, seed=1)).direction == "same"


def test_few_samples_prove_nothing() -> None:
    assert found(row(2.0, n=3), row(1.0, n=3, seed=1)).direction == "same"


def test_what_else_changed_is_told() -> None:
    now = row(1.0, program_hash="b", machine=Machine(torch="2.15.0", threads=2))
    before = row(1.0, program_hash="a", machine=Machine(torch="2.11.0", threads=2))
    assert found(now, before).what == ("the program", "torch 2.11.0 → 2.15.0")


def test_a_row_without_a_latency_has_no_change() -> None:
    assert change(Row(program="a.py", backend="eager", status="failed"), row(1.0)) is None
