"""Whatever is done to a real file, reading it ends with what is intact or with a sentence: no traceback, no folder that
cannot be removed, no memory beyond 1 GB.
"""

import traceback
from pathlib import Path

import pytest

from idbg.config import places
from tests.harness.mutations import MOST_BYTES, Mutation, clear, read_all

QUICK = 100
AT_ONCE = 100  # mutations of a test
ALL = 2_000


def peak_and_now() -> tuple[int, int]:
    """The most memory of this process since `forget_peak`, and what it has now, in bytes."""
    status = Path("/proc/self/status").read_text()
    peak, now = (int(status.split(f"{name}:")[1].split()[0]) << 10 for name in ("VmHWM", "VmRSS"))
    return peak, now


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def hold(seeds: range, folder: Path) -> None:
    """Read the files of these seeds; all that fail are reported, each with what was done to it."""
    failed = []
    for seed in seeds:
        mutation, place = Mutation(seed), folder / str(seed)
        place.mkdir()
        forget_peak()
        before = peak_and_now()[1]
        try:
            read_all(*mutation.place(place), place / "out")
        except Exception:  # any: what a command would print as a bug of idbg
            failed.append(f"{mutation}\n{''.join(traceback.format_exc(limit=-6))}")
        if (took := peak_and_now()[0] - before) > MOST_BYTES:
            failed.append(f"{mutation}\ntook {took >> 20:,} MiB")
        clear(place)
    assert not failed, f"{len(failed)} of {len(seeds)}\n\n" + "\n\n".join(failed[:20])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    hold(range(QUICK), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, ALL, AT_ONCE))
def test_many_more_mutated_files_are_read_or_refused(first: int, tmp_path: Path) -> None:
    hold(range(first, min(first + AT_ONCE, ALL)), tmp_path)
