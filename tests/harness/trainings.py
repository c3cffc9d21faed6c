"""Small training steps, clean and planted, for tests of N steps."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from idbg.engine.program.load import Workload

Backend = Callable[[GraphModule, list[Tensor]], Callable[..., Any]]


def net(*, norm: bool = False, device: str = "cpu") -> nn.Sequential:
    """Two layers with a GELU between them."""
    torch.manual_seed(0)
    between = nn.BatchNorm1d(32) if norm else nn.Identity()
    return nn.Sequential(nn.Linear(16, 32), between, nn.GELU(), nn.Linear(32, 4)).to(device)


def optimizer_of(kind: str, model: nn.Module, rate: float) -> torch.optim.Optimizer:
    """`adam`, `adamw` or `sgd` (with momentum); the last two decay."""
    if kind == "adam":
        return torch.optim.Adam(model.parameters(), rate)
    if kind == "adamw":
        return torch.optim.AdamW(model.parameters(), rate, weight_decay=0.1)
    return torch.optim.SGD(model.parameters(), rate, momentum=0.9, weight_decay=0.05)


def training(
    kind: str = "sgd",
    *,
    rate: float = 0.05,
    pieces: int = 1,
    dtype: torch.dtype | None = None,
    scale: float = 0.0,
    every: int = 1,
    decays: bool = False,
    model: nn.Module | None = None,
    device: str = "cpu",
) -> Workload:
    """A whole step. `pieces`: of the batch, whose gradients accumulate; `every`: how many calls accumulate; `dtype`: of
    autocast; `scale`: a GradScaler's first; `decays`: the learning rate does.
    """
    model = model or net(device=device)
    torch.manual_seed(1)
    x, y = torch.randn(8, 16, device=device), torch.randint(0, 4, (8,), device=device)
    optimizer = optimizer_of(kind, model, rate)
    scaler = torch.amp.GradScaler(device, init_scale=scale or 1.0, enabled=bool(scale))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5 if decays else 1.0)
    calls = 0

    def step(x: Tensor, y: Tensor) -> Tensor:
        nonlocal calls
        total = torch.zeros((), device=device)
        for piece, labels in zip(x.chunk(pieces), y.chunk(pieces), strict=True):
            with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
                loss = nn.functional.cross_entropy(model(piece), labels) / pieces
            (scaler.scale(loss) if scale else loss).backward()
            total = total + loss.detach()
        calls += 1
        if calls % every:
            return total
        if scale:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        if decays:
            schedule.step()
        optimizer.zero_grad(set_to_none=False)
        return total

    return Workload(step, (x, y), {}, None, grad=True)


def keeping_gradients(kind: str, rate: float = 0.05, *, norm: bool = False) -> Workload:
    """A step that leaves its gradients to be looked at."""
    model = net(norm=norm)
    torch.manual_seed(1)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    optimizer = optimizer_of(kind, model, rate)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Workload(step, (x, y), {}, None, grad=True)


def with_loss(*, norm: bool = False) -> Workload:
    """A model with a loss, and no optimizer."""
    model = net(norm=norm)
    torch.manual_seed(1)
    labels = torch.randint(0, 4, (8,))
    return Workload(model, (torch.randn(8, 16),), {}, lambda out: nn.functional.cross_entropy(out, labels))


def lowered(gm: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """As Inductor compiles it."""
    from torch._inductor.compile_fx import compile_fx

    return cast("Callable[..., Any]", compile_fx(gm, inputs))


def without_decay(gm: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """Inductor, but for the decay of weights, which is lost."""
    for node in list(gm.graph.nodes):
        decoupled = node.op == "call_method" and node.target == "mul_" and "params" in str(node.args[0].target)
        if decoupled:
            gm.graph.erase_node(node)
        elif node.op == "call_method" and node.target == "add" and "alpha" in node.kwargs:
            node.kwargs = {**node.kwargs, "alpha": 0.0}
    gm.recompile()
    return lowered(gm, inputs)


def without_foreach_decay(gm: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """Inductor, but for AdamW's decay of weights, which is lost where all are decayed by one call too."""
    for node in list(gm.graph.nodes):
        decays = node.op == "call_function" and "foreach_mul_" in str(node.target)
        if decays and isinstance(node.args[1], float) and 0.99 < node.args[1] < 1:
            gm.graph.erase_node(node)
            break  # the first: what follows is the optimizer's own
    return without_decay(gm, inputs)


def without_mean(gm: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """Inductor, but for the running mean of a batch norm, which goes into a copy."""
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and "batch_norm" in str(node.target):
            with gm.graph.inserting_before(node):
                copy = gm.graph.call_method("clone", (node.args[1],))
            node.args = (node.args[0], copy, *node.args[2:])
    gm.recompile()
    return lowered(gm, inputs)


def wrong_from(step: int, factor: float = 1.001) -> Backend:
    """Inductor, whose outputs are off from this call on."""

    def backend(gm: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        compiled = lowered(gm, inputs)
        calls = 0

        def call(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            outputs = compiled(*args)
            return tuple(one * factor for one in outputs) if calls >= step else outputs

        return call

    return backend
