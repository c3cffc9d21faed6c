"""The times of kernels as a person reads them, and as JSON; and what bounds a kernel."""

import json

import pytest
from msgspec.structs import replace

from idbg.format.kernels import bound_words
from idbg.render.text import text as as_text
from idbg.schema import strict_json
from idbg.schema.kernel_times import KernelTime, KernelTimes, Peaks
from idbg.views import kernel_times
from idbg.views.tree import Table

PEAKS = Peaks(
    device="a machine",
    torch="2.15.0",
    threads=2,
    copy_bytes_per_s=2e10,
    matmul_flops_per_s={"float32": 1e11},
    launch_us={"cpp": 0.2, "extern": 1.5},
)


def kernel(name: str, *samples_us: float, **more: object) -> KernelTime:
    given = {
        "frame": "0/0",
        "part": "forward",
        "kind": "cpp",
        "handle": f"{name}:1",
        "dtype": "float32",
        "share": 0.25,
        "peak_bytes_per_s": 2e10,
        "peak_flops_per_s": 1e11,
        "empty_us": 0.2,
    }
    return KernelTime(name=name, samples_us=samples_us, **(given | more))  # type: ignore[arg-type]


PRODUCT = kernel("extern_kernels.mm", 100, 120, 110, kind="extern", bytes=200_000, flops=6_600_000, empty_us=1.5)
SINE = kernel("cpp_fused_sin_0", 20, 20, 20, bytes=300_000, launches=2)
SMALL = kernel("cpp_fused_add_1", 0.4, 0.5, 0.3, bytes=64)
TIMES = KernelTimes(
    kernels=(SMALL, SINE, PRODUCT), samples_us=(200, 210, 190), hooked_samples_us=(202, 203, 204), peaks=PEAKS
)


def report(times: KernelTimes, name: str = "", width: int | None = None) -> str:
    return as_text(kernel_times.view(times, name), None, width)


def rows(text: str) -> dict[str, list[str]]:
    """The table's lines by kernel, cut where two spaces stand."""
    lines = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) == 10}


def test_the_longest_kernel_stands_first_with_its_speed_beside_the_machines():
    table = rows(report(TIMES))
    assert list(table) == ["kernel", "extern_kernels.mm:1", "cpp_fused_sin_0:1", "cpp_fused_add_1:1"]
    assert table["extern_kernels.mm:1"] == [
        "110 µs",
        "110 µs",
        "25.0 %",
        "1",
        "1.818",
        "9.1 %",
        "60",
        "60.0 %",
        "compute-bound",
    ]
    assert table["cpp_fused_sin_0:1"] == ["20 µs", "40 µs", "25.0 %", "2", "15", "75.0 %", "-", "-", "memory-bound"]
    assert table["cpp_fused_add_1:1"][-1] == "launch-bound"


def test_launches_of_one_kernel_are_summed_in_one_row_above_them() -> None:
    again = replace(PRODUCT, handle="extern_kernels.mm:7", samples_us=(50, 40, 60), share=0.125, flops=3_000_000)
    small = replace(SINE, samples_us=(60, 60, 60))  # longer than either product, shorter than both
    (table,) = (
        block
        for block in kernel_times.view(replace(TIMES, kernels=(small, again, PRODUCT))).body
        if isinstance(block, Table)
    )
    product, sine = table.rows
    cells = dict(zip([column.head for column in table.columns], product.cells, strict=True))
    assert product.text == "extern_kernels.mm  2 places" and not sine.folds
    assert (cells["sum"].value, cells["share"].value, cells["launches"].value) == (pytest.approx(160e-6), 0.375, 2)
    assert cells["median"].value is None and cells["bound"].value == "compute-bound"
    assert [row.key[-1] for row in product.below] == ["extern_kernels.mm:1", "extern_kernels.mm:7"]


def test_the_first_lines_have_the_sum_what_it_misses_and_what_timing_changed():
    text = report(TIMES, "net.py")
    assert text.startswith("3 kernels of net.py: 150 µs of a forward's 200 µs, 3 runs\n")
    assert "the rest, 49.7 µs (25 %), is Python" in text
    assert "while its kernels are timed a call takes 203 µs (+1.5 %)" in text
    peaks = "copy 20 GB/s, float32 matmul 100 GFLOP/s, empty cpp launch 0.2 µs"
    assert f"a machine, 2 threads, torch 2.15.0; peaks: {peaks}" in text


