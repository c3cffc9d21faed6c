"""How does what a kernel was lowered to read, one text of it at a time?"""

from collections.abc import Iterator

from idbg.format.amounts import counted, share, size
from idbg.schema.code import Kernel, Lowered, Resources
from idbg_tui.panes.source.sheets import Sheet, kernel_key
from idbg_tui.state.state import State


def known(state: State, kernel: Kernel) -> Lowered | None:
    """What the compilers made of the kernel; None before the worker was asked."""
    return state.shown.lowered.get(kernel_key(kernel)) if state.shown else None


def sheet(kernel: Kernel, lowered: Lowered, level: int) -> Sheet:
    """What a kernel was lowered to at this level: 1 is just below its source, `len(lowered.texts)` the lowest."""
    if not lowered.texts:
        return Sheet("the compilers left nothing of it in their caches", kernel.name)
    text = lowered.texts[level - 1]
    words = [text.name, f"{level} of {len(lowered.texts)}", *_said(lowered.resources)]
    return Sheet(" · ".join(words), kernel.name, text.text, text.language, 1, top=True)


def _said(resources: Resources | None) -> Iterator[str]:
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
