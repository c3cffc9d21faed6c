"""Suggest what shortens a compile where one thing takes most of its time."""

from collections.abc import Iterator, Sequence

from idbg.analysis.decisions import times
from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.times import Spent, Timing
from idbg.format.amounts import counted, share
from idbg.format.file_names import near_place
from idbg.schema.runs import Run
from idbg.views.advice import MAY

_MANY = 0.5  # of a graph's nodes from one line: a loop that was unrolled
_LEAST_NODES = 50
_WARM = "what was built is found again by the next run: keep the folder of the cache (TORCHINDUCTOR_CACHE_DIR)"


def helps(run: Run, timings: Sequence[Timing], most: Spent) -> Iterator[str]:
    """A line for each thing that helps, the most first; none where nothing is known to."""
    match most.use:
        case "cpp":
            yield from _cpp(timings, most.seconds)
        case "cpu check":
            yield "torch builds a test for each set of instructions, once for each folder of its cache: keep the folder"
            yield "(TORCHINDUCTOR_CACHE_DIR)"
        case "triton":
            yield _WARM
            yield "kernels are built side by side by so many processes: TORCHINDUCTOR_COMPILE_THREADS"
        case "autotuning":
            yield "what was measured is kept with the cache for the next run: keep its folder (TORCHINDUCTOR_CACHE_DIR)"
            yield f"{MAY}fewer candidates: the options max_autotune_gemm_backends and max_autotune, or another mode"
            yield "what was measured: idbg analyze --type autotune"
        case "dynamo":
            yield from _dynamo(run, timings)
        case "guards":
            yield "which there are, and of what: idbg analyze --type guards"
        case "passes":
            yield from _passes(timings)
        case "caches":
            yield "it is done once in each process, and little of it grows with the program"
        case _:
            pass


def _cpp(timings: Sequence[Timing], seconds: float) -> Iterator[str]:
    yield _WARM
    header = sum(each.seconds for each in timings if each.span.name == "precompiled header")
    if header > 0.3 * seconds:
        yield f"{header:.1f} s of it is the header that all kernels share: it is precompiled once for all such folders,"
        yield "in torchinductor_USER/precompiled_headers of the temporary folder (TMPDIR): keep that too"
    elif not any(each.span.name == "precompiled header" for each in timings):
        yield f"{MAY}torch._inductor.config.cpp_cache_precompile_headers = True: what all include is compiled once"
    builds = times.builds(timings)
    if len(builds) > 1:
        at_once = 1 + max(lane for _, lane in times.lanes(builds))
        yield f"{counted(len(builds), 'build')}, at most {at_once} at a time: TORCHINDUCTOR_COMPILE_THREADS"


def _dynamo(run: Run, timings: Sequence[Timing]) -> Iterator[str]:
    found = times.unrolled(run, timings)
    if found is None:
        return
    frame = run.frames.get(found.frame)
    function = f"{spoken(frame)}, " if frame else ""
    place = near_place(found.file, found.line)
    if found.of < _LEAST_NODES or found.nodes < _MANY * found.of:
        yield f"longest in {function}frame {found.frame}: {counted(found.of, 'node')}, most of one line from {place}"
        return
    nodes = f"{found.nodes:,} of {counted(found.of, 'node')}"
    yield f"{nodes} of {function}frame {found.frame} come from one line, {place}:"
    yield "a loop is unrolled, so tracing grows with its turns"
    yield f"{MAY}make what it repeats a function, and mark that with torch.compiler.nested_compile_region, or compile"
    yield "that function alone"


def _passes(timings: Sequence[Timing]) -> Iterator[str]:
    passes = [each for each in timings if each.span.name == "pass" and each.span.what]
    if not passes:
        return
    longest = max(passes, key=lambda each: each.seconds)
    total = sum(each.own for each in timings if each.span.name == "pass")
    part = share(longest.seconds / total) if total else "all"
    yield f"the longest: {longest.span.what}, {longest.seconds:.2f} s, {part} of all passes that have a name"
