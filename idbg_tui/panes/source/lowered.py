"""The texts that a kernel was lowered to."""

from idbg.format.kernels import resource_words
from idbg.schema.code import Kernel, Lowered
from idbg_tui.panes.source.sheets import Sheet, kernel_key
from idbg_tui.state.state import State


def known(state: State, kernel: Kernel) -> Lowered | None:
    """What the compilers made of the kernel; None before the worker has answered."""
    return state.shown.lowered.get(kernel_key(kernel)) if state.shown else None


def sheet(kernel: Kernel, lowered: Lowered, level: int) -> Sheet:
    """What a kernel was lowered to at this level: 1 is just below its source, `len(lowered.texts)` the lowest."""
    if not lowered.texts:
        return Sheet("the compilers left nothing of it in their caches", kernel.name)
    text = lowered.texts[level - 1]
    words = [text.name, f"{level} of {len(lowered.texts)}", *resource_words(lowered.resources)]
    return Sheet(" · ".join(words), kernel.name, text.text, text.language, 1, top=True)
