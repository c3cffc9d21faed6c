"""Name what bounds a kernel in a few words."""

from idbg.format.amounts import share
from idbg.schema.kernel_times import BEYOND, KernelTime


def bound_words(kernel: KernelTime) -> str:
    """ "memory-bound: 82 % of a copy's bandwidth"."""
    memory = f"{share(kernel.of_memory or 0)} of a copy's bandwidth"
    match kernel.bound:
        case "launch":
            return f"launch-bound: {kernel.of_empty:.1f} x an empty launch"
        case "memory":
            beyond = ", from a cache or not all read" if (kernel.of_memory or 0) > BEYOND else ""
            return f"memory-bound: {memory}{beyond}"
        case "compute":
            return f"compute-bound: {share(kernel.of_compute or 0)} of a matmul's FLOP/s"
        case "unknown" if kernel.beyond_compute:
            return "not known: it is faster than the matmul that was measured as the machine's peak"
        case "unknown" if kernel.of_memory and kernel.of_compute:
            return f"not known: far below both peaks, {memory}, {share(kernel.of_compute)} of a matmul's FLOP/s"
        case "unknown":
            return f"not known: {memory}, and its arithmetic is not counted" if kernel.of_memory else "not known"
