"""Is the GPU in use, and how is it kept busy?"""

import torch


def in_use() -> bool:
    """Whether this process has a CUDA context; asking makes none."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def keep_busy(seconds: float) -> None:
    """The GPU does nothing on the current stream for this long, or somewhat longer: what is launched meanwhile waits.

    In cycles of its clock, of which no GPU has more than 2.5 billion a second.
    """
    torch.cuda._sleep(int(2.5e9 * seconds))  # type: ignore[no-untyped-call]
