"""The Triton pass gives torch's figures: in Triton's interpreter on the CPU, and on a GPU, where it is fast as well."""

import importlib.util
import itertools
import math
import os
import subprocess
import sys
import warnings
from importlib.metadata import version

import numpy as np
import pytest
import torch

from idbg.engine.kerneldiff.tensors import figures as at
from idbg.engine.kerneldiff.tensors import native, sums
from idbg.engine.kerneldiff.tensors.compare import FEW, compare_sides, compare_tensors
from idbg.engine.kerneldiff.tensors.figures import Rule, grid_of
from idbg.engine.kerneldiff.tensors.pieces import Matrix

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
SHAPES = ((1, 1), (3, 70), (1, 700), (700, 1), (70, 33))
LONG = ((1, 3000), (3000, 1))  # several areas of a verdict too, which are the largest
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def noisy(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """Eager, test and float64, with a NaN in eager and an infinity on both sides."""
    random = torch.Generator().manual_seed(sum(shape))
    eager = torch.randn(shape, generator=random).to(dtype)
    test = (eager.double() + 10.0 ** torch.randint(-9, -2, shape, generator=random)).to(dtype)
    exact = eager.double() + 1e-4
    if eager.numel() > 3:
        eager.view(-1)[0] = math.nan
        eager.view(-1)[2] = test.view(-1)[2] = math.inf
    return [side.to(device) for side in (eager, test, exact)]


def assert_same_figures(
    device: str,
    shapes: tuple[tuple[int, int], ...],
    dtypes: tuple[torch.dtype, ...],
    *,
    asked: tuple[bool, ...] = (True, False),
    turns: bool = True,
) -> None:
    """`asked`: whether all figures are, and whether there is a third side; `turns`: also sides of other strides."""
    from idbg.engine.kerneldiff.tensors import cuda

    rule, where = Rule(1e-5, 1e-4), torch.device(device, 0) if device == "cuda" else torch.device(device)
    for dtype, shape, full, three in itertools.product(dtypes, shapes, asked, asked):
        eager, test, exact = noisy(shape, dtype, device)
        grid = grid_of(*shape)
        third = Matrix(exact, grid, torch.float64, where) if three else None
        turned = turns and dtype == torch.float32 and 1 not in shape
        for change in (lambda side: side, lambda side: side.t().contiguous().t())[: 1 + turned]:
            sides = Matrix(change(eager), grid, dtype, where), Matrix(test, grid, dtype, where), third
            assert cuda.can_read(sides)
            found = cuda.measure(grid, rule, sides, full=full)
            wanted = sums.measure(grid, rule, sides, full=full).values
            for values in (found.values, wanted):
                values[at.NONFINITE] = values[at.NONFINITE] > 0
            measured = np.ones(len(wanted), dtype=bool)
            if not full:
                measured[: at.HEADER] = [place in VERDICT for place in range(at.HEADER)]
                measured[at.SUM_SQUARES : at.MISMATCHES + 1] &= not three
            # torch takes float32 differences: a few that lie at a power of ten round to its other side
            moved = np.abs(found.values - wanted)[at.HISTOGRAM : at.HEADER] / shape[0] / shape[1]
            assert not full or moved.max() < 1e-5 or shape[0] * shape[1] < 1e5
            measured[at.HISTOGRAM : at.HEADER] &= shape[0] * shape[1] < 1e5
            bad = ~np.isclose(found.values, wanted, rtol=3e-6, atol=1e-300) & measured
            assert not bad.any(), (dtype, shape, full, three, bad.nonzero()[0], found.values[bad], wanted[bad])
            assert found.worst is not None
            if full and found.values[at.MAX_ABS]:
                apart = abs(found.worst[1] - found.worst[0])
                assert apart == pytest.approx(found.values[at.MAX_ABS], rel=1e-6)


VERDICT = {at.NONFINITE, at.SUM_SQUARES, at.MAX_ABS, at.MISMATCHES, *range(at.TEST_ERROR, at.FLOAT64_MAX + 1)}


def interpreter_problem() -> str:
    if importlib.util.find_spec("triton") is None:
        return "needs Triton"
    triton, numpy = (tuple(map(int, version(name).split(".")[:2])) for name in ("triton", "numpy"))
    return "the interpreter of Triton 3.6 cannot loop with NumPy 2.4" if triton < (3, 7) and numpy >= (2, 4) else ""


@pytest.mark.skipif(bool(interpreter_problem()), reason=interpreter_problem())
@pytest.mark.slow
def test_the_interpreted_kernel_gives_torchs_figures():
    """In a process of its own: Triton reads the variable when it is imported."""
    command = [sys.executable, "-W", "error", __file__]
    environment = dict(os.environ, TRITON_INTERPRET="1", CUDA_VISIBLE_DEVICES="")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@on_gpu
def test_the_kernel_gives_torchs_figures_on_a_gpu():
    """Every shape and dtype is another kernel, which takes a second to compile."""
    assert_same_figures("cuda", ((700, 3001),), DTYPES)
    assert_same_figures("cuda", (*SHAPES[:-1], (1, 3_000_000), (9000, 4100)), (torch.float32,))


@pytest.mark.gpu
@on_gpu
def test_what_was_compiled_is_started_again_only_for_what_is_alike():
    """Of another alignment, or of columns that are no multiple of 16, Triton compiles other code."""
    from idbg.engine.kerneldiff.tensors import cuda

    where, rule = torch.device("cuda", 0), Rule(1e-5, 1e-4)
    memory = torch.randn(700 * 3008 + 64, device="cuda")
    cuda._compiled.clear()
    counts = []
    for start, columns, full in itertools.product((0, 0, 1, 4, 5, 0), (3008, 3001, 1), (True, False)):
        reference = memory[start : start + 700 * columns].view(700, columns)
        test, grid = reference * (1 + 1e-5), grid_of(700, columns)
        sides = Matrix(reference, grid, torch.float32, where), Matrix(test, grid, torch.float32, where), None
        found = cuda.measure(grid, rule, sides, full=full).values
        wanted = sums.measure(grid, rule, sides, full=full).values
        for place in (at.SUM_SQUARES, at.MAX_ABS, at.MISMATCHES):
            assert found[place] == pytest.approx(wanted[place], rel=3e-6), (start, columns, full, place)
        counts.append(len(cuda._compiled))
    assert counts[5] == counts[11] < counts[17] == counts[-1]


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64, torch.complex64, torch.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("rows", [300, 700], ids=["copied to memory", "on the device"])
def test_a_gpu_says_what_the_cpu_says(dtype: torch.dtype, rows: int):
    random = torch.Generator().manual_seed(1)
    reference = (3 * torch.randn(rows, 400, generator=random)).to(dtype)
    assert native.wait() and (reference.numel() < FEW) == (rows == 300)
    test = reference.clone()
    test[7, 9] = test[7, 9] + 2 if dtype.itemsize > 1 else 1.0
    here, there = compare_tensors(reference, test), compare_tensors(reference.cuda(), test.cuda())
    assert (here.failed_by, here.mismatches, here.worst) == (there.failed_by, there.mismatches, there.worst)
    assert (here.histogram, here.max_ulp) == (there.histogram, there.max_ulp)
    assert here.cosine == pytest.approx(there.cosine, abs=1e-9)
    for block, twin in zip(here.blocks, there.blocks, strict=True):
        assert (block.rows, block.columns) == (twin.rows, twin.columns)
    assert compare_tensors(reference, reference.cuda()).passed


@pytest.mark.gpu
@on_gpu
def test_three_sides_on_a_gpu():
    exact = torch.randn(4096, 1000, dtype=torch.float64, device="cuda")
    eager, test = exact.float(), torch.nextafter(exact.float(), torch.tensor(9.0, device="cuda"))
    assert compare_sides(eager, test, exact).passed
    test[:, -1] = 0
    found = compare_sides(eager, test, exact)
    assert "column" in found.failed_by
    assert found.blocks[1].columns == (999, 1000)


@pytest.mark.gpu
@on_gpu
def test_a_gpu_is_asked_once():
    reference = torch.randn(512, 512, device="cuda")
    test = reference + 1e-6
    compare_tensors(reference, test)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compare_tensors(reference, test)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    asked = [str(one.message) for one in caught if "synchroniz" in str(one.message)]
    assert len(asked) == 1, asked


if __name__ == "__main__":
    assert_same_figures("cpu", SHAPES[:-1], (torch.float32,))
    assert_same_figures("cpu", SHAPES[-1:], (torch.float32,), turns=False)
    assert_same_figures("cpu", LONG, (torch.float32,), asked=(False,))
    assert_same_figures("cpu", ((3, 70),), tuple(dtype for dtype in DTYPES if dtype != torch.float32))
