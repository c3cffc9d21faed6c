"""Errors in the Triton kernels that Inductor writes: their templates, an uninitialised tail, a race."""

import torch
from torch import Tensor

from tests.harness.plants.code import edited, replaced
from tests.harness.plants.plant import Plant

BF16 = torch.bfloat16
CUDA = ("cuda",)
SQUARE = ((64, 64), (64, 64))
UNEVEN = ((61, 61), (61, 61))  # no multiple of a block: the last one is masked
UNPADDED = {"shape_padding": False}  # Inductor pads a product where that was faster: the kernel that pads is cut too
AUTOTUNED = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"}

CUT = replaced(r"xmask = xindex < xnumel", "xmask = xindex < xnumel - 96")
K_LOOP = replaced(r"range\(0, tl\.cdiv\(K, BLOCK_K\)\)", "range(0, tl.cdiv(K, BLOCK_K) - 1)")
K_BATCHED = replaced(r"range\(K, 0, -BLOCK_K\)", "range(K - BLOCK_K, 0, -BLOCK_K)")
HALVES = replaced(r"tl\.store\((\w+) \+ \((x0)\)", r"tl.store(\1 + (\2 // 2)")  # two elements go to one place
NOT_ATOMIC = replaced(
    r"tl\.atomic_add\((\w+ \+ \(.*?\)), (\w+), ([\w &]+), sem='relaxed'\)", r"tl.store(\1, tl.load(\1, \3) + \2, \3)"
)
ONE_BLOCK = replaced(
    r"xoffset = tl\.program_id\(0\) \* XBLOCK", "xoffset = tl.program_id(0) // 2 * XBLOCK", kernel="cos"
)


def product(x: Tensor, w: Tensor) -> Tensor:
    h = x.sin()
    return (h @ w).cos()  # guilty


def batched(x: Tensor, y: Tensor) -> Tensor:
    h = x.sin()
    return torch.bmm(h, y).cos()  # guilty


def turned(x: Tensor, w: Tensor) -> Tensor:
    h = x.sin()
    h = h @ w  # guilty
    return h.cos()


def cut(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()  # guilty
    return h @ w


def added(x: Tensor, v: Tensor, at: Tensor) -> Tensor:
    h = x.cos()
    return h.index_add(0, at, v * 1.07)  # guilty


def at_kernels(kind: str, name: str, program, shapes, planting, **more) -> Plant:
    return Plant(
        kind, name, program, shapes, planting, stage="kernels", maker="kernel", made_by="triton", devices=CUDA, **more
    )


PLANTS = (
    at_kernels("template", "triton_mm", product, SQUARE, edited(K_LOOP), settings=AUTOTUNED),
    at_kernels(
        "template", "triton_bmm", batched, ((2, 64, 64),) * 2, edited(K_BATCHED), settings=AUTOTUNED, dtype=BF16
    ),
    at_kernels(
        "template", "triton_mm", turned, SQUARE, edited(K_LOOP, backward=True), settings=AUTOTUNED, backward=True
    ),
    at_kernels("tail", "mask", cut, UNEVEN, edited(CUT, poisoned=True), settings=UNPADDED, node="sin"),
    at_kernels("tail", "mask", cut, UNEVEN, edited(CUT, poisoned=True), settings=UNPADDED, node="sin", dtype=BF16),
    at_kernels(
        "tail", "mask", cut, UNEVEN, edited(CUT, poisoned=True, backward=True), settings=UNPADDED, backward=True
    ),
    at_kernels("race", "one_place", cut, UNEVEN, edited(HALVES, poisoned=True), node="sin"),
    at_kernels("race", "not_atomic", added, ((8, 16), (64, 16), (64,)), edited(NOT_ATOMIC), indices=1, node="index"),
    at_kernels(
        "race",
        "one_block",
        cut,
        UNEVEN,
        edited(ONE_BLOCK, poisoned=True, backward=True),
        backward=True,
        dtype=BF16,
        settings={"shape_padding": False},  # no kernel pads products: it would be of another line
    ),
)