def test_what_was_not_measured_is_not_a_number():
    bare = kernel("cpp_fused_sort_0", 5, peak_bytes_per_s=None, peak_flops_per_s=None, empty_us=None)
    machine = Peaks(device="a machine", torch="2.15.0")
    times = KernelTimes(kernels=(bare,), samples_us=(10,), hooked_samples_us=(10,), peaks=machine, untimed=("mm:7",))
    text = report(replace(times, problem="a wrapper could not be read"))
    assert rows(text)["cpp_fused_sort_0:1"][4:] == ["-", "-", "-", "-", "not known"]
    assert "peaks: not measured" in text
    assert "not launched, and not timed: mm:7" in text
    assert "⚠ some kernels are missing: a wrapper could not be read" in text


def test_a_sum_above_the_whole_is_told_as_it_is():
    assert "their sum is 50 µs more than a call" in report(replace(TIMES, samples_us=(100, 100.3, 110)))


def test_peaks_of_a_busy_machine_are_marked():
    busy = replace(TIMES, peaks=replace(PEAKS, others=0.4))
    assert "⚠ other processes used 40 % of the processors while the peaks were measured" in report(busy)
    assert "⚠" not in report(replace(TIMES, peaks=replace(PEAKS, others=0.02)))


def test_a_long_name_keeps_its_beginning_and_its_handle():
    long = kernel("cpp_fused_" + "native_layer_norm_" * 9 + "0", 5, handle="cpp_fused_" + "x" * 90 + "_0:17")
    table = rows(report(replace(TIMES, kernels=(long,)), width=120))
    (name,) = (name for name in table if name != "kernel")
    assert len(name) < 60 and name.startswith("cpp_fused_") and name.endswith("_0:17")


def test_json_has_the_figures_and_their_samples():
    found = json.loads(strict_json.formatted(kernel_times.as_json(TIMES)))
    assert found["schema"] == "idbg.kernels/1"
    assert (found["runs"], found["total_us"], found["hooked_total_us"]) == (3, 200, 203)
    assert found["sum_us"] + found["missed_us"] == pytest.approx(200)
    assert found["perturbation"] == pytest.approx(0.015)
    small, sine, product = found["kernels"]
    assert product["samples_us"] == [100, 120, 110] and product["median_us"] == 110
    assert product["flops_per_s"] == pytest.approx(6e10) and product["bound"] == "compute"
    assert sine["flops"] is None and sine["flops_per_s"] is None
    assert small["handle"] == "cpp_fused_add_1:1" and small["words"].startswith("launch-bound")
    assert found["peaks"]["matmul_flops_per_s"] == {"float32": 1e11}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (PRODUCT, "compute-bound: 60 % of a matmul's FLOP/s"),
        (replace(PRODUCT, bytes=2_000_000), "memory-bound: 91 % of a copy's bandwidth"),
        (SINE, "memory-bound: 75 % of a copy's bandwidth"),
        (replace(SINE, bytes=900_000), "memory-bound: 225 % of a copy's bandwidth, from a cache or not all read"),
        (replace(SINE, bytes=3_000), "not known: 0.75 % of a copy's bandwidth, and its arithmetic is not counted"),
        (replace(SINE, bytes=None), "not known"),
        (
            replace(PRODUCT, bytes=20_000, flops=60_000),
            "not known: far below both peaks, 0.91 % of a copy's bandwidth, 0.55 % of a matmul's FLOP/s",
        ),
        (SMALL, "launch-bound: 2.0 x an empty launch"),
        (replace(SMALL, empty_us=None, bytes=8_000), "memory-bound: 100 % of a copy's bandwidth"),
    ],
)
def test_a_kernels_bound_is_what_it_would_wait_for_at_the_machines_peaks(found: KernelTime, words: str):
    assert bound_words(found) == words
    assert words.startswith({"unknown": "not known"}.get(found.bound, f"{found.bound}-bound"))
