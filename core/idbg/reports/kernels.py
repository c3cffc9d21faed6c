"""How do the times of a program's kernels read to a person, and to another program?"""

from collections.abc import Iterator, Sequence

import msgspec

from idbg.format.amounts import NOTHING, counted, duration, share
from idbg.format.bounds import bound_words
from idbg.schema import strict_json
from idbg.schema.kernel_times import BEYOND, Bound, KernelTime, KernelTimes, Peaks

SCHEMA = "idbg.kernels/1"
HEADS = ("kernel", "launches", "median", "share", "GB/s (of a copy's)", "GFLOP/s (of a matmul's)", "bound")
BOUNDS: dict[Bound, str] = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "launch": "launch-bound",
    "unknown": "not known",
}
WIDEST = 60  # characters of a kernel's name
TRUSTED = 0.1  # of the processors, that others used while the peaks were measured
_DERIVED = (
    *("median_us", "p95_us", "run_us", "bytes_per_s", "flops_per_s", "of_memory", "of_compute", "of_empty"),
    "bound",
)
_TOTALS = ("runs", "total_us", "hooked_total_us", "sum_us", "missed_us", "perturbation")


def to_json(times: KernelTimes) -> str:
    """Strict JSON: the kernels in the order of their launches, with all samples."""
    return strict_json.formatted(plain(times)).decode()


def plain(times: KernelTimes) -> dict[str, object]:
    """The times as JSON's own types, with the figures that follow from them."""
    return {
        "schema": SCHEMA,
        **{name: getattr(times, name) for name in _TOTALS},
        **msgspec.to_builtins(times),
        "kernels": [_with_derived(kernel) for kernel in times.kernels],
    }


def _with_derived(kernel: KernelTime) -> dict[str, object]:
    return {
        **msgspec.to_builtins(kernel),
        **{name: getattr(kernel, name) for name in _DERIVED},
        "words": bound_words(kernel),
    }


def report(times: KernelTimes, name: str = "", top: int | None = None) -> str:
    """The longest kernels, `top` of them or all; then their sum, what it misses, and what timing them changed."""
    call = "training step" if times.kind == "training" else "forward"
    peaks = times.peaks
    threads = [counted(peaks.threads, "thread")] if peaks.threads else []
    head = ", ".join([call, counted(times.runs, "run"), peaks.device, *threads, f"torch {peaks.torch}"])
    shown = times.by_time[:top]
    rest = times.by_time[len(shown) :]
    lines = [f"{name}   {head}" if name else head, *_table(shown), *_rest(rest, times), *_whole(times), *_peaks(peaks)]
    lines += [f"  ⚠ {doubt}" for doubt in doubts(times)]
    if any((kernel.of_memory or 0) > BEYOND for kernel in shown):
        lines.append("  more than a copy's bandwidth: the tensors were in a cache, or only parts of them were read")
    return "\n".join(lines)


def _table(kernels: Sequence[KernelTime]) -> Iterator[str]:
    table = [HEADS, *(_cells(kernel) for kernel in kernels)]
    widths = [max(len(line[at]) for line in table) for at in range(len(HEADS))]
    for name, *figures, bound in table:
        cells = [cell.rjust(width) for cell, width in zip(figures, widths[1:-1], strict=True)]
        yield f"  {'  '.join([name.ljust(widths[0]), *cells, bound])}"


def _cells(kernel: KernelTime) -> tuple[str, ...]:
    return (
        _short(kernel.handle or kernel.name),
        f"{kernel.launches:,.4g}",
        duration(kernel.median_us / 1e3),
        share(kernel.share),
        _speed(kernel.bytes_per_s, kernel.of_memory),
        _speed(kernel.flops_per_s, kernel.of_compute),
        BOUNDS[kernel.bound],
    )


def _short(name: str) -> str:
    """The kernel's name within WIDEST characters: its beginning, and its end, where its ops and its handle stand."""
    return name if len(name) <= WIDEST else f"{name[: WIDEST - 21]}…{name[-20:]}"


def _speed(per_s: float | None, of_peak: float | None) -> str:
    if per_s is None:
        return NOTHING
    return f"{per_s / 1e9:,.3g}" + (f" ({share(of_peak)})" if of_peak is not None else "")


def _rest(rest: Sequence[KernelTime], times: KernelTimes) -> Iterator[str]:
    if rest:
        took = sum(kernel.run_us for kernel in rest)
        yield f"  … and {counted(len(rest), 'kernel')} more: {_figure(took, times)}"


def _whole(times: KernelTimes) -> Iterator[str]:
    yield f"  the kernels' sum: {_figure(times.sum_us, times)}"
    if times.missed_us >= 0:
        yield f"  not in it: {_figure(times.missed_us, times)}: Python, allocations, gaps between launches"
    else:
        yield f"  which is {duration(-times.missed_us / 1e3)} more than a call: timing each of them takes as long"
    sign = "+" if times.perturbation >= 0 else "−"
    hooked = f"{duration(times.hooked_total_us / 1e3)} ({sign}{share(abs(times.perturbation))})"
    yield f"  a call: {duration(times.total_us / 1e3)}; while its kernels are timed {hooked}"
    if times.untimed:
        yield f"  not launched, and not timed: {', '.join(map(_short, times.untimed))}"
    if times.problem:
        yield f"  ⚠ some kernels are missing: {times.problem}"


def _figure(microseconds: float, times: KernelTimes) -> str:
    return f"{duration(microseconds / 1e3)}, {share(microseconds / times.total_us)} of a call"


def _peaks(peaks: Peaks) -> Iterator[str]:
    told = [f"copy {peaks.copy_bytes_per_s / 1e9:,.3g} GB/s"] if peaks.copy_bytes_per_s else []
    told += [f"{dtype} matmul {speed / 1e9:,.3g} GFLOP/s" for dtype, speed in peaks.matmul_flops_per_s.items()]
    told += [f"empty {kind} launch {duration(took / 1e3)}" for kind, took in peaks.launch_us.items()]
    yield f"  peaks: {', '.join(told) or 'not measured'}"


def doubts(times: KernelTimes) -> Iterator[str]:
    """Why fractions of the machine's peaks may say too much: sentences for whoever shows them."""
    others = times.peaks.others
    if others and others > TRUSTED:
        yield f"other processes used {share(others)} of the processors while the peaks were measured"
    beyond = [kernel for kernel in times.kernels if kernel.beyond_compute]
    if beyond:
        faster = f"{counted(len(beyond), 'kernel')} ran faster than the matmul that was measured as the peak"
        yield f"{faster}, which is too low: time them again while the machine is idle"
