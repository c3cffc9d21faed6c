"""One pass over tensors in memory, by a kernel compiled for this machine.

native.cpp is compiled once, in the background, at low priority, into the user's cache folder. Until it is there, or
where there is no C++ compiler, torch does the work (sums.py): nothing ever waits for a compiler.
"""

import ctypes
import os
import subprocess
from collections.abc import Callable
from functools import cache, lru_cache
from threading import Thread
from typing import cast

import numpy as np
import torch

from idbg.engine.kerneldiff.tensors import native_build
from idbg.engine.kerneldiff.tensors.figures import Figures, Grid, Rule
from idbg.engine.kerneldiff.tensors.pieces import Matrix, Piece, pieces
from idbg.schema.diff import DECADES

KINDS = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3}
THREADS = 8  # each has sums of its own, of 1.2 MB at most
SHARE = 1 << 18  # elements that are worth a thread
_BOUNDS = (ctypes.c_double * len(DECADES))(*(10.0**exponent for exponent in DECADES))

enabled = os.environ.get("IDBG_NATIVE") != "0"
MeasureFunction = Callable[..., None]


class Build:
    """The one build of this process; `problem` has the reason if there is no kernel."""

    def __init__(self) -> None:
        self.kernel: MeasureFunction | None = None
        self.problem = ""
        self.thread = Thread(target=self._run, name="idbg-native", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.kernel = _kernel(native_build.built())
        except (OSError, subprocess.SubprocessError) as error:
            self.problem = str(error)


@cache
def _build() -> Build:
    return Build()


def ready() -> MeasureFunction | None:
    """The compiled kernel, or None as long as there is none; the first call starts the compiler and does not wait."""
    return _build().kernel if enabled else None


def wait(seconds: float | None = None) -> bool:
    """Wait for the compiler. Returns whether there is a kernel."""
    _build().thread.join(seconds)
    return _build().kernel is not None


def problem() -> str:
    """Why there is no kernel; "" while nothing went wrong."""
    return _build().problem


def _kernel(library: ctypes.CDLL) -> MeasureFunction:
    kernel = library.idbg_measure
    kernel.restype = None
    kernel.argtypes = [ctypes.c_void_p] * 6
    return cast("MeasureFunction", kernel)


class _Plan(ctypes.Structure):
    """`Plan` of native.cpp."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "full", "threads", "length", "rows", "columns", "row", "column")),
        ("grid", ctypes.c_int64 * 6),
        *((name, ctypes.c_double) for name in ("atol", "rtol", "tiny")),
    )


def _plan(grid: Grid, rule: Rule, dtype: torch.dtype, full: bool, length: int, threads: int, piece: Piece) -> _Plan:
    steps = grid.rows, grid.columns, grid.row_step, grid.column_step, grid.tile_rows, grid.tile_columns
    place = piece.rows, piece.columns, piece.row, piece.column
    tiny = torch.finfo(dtype).tiny
    return _Plan(KINDS[dtype], full, threads, length, *place, (ctypes.c_int64 * 6)(*steps), rule.atol, rule.rtol, tiny)


@lru_cache(maxsize=64)
def _whole(grid: Grid, rule: Rule, dtype: torch.dtype, full: bool, length: int, threads: int) -> _Plan:
    return _plan(grid, rule, dtype, full, length, threads, Piece(0, grid.rows, 0, grid.columns))


def measure(
    kernel: MeasureFunction, grid: Grid, rule: Rule, sides: tuple[Matrix, Matrix, Matrix | None], *, full: bool
) -> Figures:
    """One pass over sides of a dtype in KINDS, in memory: in one call where they lie there row after row."""
    reference, test, float64 = sides
    length = Figures.length(grid, three=float64 is not None, full=full)
    values = np.zeros(length + 2)
    address = values.__array_interface__["data"][0]
    if reference.is_whole and test.is_whole and (float64 is None or float64.is_whole):
        threads = min(THREADS, torch.get_num_threads(), 1 + grid.elements // SHARE)
        plan = _whole(grid, rule, test.dtype, full, length, threads)
        exact = None if float64 is None else float64.tensor.data_ptr()
        kernel(ctypes.byref(plan), _BOUNDS, reference.tensor.data_ptr(), test.tensor.data_ptr(), exact, address)
        return Figures(values[:length], grid, float64 is not None, full, (values.item(length), values.item(length + 1)))
    for piece in pieces(grid):
        plan = _plan(grid, rule, test.dtype, full, length, 1, piece)
        laid = [None if side is None else side.at(piece) for side in sides]
        kernel(ctypes.byref(plan), _BOUNDS, *(None if side is None else side.data_ptr() for side in laid), address)
    return Figures(values[:length], grid, float64 is not None, full)
