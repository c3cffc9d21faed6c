"""Name a kernel's language, the GPU resources that it takes, and what bounds it."""

from collections.abc import Iterator

from idbg.format.amounts import counted, share, size
from idbg.schema.code import Kernel, Resources
from idbg.schema.kernel_times import BEYOND, KernelTime

_LANGUAGES = {"cpp": "C++", "cuda": "CUDA", "triton": "Triton", "python": "Python"}


def language_of(kernel: Kernel) -> str:
    """What a kernel is written in: "C++", "Triton"; "extern" where Inductor only calls it."""
    return _LANGUAGES.get(kernel.language, kernel.language) if kernel.source else "extern"


def resource_words(resources: Resources | None) -> Iterator[str]:
    """What a Triton kernel takes of a GPU, as far as it is known."""
    if resources is None:
        return
    if resources.registers is not None:
        yield counted(resources.registers, "register")
    if resources.spills is not None:
        yield f"{resources.spills} spilled" if resources.spills else "none spilled"
    if resources.shared_bytes is not None:
        yield f"{size(resources.shared_bytes)} shared"
    if resources.warps is not None:
        yield counted(resources.warps, "warp")
    if resources.occupancy is not None:
        yield f"occupancy {share(resources.occupancy)}"


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
