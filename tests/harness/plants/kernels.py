"""Errors in the kernels that Inductor writes: their templates, an uninitialised tail, a race."""

from typing import Any

import torch
from torch import Tensor

from tests.harness.plants.code import edited, replaced
from tests.harness.plants.plant import Plant

SQUARE = ((32, 32), (32, 32))
BF16 = torch.bfloat16
CPU = ("cpu",)
PARALLEL = {"cpp.min_chunk_size": 1, "cpp.threads": 2}

# Templates: the loop over K that a product of matrices is written from


def batched(x: Tensor, y: Tensor) -> Tensor:
    h = x.sin()
    return (h @ y).cos()  # guilty


class Turned(torch.autograd.Function):
    """Its backward is a product of contiguous batches: the template takes no other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return gradients[0] @ y, None  # guilty


def turned(x: Tensor, y: Tensor) -> Tensor:
    return Turned.apply(x, y)  # type: ignore[no-any-return]


BATCHES = ((2, 32, 32), (2, 32, 32))
CPP_TEMPLATES = {"max_autotune": True, "max_autotune_gemm_backends": "CPP"}

K_LOOP = replaced(r"\* Kr, K\)", "* Kr, K - 2)")
TEMPLATES = (
    Plant(
        "template",
        "cpp_bmm",
        batched,
        BATCHES,
        edited(K_LOOP),
        stage="kernels",
        maker="kernel",
        made_by="bmm",
        node="",
        settings=CPP_TEMPLATES,
        devices=CPU,
    ),
    Plant(
        "template",
        "cpp_bmm",
        batched,
        BATCHES,
        edited(K_LOOP),
        stage="kernels",
        maker="kernel",
        made_by="bmm",
        node="",
        settings=CPP_TEMPLATES,
        dtype=BF16,
        devices=CPU,
    ),
    Plant(
        "template",
        "cpp_bmm",
        turned,
        BATCHES,
        edited(K_LOOP, backward=True),
        stage="kernels",
        maker="kernel",
        made_by="bmm",
        node="",
        settings=CPP_TEMPLATES,
        backward=True,
        shown_by=Turned,
        devices=CPU,
    ),
)

# The last elements of a buffer are not written: the loop ends too soon, or its masked rest is left out


def cut(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()  # guilty
    return h @ w


def squashed(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w) * 1.07
    h = h.softmax(-1)  # guilty
    return h @ w


REST = replaced(r"C10_UNLIKELY\((.*)\)\)$", r"C10_UNLIKELY(false && (\1)))")
END = replaced(r"x0<static_cast<int64_t>\(1024L\)", "x0<static_cast<int64_t>(992L)")

TAILS = (
    Plant(
        "tail",
        "loop_end",
        cut,
        SQUARE,
        edited(END, poisoned=True),
        stage="kernels",
        maker="kernel",
        made_by="sin",
        node="sin",
        devices=CPU,
    ),
    Plant(
        "tail",
        "masked_rest",
        cut,
        ((27, 27), (27, 27)),
        edited(REST, poisoned=True),
        stage="kernels",
        maker="kernel",
        made_by="sin",
        node="sin",
        dtype=BF16,
        devices=CPU,
    ),
    Plant(
        "tail",
        "backward",
        cut,
        SQUARE,
        edited(END, poisoned=True, backward=True),
        stage="kernels",
        maker="kernel",
        made_by="cos",
        backward=True,
        devices=CPU,
    ),
)

# Threads do not see one another


def total(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    return (h * 1.07).sum()  # guilty


def added(x: Tensor, v: Tensor, at: Tensor) -> Tensor:
    h = x.cos()
    return h.index_add(0, at, v * 1.07)  # guilty


def outermost(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """The largest in one thread's half, the smallest in the other's: one of them is lost whoever comes last."""
    h = x @ w + torch.arange(32, device=x.device).to(x.dtype).mul(4).unsqueeze(1)
    return h.argmax(), h.argmin()  # guilty


def scaled(x: Tensor, s: Tensor) -> Tensor:
    return (x * s).sin()  # guilty


ONE_PLACE = replaced(r"(tmp_acc\d+_vec_arr)\[tid\] = ", r"\1[0] = ")
ADD = replaced(
    r"atomic_add_vec<.*?>\((\w+), (\w+), (\w+)\);",
    r"constexpr int n_ = decltype(\3)::size();"  # 8 with AVX2, 16 with AVX-512
    r"int64_t at_[n_]; \2.store(at_); float add_[n_], was_[n_]; \3.store(add_);"
    r"for (int i = 0; i < n_; i++) was_[i] = \1[at_[i]]; usleep(2000);"
    r"for (int i = 0; i < n_; i++) \1[at_[i]] = was_[i] + add_[i];",
)

RACES = (
    Plant(
        "race",
        "sum",
        total,
        SQUARE,
        edited(ONE_PLACE),
        stage="kernels",
        maker="kernel",
        made_by="sum",
        node="sum",
        settings=PARALLEL,
        devices=CPU,
    ),
    Plant(
        "race",
        "scatter",
        added,
        ((8, 16), (64, 16), (64,)),
        edited(lambda text: ADD(text).replace("#include <torch/csrc", "#include <unistd.h>\n#include <torch/csrc")),
        indices=1,
        stage="kernels",
        maker="kernel",
        made_by="index_add",
        node="index",
        settings=PARALLEL,
        devices=CPU,
    ),
    Plant(
        "race",
        "argmax",
        outermost,
        SQUARE,
        edited(ONE_PLACE),
        stage="kernels",
        maker="kernel",
        made_by="argmax",
        node="arg",
        dtype=BF16,
        settings=PARALLEL,
        devices=CPU,
    ),
    Plant(
        "race",
        "gradient",
        scaled,
        ((32, 32), ()),
        edited(ONE_PLACE, backward=True),
        stage="kernels",
        maker="kernel",
        made_by="sum",
        node="sum",
        backward=True,
        settings=PARALLEL,
        devices=CPU,
    ),
)

PLANTS = (*TEMPLATES, *TAILS, *RACES)
