"""One pass over tensors on a CUDA device, by one Triton kernel and one copy back.

Import it only where there is Triton. TRITON_INTERPRET=1 runs the kernel on tensors in memory.
"""

# Triton has no types.
# mypy: disable-error-code="import-untyped, no-untyped-call"

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from idbg.config import places
from idbg.engine.kerneldiff.tensors.cuda_kernel import LENGTH, gather, one_pass
from idbg.engine.kerneldiff.tensors.figures import HEADER, Figures, Grid, Rule
from idbg.engine.kerneldiff.tensors.pieces import Matrix
from idbg.schema.diff import DECADES

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
PROGRAMS = 64  # whose rows the last kernel reads in one go


class Tuning(NamedTuple):
    """How the work is divided: elements of an area, its columns at most, programs for each of the device's
    processors.
    """

    area: int
    width: int
    programs: int
    warps: int
    stages: int
    fold: int  # neighbours that a thread adds up before it keeps their sum
    registers: int | None = None  # of a thread, at most


# Of 110 tried of each on an H100 and an H200, on 8192 x 8192 float32 alone, those that are fast on both
VERDICT = Tuning(2048, 2048, 3, 8, 3, 4)
EVERYTHING = Tuning(1024, 256, 3, 8, 3, 4)
SIDES = Tuning(256, 128, 8, 1, 3, 4, 168)
ALL = Tuning(256, 128, 8, 2, 1, 4, 128)


@lru_cache(maxsize=64)
def _numbers(device: torch.device, dtype: torch.dtype, rule: Rule) -> tuple[Tensor, Tensor]:
    """The rule and the dtype's smallest number, and the powers of ten at which bins of the histogram begin."""
    numbers = [rule.atol, rule.rtol, torch.finfo(dtype).tiny]
    powers = [10.0**exponent for exponent in DECADES]
    if dtype.itemsize <= 4:  # the smallest float32 that is not below: the kernel compares in float32
        near = np.array(powers, np.float32)
        powers = np.where(near >= powers, near, np.nextafter(near, np.float32(math.inf))).tolist()
    return (
        torch.tensor(numbers, dtype=torch.float64, device=device),
        torch.tensor([*powers, math.inf], dtype=torch.float64, device=device),
    )


def can_read(sides: tuple[Matrix, Matrix, Matrix | None]) -> bool:
    """Whether the kernel can read them in place: as matrices with any strides, of a supported dtype."""
    present = [side for side in sides if side is not None]
    in_place = all(side.tensor.dtype == side.dtype and side.tensor.device == side.device for side in present)
    return in_place and present[1].dtype in DTYPES and all(side.view is not None for side in present)


def measure(grid: Grid, rule: Rule, sides: tuple[Matrix, Matrix, Matrix | None], *, full: bool) -> Figures:
    """One pass over sides that `can_read`; the values of the worst element come along, so that nothing more is read."""
    views = [side.view for side in sides if side is not None and side.view is not None]
    device, three = views[1].device, len(views) == 3
    end = Figures.length(grid, three=three, full=full)
    if device.type != "cuda":
        host = packed = torch.zeros(end + 2, dtype=torch.float64)
        _launch(grid, rule, views, packed, full)
    else:
        with torch.cuda.device(device):
            packed = torch.zeros(end + 2, dtype=torch.float64, device=device)
            _launch(grid, rule, views, packed, full)
            # Pinned: a copy to other memory takes longer than the pass. Torch keeps it for the next one.
            host = torch.empty(end + 2, dtype=torch.float64, pin_memory=True).copy_(packed)
    values = host.numpy()
    return Figures(values[:end], grid, three, full, (float(values[end]), float(values[end + 1])))


_CACHE = "TRITON_CACHE_DIR"


@contextmanager
def _cached_apart() -> Iterator[None]:
    """Cache Triton's kernels in idbg's folder: Inductor sets another once it compiles, and a program's caches
    may be cleared. Compiling the kernels takes 4 s.
    """
    before = os.environ.get(_CACHE)
    os.environ[_CACHE] = _folder()
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CACHE]
        else:
            os.environ[_CACHE] = before


@lru_cache(maxsize=1)
def _folder() -> str:
    return str(places.cache() / "triton")


