"""Launches of one kernel have different names in a comparison's list."""

from msgspec.structs import replace

from idbg.reports.diff import summary
from idbg.views.launches import kernels_sentence
from tests.harness.compared import report, rows


def test_a_name_that_repeats_is_shown_with_its_launch() -> None:
    listed = [row for row in rows(report()) if isinstance(row.key, tuple) and row.key[0] == "launch"]
    shown = ["".join(text for text, _ in row.draw(160)).split()[1] for row in listed]
    assert [name for name in shown if "extern" in name] == [f"extern_kernels.mm:{number}" for number in (1, 3, 5)]
    assert len(set(shown)) == len(shown) and not any(":" in name for name in shown if "cpp_fused" in name)


def test_a_bad_launch_of_a_name_that_repeats_is_named_with_its_launch() -> None:
    kernels = tuple(replace(one, bad=place == 2) for place, one in enumerate(report().kernels))
    found = replace(report(), kernels=kernels, first_bad_kernel=2)
    assert kernels_sentence(found).endswith("the first bad one is extern_kernels.mm:3")
    assert "the first bad kernel: extern_kernels.mm:3" in summary(found)
