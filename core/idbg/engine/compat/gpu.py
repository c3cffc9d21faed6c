"""Query the state of the GPU, keep it busy, and wait for it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch

from idbg.engine.compat.names import internals
from idbg.schema.errors import exception_text


def in_use() -> bool:
    """Whether this process has a CUDA context; the query creates none."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def keep_busy(seconds: float) -> None:
    """Block the current stream for this long, or somewhat longer: launches meanwhile wait.

    In cycles of its clock, of which no GPU has more than 2.5 billion a second.
    """
    internals.cuda._sleep(int(2.5e9 * seconds))  # type: ignore[no-untyped-call]


def is_device_error(error: BaseException) -> bool:
    """Whether the device failed. It reports late, and is unusable for the process after most such errors."""
    if not isinstance(error, RuntimeError):
        return False
    raised = getattr(torch, "AcceleratorError", None)  # none before 2.8
    words = ("CUDA error:", "Triton Error [CUDA]:")
    return (raised is not None and isinstance(error, raised)) or any(word in exception_text(error) for word in words)


def is_lost() -> bool:
    """Whether an error has made the CUDA context of this process unusable."""
    if not in_use():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        return is_device_error(error)
    return False


def release_memory() -> None:
    """Return to the device what torch holds and nothing uses."""
    gc.collect()
    if in_use():
        torch.cuda.empty_cache()


def memory(device: torch.device) -> tuple[int, int]:
    """The bytes that this process may still allocate on a CUDA device, and those that it may have in all."""
    free, total = torch.cuda.mem_get_info(device)
    used = torch.cuda.memory_allocated(device)
    allowed = int(total * torch.cuda.get_per_process_memory_fraction(device))
    return min(free + torch.cuda.memory_reserved(device) - used, allowed - used), allowed


_CONVOLUTIONS = {"convolution", "convolution_backward", "_convolution", "cudnn_convolution"}
# attention is products: which of its kernels computes it depends on its mask, and one of them multiplies matrices
_PRODUCTS = {
    *("mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "mv", "addmv"),
    *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_efficient_attention_backward"),
    *("_efficient_attention_forward", "_efficient_attention_backward", "_scaled_dot_product_attention_math"),
}
_RECURRENT = {"_cudnn_rnn", "_cudnn_rnn_backward"}


def tf32_setting(op: str, device: torch.device) -> str:
    """The setting by which an op may compute float32 in TF32 (10 bits of mantissa) on this device; "" where none does:
    which of its kernels is chosen is cuDNN's and cuBLAS's, and differs by shape and memory format.
    """
    if device.type != "cuda" or (in_use() and torch.cuda.get_device_capability(device) < (8, 0)):
        return ""
    cudnn = cast("Any", torch.backends.cudnn)
    for ops, name, holder in (
        (_CONVOLUTIONS, "cudnn.conv", cudnn.conv),
        (_RECURRENT, "cudnn.rnn", cudnn.rnn),
        (_PRODUCTS, "cuda.matmul", torch.backends.cuda.matmul),
    ):
        if op in ops:
            return f"torch.backends.{name}.fp32_precision" if holder.fp32_precision == "tf32" else ""
    return ""


_waiting = 0  # the number of active `each_waited_for`


@contextmanager
def each_waited_for() -> Iterator[None]:
    """While it lasts, each launch is waited for: an error of the device is of the last launch, wherever it is raised
    (to tune a Triton kernel, Inductor waits inside of its launch).
    """
    global _waiting
    _waiting += 1
    try:
        yield
    finally:
        _waiting -= 1


def is_waited_for() -> bool:
    """Whether each launch is waited for now."""
    return _waiting > 0


def wait() -> None:
    """Synchronize the device, if it is in use and no CUDA graph is recorded."""
    if in_use() and not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize()
