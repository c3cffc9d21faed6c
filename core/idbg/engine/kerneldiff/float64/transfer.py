"""Measure what a transfer from the CPU to a device and back changes: no comparison on the CPU is more exact."""

from collections.abc import Iterable
from math import inf

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.kerneldiff.tensors.float64_device import is_moved, reason_moved
from idbg.engine.kerneldiff.tensors.pair import dense, unreadable
from idbg.engine.kerneldiff.tensors.pieces import INTS
from idbg.schema.diff import Float64Elsewhere, TransferFloor

MOST_VALUES = 1 << 22  # of the program's own, of each dtype: 16 MB of float32
_RANDOM = 1 << 14


def transfer_error(tensors: Iterable[Tensor]) -> Float64Elsewhere | None:
    """Why float64 is not computed on these tensors' device, and what a transfer changes in each of their
    dtypes; None if all of it is computed there.
    """
    away = [each for each in tensors if not each.is_nested and is_moved(each) and not unreadable(each)]
    if not away:
        return None
    by_kind: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in away:
        flat = dense(tensor)
        by_kind.setdefault((flat.device, flat.dtype), []).append(flat)
    floors = tuple(_floor(device, dtype, own) for (device, dtype), own in by_kind.items())
    return Float64Elsewhere(device=str(away[0].device), why=reason_moved(away[0].device), floors=floors)


def _floor(device: torch.device, dtype: torch.dtype, own: Iterable[Tensor]) -> TransferFloor:
    floor = TransferFloor(device=str(device), dtype=str(dtype).removeprefix("torch."), values=0)
    for sent in (probes(dtype), *_first_of(own)):
        floor = _added(floor, sent, sent.to(device).cpu())
    return floor


def _first_of(own: Iterable[Tensor]) -> Iterable[Tensor]:
    """The program's own values, as the CPU has them, up to MOST_VALUES."""
    left = MOST_VALUES
    for tensor in own:
        if left <= 0:
            return
        taken = tensor.reshape(-1)[:left].cpu()
        left -= taken.numel()
        yield taken


def _added(floor: TransferFloor, sent: Tensor, back: Tensor) -> TransferFloor:
    if sent.dtype.is_complex:
        sent, back = torch.view_as_real(sent), torch.view_as_real(back)
    floor = replace(floor, values=floor.values + sent.numel())
    ints = INTS[sent.element_size()]
    changed = sent.contiguous().view(ints) != back.contiguous().view(ints)
    count = int(changed.sum())
    if not count:
        return floor
    floor = replace(floor, changed=floor.changed + count)
    if not sent.dtype.is_floating_point:
        return floor
    tiny = torch.finfo(sent.dtype).tiny
    was, now = sent[changed].double(), back[changed].double()
    normal = was.isfinite() & (was.abs() >= tiny)
    error = ((now - was).abs() / was.abs())[normal].nan_to_num(inf, inf)
    return replace(
        floor,
        subnormals=floor.subnormals + int(((was != 0) & (was.abs() < tiny)).sum()),
        nans=floor.nans + int((was.isnan() & now.isnan()).sum()),
        max_rel=max(floor.max_rel, float(error.max()) if error.numel() else 0.0),
    )


def probes(dtype: torch.dtype) -> Tensor:
    """Rare values of a dtype: all values of 16 bits and less, else every exponent and sign with some mantissas
    (zeros, subnormals, infinities and NaN with their payloads), each bit by itself, and random bits.
    """
    if dtype == torch.bool:
        return torch.tensor([False, True])
    part = torch.zeros(0, dtype=dtype).real.dtype if dtype.is_complex else dtype
    bits = _bits(part).view(part)
    return bits.view(dtype) if dtype.is_complex else bits


def _bits(part: torch.dtype) -> Tensor:
    width = part.itemsize * 8
    ints = INTS[part.itemsize]
    if width <= 16:
        return torch.arange(1 << width, dtype=torch.int32).to(ints)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(-(1 << 63), (1 << 63) - 1, (_RANDOM,), generator=generator, dtype=torch.int64)
    digits = 23 if width == 32 else 52  # of a mantissa
    one = torch.ones((), dtype=torch.int64)
    upper = torch.arange(1 << (width - digits), dtype=torch.int64) << digits
    mantissas = torch.stack([one * 0, one, one << (digits - 1), (one << digits) - 1, drawn[0] & ((1 << digits) - 1)])
    single = one << torch.arange(width, dtype=torch.int64)
    return torch.cat([(upper[:, None] | mantissas).reshape(-1), single, ~single, drawn]).to(ints)
