"""On which device are a tensor's numbers held in float64: on its own, or, where that has no float64, on the CPU?"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

from idbg.engine.compat import comparing
from idbg.schema.programs import Float64On

CPU = torch.device("cpu")
ASKED_FOR = "it was asked for"
_where: ContextVar[Float64On] = ContextVar("_where", default="auto")


@contextmanager
def float64_on(where: Float64On) -> Iterator[None]:
    """While it lasts, float64 is where it can be ("auto"), or on the CPU whatever the devices can do ("cpu")."""
    token = _where.set(where)
    try:
        yield
    finally:
        _where.reset(token)


def float64_device(device: torch.device) -> torch.device:
    """Where float64 copies of this device's tensors are held."""
    if device.type in ("cpu", "meta"):
        return device
    return CPU if reason_moved(device) else device


def is_moved(tensor: Tensor) -> bool:
    """Whether float64 copies of the tensor are held elsewhere."""
    return float64_device(tensor.device) != tensor.device


def reason_moved(device: torch.device) -> str:
    """Why float64 is not held on this device; "" where it is."""
    return ASKED_FOR if _where.get() == "cpu" else _lacking(device)


def on_float64_device(tensor: Tensor) -> Tensor:
    """The tensor in its own dtype, where its numbers can be held in float64: a copy, or itself."""
    return tensor.to(float64_device(tensor.device))


@cache
def _lacking(device: torch.device) -> str:
    """What a product says that only float64 gives; some devices refuse it, others compute in float32."""
    small = 2.0**-40
    try:
        with comparing.no_modes(), torch.no_grad():
            one = torch.tensor([[1.0, small], [0.0, 1.0]], dtype=torch.float64, device="cpu").to(device)
            (first, second), _ = (one @ one).cpu().tolist()
            rest = float((one.sum() - 2).cpu())
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, NotImplementedError, AssertionError) as error:
        return f"{device.type} has none: {str(error).strip().partition(chr(10))[0]}"
    if (first, second, rest) == (1.0, 2 * small, small):
        return ""
    return f"{device.type} computes it in fewer digits"
