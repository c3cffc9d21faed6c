"""Choose the device and dtype of a tensor's float64 copy: its own device, or the CPU if that has no float64."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TypeGuard

import torch
from torch import Tensor

from idbg.engine.compat import comparing, gpu
from idbg.schema.errors import first_line
from idbg.schema.programs import Float64On

CPU = torch.device("cpu")
ASKED_FOR = "the settings request it"
_why: ContextVar[str] = ContextVar("_why", default="")  # float64 is on the CPU, although the device may have it


@contextmanager
def float64_on(where: Float64On) -> Iterator[None]:
    """While active, float64 is computed on the CPU: always ("cpu"), or where the device has no float64 ("auto")."""
    token = _why.set(ASKED_FOR if where == "cpu" else "")
    try:
        yield
    finally:
        _why.reset(token)


def _accelerator(tensors: Iterable[Tensor]) -> torch.device | None:
    return next((tensor.device for tensor in tensors if not tensor.is_cpu), None)


def peak_memory(tensors: Iterable[Tensor]) -> int:
    """The most bytes that were in use so far on the device of these tensors; 0 where torch does not count them."""
    device = _accelerator(tensors)
    return torch.cuda.max_memory_allocated(device) if device is not None and device.type == "cuda" else 0


def move_to_cpu(tensors: Sequence[Tensor], peak: int) -> bool:
    """Compute float64 on the CPU until the surrounding `float64_on` ends, as the device of these tensors has too little
    memory; False where it is there already, or the CPU has too little memory too. `peak`: what the program took on its
    device, before any float64.
    """
    device = _accelerator(tensors)
    if device is None or reason_moved(device):
        return False
    if peak * torch.float64.itemsize / usual_dtype(tensors).itemsize > free_memory():
        return False
    _why.set(f"{device} has too little memory for it")
    gpu.release_memory()
    return True


def float64_device(device: torch.device) -> torch.device:
    """The device of float64 copies of this device's tensors."""
    if device.type in ("cpu", "meta"):
        return device
    return CPU if reason_moved(device) else device


def is_moved(tensor: Tensor) -> bool:
    """Whether float64 copies of the tensor are on another device."""
    return float64_device(tensor.device) != tensor.device


def reason_moved(device: torch.device) -> str:
    """Why float64 copies are not on this device; "" if they are."""
    return _why.get() or _lacking(device)


def on_float64_device(tensor: Tensor) -> Tensor:
    """The tensor, unconverted, on the device of its float64 copies."""
    return tensor.to(device) if (device := float64_device(tensor.device)) != tensor.device else tensor


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """float64 for floats, complex128 for complex numbers; any other dtype unchanged."""
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype


def is_narrow(value: object) -> TypeGuard[Tensor]:
    """Whether it is a tensor of floating or complex numbers with fewer digits than float64 (complex128)."""
    return isinstance(value, Tensor) and not is_packed(value) and wide_dtype(value.dtype) != value.dtype


def is_packed(tensor: Tensor) -> bool:
    """Whether it is a weight that oneDNN has packed, as freezing does: it has no float64, and no elements to read."""
    return str(tensor.layout) == "torch._mkldnn"


def to_float64(tensor: Tensor) -> Tensor:
    """Its values in float64 (complex128; integers unchanged), on the device of its float64 copies."""
    return on_float64_device(tensor).to(wide_dtype(tensor.dtype))


def is_converted(value: object) -> TypeGuard[Tensor]:
    """Whether `to_float64` changes the tensor's dtype or device."""
    return isinstance(value, Tensor) and (is_narrow(value) or is_moved(value))


def usual_dtype(tensors: Iterable[Tensor]) -> torch.dtype:
    """The narrow dtype of most of the tensors; torch's default if none is narrow."""
    counts = Counter(tensor.dtype for tensor in tensors if is_narrow(tensor) and not tensor.dtype.is_complex)
    return counts.most_common(1)[0][0] if counts else torch.get_default_dtype()


def free_memory() -> int:
    """Bytes of host memory that are free, in the machine and in its container; 0 where that is not known."""
    free = _of_machine("MemAvailable")
    with suppress(ValueError):  # "max", or no container
        limit, used = (int(_read(f"/sys/fs/cgroup/memory.{each}")) for each in ("max", "current"))
        free = min(free, limit - used)
    return max(free, 0)


def total_memory() -> int:
    """Bytes of host memory that the machine and its container have; 0 where that is not known."""
    total = _of_machine("MemTotal")
    with suppress(ValueError):
        total = min(total, int(_read("/sys/fs/cgroup/memory.max")))
    return total


def _of_machine(name: str) -> int:
    found = re.search(rf"{name}: +(\d+) kB", _read("/proc/meminfo"))
    return int(found[1]) << 10 if found else 0


def _read(file: str) -> str:
    with suppress(OSError):
        return Path(file).read_text()
    return ""


@cache
def _lacking(device: torch.device) -> str:
    """Why the device has no float64: computes a product that float32 cannot hold. Some devices refuse float64, others
    compute in float32.
    """
    small = 2.0**-40
    try:
        with comparing.no_modes(), torch.no_grad():
            one = torch.tensor([[1.0, small], [0.0, 1.0]], dtype=torch.float64, device="cpu").to(device)
            (first, second), _ = (one @ one).cpu().tolist()
            rest = float((one.sum() - 2).cpu())
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, NotImplementedError, AssertionError) as error:
        return f"{device.type} has none: {first_line(error)}"
    if (first, second, rest) == (1.0, 2 * small, small):
        return ""
    return f"{device.type} computes it in fewer digits"
