"""A program whose kernels are right and whose graph is wrong: a pass turns the 0.5 of GELU into 0.5003."""

import torch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.fx import Graph


class Wrong(CustomGraphPass):
    def __call__(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.mul.Tensor:
                node.args = tuple(0.5003 if each == 0.5 else each for each in node.args)

    def uuid(self) -> str:
        return "wrong"


config.post_grad_custom_post_pass = Wrong()


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(32, 64), torch.nn.Linear(64, 16)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.up(x)
        active = torch.nn.functional.gelu(hidden)
        return {"hidden": hidden, "out": self.down(active).softmax(-1)}


def program() -> object:
    torch.manual_seed(0)
    return Model(), (torch.randn(8, 32),)
