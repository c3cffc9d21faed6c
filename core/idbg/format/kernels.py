"""Name a kernel's language, and the GPU resources that it takes."""

from collections.abc import Iterator

from idbg.format.amounts import counted, share, size
from idbg.schema.code import Kernel, Resources

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