class _Start(NamedTuple):
    """How a kernel is started on tensors of one grid: `key` says all that Triton may compile other code for, but what
    it examines of tensors.
    """

    programs: int
    integers: tuple[int, ...]
    constants: tuple[object, ...]
    options: dict[str, int | None]
    key: tuple[object, ...]

    @classmethod
    def of(
        cls, name: str, programs: int, integers: tuple[int, ...], constants: tuple[object, ...], **options: int | None
    ) -> "_Start":
        """One whose `key` has of each integer whether it is 1, a multiple of 16, or too large for 32 bits."""
        kinds = (one if one == 1 else (one % 16 == 0, one < 1 << 31) for one in integers)
        return cls(programs, integers, constants, options, (name, *kinds, *constants, *options.values()))


@lru_cache(maxsize=64)
def _starts(
    grid: Grid, strides: tuple[tuple[int, ...], ...], device: torch.device, three: bool, full: bool
) -> tuple[_Start, _Start]:
    """Of both kernels, one after the other: the strides are the reference's, the test's and float64's."""
    tuning = (ALL if full else SIDES) if three else EVERYTHING if full else VERDICT
    height, width = _area(grid, tuning)
    bands = -(-grid.rows // height)
    areas = bands * -(-grid.columns // width)
    each = -(-areas // (tuning.programs * _processors(device)))
    programs = -(-areas // each)
    steps = grid.row_step, grid.column_step, grid.tile_rows, grid.tile_columns
    integers = (
        grid.rows, grid.columns, grid.blocks, bands, areas, each, *(stride for side in strides for stride in side),
        *(step.bit_length() - 1 for step in steps),
    )  # fmt: skip
    constants = (
        height, width, min(tuning.fold, width), min(grid.column_step, width),
        min(grid.tile_rows, height), min(grid.tile_columns, width), three, full, tuning.stages,
    )  # fmt: skip
    options = {"num_warps": tuning.warps, "maxnreg": tuning.registers}
    end = Figures.length(grid, three=three, full=full)
    last = programs, end, grid.rows, grid.columns, *strides[0], *strides[1]
    return (
        _Start.of("one_pass", programs, integers, constants, **options),
        _Start.of("gather", 1, last, (PROGRAMS, full), num_warps=8),
    )


def _launch(grid: Grid, rule: Rule, views: list[Tensor], packed: Tensor, full: bool) -> None:
    reference, test, exact = views[0], views[1], views[-1]
    strides = reference.stride(), test.stride(), exact.stride()
    first, last = _starts(grid, strides, test.device, len(views) == 3, full)
    by_program = torch.empty(first.programs, LENGTH.value, dtype=torch.float64, device=test.device)
    numbers, powers = _numbers(test.device, test.dtype, rule)
    _run(one_pass, first, reference, test, exact, by_program, packed[HEADER:], numbers, powers)
    _run(gather, last, by_program, packed, reference, test)


_compiled: dict[tuple[object, ...], Any] = {}


def _run(kernel: Any, start: _Start, *tensors: Tensor) -> None:
    """Start a kernel, whose integers come after its tensors. Triton examines all arguments at each start, which takes
    longer than most passes: what it compiled is started at once where it would find the same again.
    """
    arguments = (*tensors, *start.integers, *start.constants)
    key = (start.key, *((tensor.device, tensor.dtype, tensor.data_ptr() % 16 == 0) for tensor in tensors))
    if (compiled := _compiled.get(key)) is not None:
        compiled[start.programs, 1, 1](*arguments)
        return
    with _cached_apart():
        compiled = kernel[(start.programs,)](*arguments, **start.options)
    if compiled is not None:  # as from Triton's interpreter
        _compiled[key] = compiled


def _area(grid: Grid, tuning: Tuning) -> tuple[int, int]:
    """Rows and columns of an area: powers of two that waste little on tensors of few rows or few columns."""
    rows, columns = triton.next_power_of_2(grid.rows), triton.next_power_of_2(grid.columns)
    height = min(rows, tuning.area // min(tuning.width, columns))
    return height, min(columns, tuning.area // height)


@lru_cache(maxsize=8)
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
