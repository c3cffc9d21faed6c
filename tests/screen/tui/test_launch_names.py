"""Launches of one kernel are told apart in a comparison's list."""

from msgspec.structs import replace

from idbg.reports.diff import summary
from idbg.schema.diff import DiffReport, KernelError
from idbg.views.launches import kernels_sentence
from idbg_tui.panes.kernel_diff.launches import kernel_columns, kernel_row
from idbg_tui.panes.kernel_diff.rows import Shown, items
from idbg_tui.state import queries
from tests.harness.recorded import state_of


def report() -> DiffReport:
    compared = queries.compared_run(state_of("planted"))
    assert compared is not None and compared.diff is not None
    return compared.diff


def rows(found: DiffReport) -> list[str]:
    listed = items(found, Shown("as they come"))
    columns = kernel_columns(listed, 160)
    drawn = [kernel_row(one, columns, culprit=False) for one in listed if isinstance(one, KernelError)]
    return ["".join(part for part, _ in row) for row in drawn]


def test_a_name_that_repeats_is_shown_with_its_launch() -> None:
    shown = [row.split()[0] if row[1] == " " else row.split()[1] for row in rows(report())]
    assert [name for name in shown if "extern" in name] == [f"extern_kernels.mm:{number}" for number in (1, 3, 5)]
    assert len(set(shown)) == len(shown) and not any(":" in name for name in shown if "cpp_fused" in name)


def test_a_bad_launch_of_a_name_that_repeats_is_named_with_its_launch() -> None:
    kernels = tuple(replace(one, bad=place == 2) for place, one in enumerate(report().kernels))
    found = replace(report(), kernels=kernels, first_bad_kernel=2)
    assert kernels_sentence(found).endswith("the first bad one is extern_kernels.mm:3")
    assert "the first bad kernel: extern_kernels.mm:3" in summary(found)
