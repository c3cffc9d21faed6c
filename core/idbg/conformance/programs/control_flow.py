"""Control flow"""

import torch
from functorch.experimental.control_flow import map as torch_map
from torch import Tensor

QUICK = ("cond", "branch_on_values")


def cond():
    """torch.cond on a value."""

    def model(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,))

    torch.manual_seed(0)
    return model, (torch.randn(4, 5),)


def loop():
    """while_loop with a counter and a tensor."""

    def model(count: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.while_loop(lambda count, x: count < 5, lambda count, x: (count + 1, x * 1.5), (count, x))

    torch.manual_seed(0)
    return model, (torch.tensor(0), torch.randn(3, 4))


def mapped():
    """map of a function over the first dim."""

    def model(x: Tensor, y: Tensor) -> Tensor:
        return torch_map(lambda row, y: row.softmax(0) + y, x, y)

    torch.manual_seed(0)
    return model, (torch.randn(5, 6), torch.randn(6))


def branch_on_values():
    """A Python `if` on a value: the graph breaks, and both parts are compiled."""

    def model(x: Tensor) -> Tensor:
        y = x.relu() + 1
        if y.sum() > 3:
            return y * 2
        return y - 1

    torch.manual_seed(0)
    return model, (torch.randn(6, 6),)


def loop_in_python():
    """Python's loops, lists and dicts around tensors, which Dynamo unrolls."""

    def model(x: Tensor, parts: dict[str, Tensor]) -> dict[str, Tensor]:
        for _ in range(4):
            x = x.sin() + 0.5
        return {name: part * x for name, part in parts.items()} | {"last": x}

    torch.manual_seed(0)
    return model, (torch.randn(4), {"a": torch.randn(4), "b": torch.randn(3, 4)})
