"""Errors in what runs around kernels: extern calls, the order of what is returned, strides, memory that is reused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from tests.harness.plants.code import edited, replaced
from tests.harness.plants.plant import Plant, Planting


def early_reuse(*, backward: bool = False) -> Planting:
    """The memory planner takes a buffer for free which a later launch reads: once in each forward (or backward)."""
    return lambda: _early_reuse(backward)


@contextmanager
def _early_reuse(backward: bool) -> Iterator[None]:
    from torch._inductor.codegen import wrapper as inductor
    from torch._inductor.virtualized import V

    original: Any = inductor.AllocateLine.plan
    seen: dict[Any, list[Any]] = {}
    done: set[Any] = set()

    def plan(line: Any, state: Any) -> Any:
        planned = original(line, state)
        allocated, reads = (
            seen.setdefault(V.graph, []),
            V.graph.scheduler.nodes[line.scheduler_node_index].read_writes.reads,
        )
        key = inductor.buffer_reuse_key(line.node)
        free = {free.node.get_name() for lines in state.reuse_pool.values() for free in lines}
        taken = {read.name for read in reads} | free
        live = [
            other for other in allocated if inductor.buffer_reuse_key(other) == key and other.get_name() not in taken
        ]
        if planned is line and live and V.graph not in done and bool(V.graph.is_backward) == backward:
            done.add(V.graph)
            return inductor.ReuseLine(line.wrapper, live[0], line.node, delete_old=False)
        allocated.append(line.node)
        return planned

    with patch.object(inductor.AllocateLine, "plan", plan):
        yield


def _writes_first(nodes: list[Any]) -> list[Any]:
    writing = [node for node in nodes if any(each.get_mutations() for each in node.get_outputs())]
    return writing + [node for node in nodes if node not in writing]


@contextmanager
def written_early() -> Iterator[None]:
    """A pass of the scheduler moves what writes to an argument before what reads it."""
    with torch._inductor.config.patch(_post_fusion_custom_pass=_writes_first):
        yield


def averaged(state: Tensor, x: Tensor, w: Tensor) -> Tensor:
    old = state @ w  # guilty
    state.mul_(0.5).add_(x)
    return old


def kept(x: Tensor, w: Tensor) -> Tensor:
    a = x.sin()
    b = (a @ w).cos()
    c = (b @ w).sin()  # guilty
    return (c @ w) * 0.1 + a


def kept_by_a_kernel(x: Tensor, w: Tensor) -> Tensor:
    a = x.exp()
    b = a @ w
    c = b.cos()
    d = (c @ w).softmax(-1)  # guilty
    return (d @ w) * 0.1 - a


def saved(x: Tensor, w: Tensor) -> Tensor:
    h = x.exp()
    a = (h @ w).sin()
    b = (a @ w).cos()
    return b @ w + h.tanh()  # guilty


def overwritten(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    a = x.sin()  # guilty
    b = (a @ w).cos()
    return a, (b @ w).tanh()


def product(x: Tensor, w: Tensor) -> Tensor:
    h = x.sin()
    h = h @ w  # guilty
    return h.cos()


def in_one(x: Tensor, w: Tensor) -> Tensor:
    return (x.sin() @ w).cos()  # guilty


def biased(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    h = x.sin()
    h = torch.addmm(b, h, w)  # guilty
    return h.cos()


def batched(x: Tensor, y: Tensor) -> Tensor:
    h = x.sin()
    h = torch.bmm(h, y)  # guilty
    return h.cos()


def linear(x: Tensor, w: Tensor) -> Tensor:
    h = x.sin()
    h = h @ w.t()  # guilty
    return h.cos()


def two(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    h = x @ w
    return h.sin(), h.softmax(-1)  # guilty


SQUARE = ((32, 32), (32, 32))
BF16 = torch.bfloat16
MM = r"extern_kernels\.mm\((\w+), (\w+), out"

REUSE = (
    Plant("reuse", "extern", kept, SQUARE, early_reuse(), stage="kernels", maker="wrapper", made_by="call"),
    Plant(
        "reuse",
        "fused",
        kept_by_a_kernel,
        SQUARE,
        early_reuse(),
        stage="kernels",
        maker="wrapper",
        made_by="call",
        dtype=BF16,
    ),
    Plant(
        "order",
        "written_early",
        averaged,
        (*SQUARE, (32, 32)),
        written_early,
        stage="kernels",
        maker="wrapper",
        made_by="call",
        node="mm",
    ),
    Plant(
        "reuse",
        "saved",
        saved,
        SQUARE,
        early_reuse(backward=True),
        stage="kernels",
        maker="wrapper",
        made_by="call",
        backward=True,
    ),
    Plant(
        "reuse",
        "returned",
        overwritten,
        SQUARE,
        early_reuse(),
        stage="kernels",
        maker="wrapper",
        made_by="",
        no_kernel=True,
    ),
)

EXTERN = (
    Plant(
        "extern", "transposed_mm", product, SQUARE, edited(replaced(MM, r"extern_kernels.mm(\1, \2.t(), out")),
        stage="kernels", maker="kernel", made_by="mm", node="mm",
    ),
    Plant(
        "extern", "no_bias", biased, (*SQUARE, (32,)), edited(replaced(r"alpha=1, beta=1", "alpha=1, beta=0")),
        stage="kernels", maker="kernel", made_by="addmm", node="addmm", dtype=BF16,
    ),
    Plant(
        "extern", "swapped_bmm", batched, ((2, 16, 16), (2, 16, 16)),
        edited(replaced(r"extern_kernels\.bmm\((\w+), (\w+), out", r"extern_kernels.bmm(\2, \1, out")),
        stage="kernels", maker="kernel", made_by="bmm", node="bmm",
    ),
    Plant(
        "extern", "backward_mm", product, SQUARE,
        edited(replaced(r"extern_kernels\.mm\((\w+), (.*), out", r"extern_kernels.mm(\1.t(), \2, out"), backward=True),
        stage="kernels", maker="kernel", made_by="mm", node="mm", backward=True,
    ),
)  # fmt: skip

OTHER_STRIDES = replaced(
    r"reinterpret_tensor\((\w+), \(32, 32\), \(1, 32\), 0\)", r"reinterpret_tensor(\1, (32, 32), (32, 1), 0)"
)
STRIDES = (
    Plant(
        "stride", "reinterpreted", linear, SQUARE,
        edited(OTHER_STRIDES),
        stage="kernels", maker="kernel", made_by="mm", node="mm",
    ),
    Plant(
        "stride", "backward", linear, SQUARE,
        edited(OTHER_STRIDES, backward=True),
        stage="kernels", maker="kernel", made_by="mm", node="mm", backward=True, dtype=BF16,
    ),
)  # fmt: skip

SWAPPED = (
    Plant(
        "swapped", "returned", two, SQUARE, edited(replaced(r"return \((\w+), (\w+), \)", r"return (\2, \1, )")),
        stage="kernels", maker="wrapper", made_by="", no_kernel=True,
    ),
    Plant(
        "swapped", "gradients", in_one, SQUARE,
        edited(replaced(r"return \((\w+), (\w+), \)", r"return (\2, \1, )"), backward=True),
        stage="kernels", maker="wrapper", made_by="", no_kernel=True, backward=True,
    ),
)  # fmt: skip

PLANTS = (*REUSE, *EXTERN, *STRIDES, *SWAPPED)
