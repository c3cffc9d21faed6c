"""A classifier whose loss is wrong when it is compiled: somebody's pass rounds the constants of GELU."""

import torch
from torch import nn
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files


class RoundConstants(CustomGraphPass):
    """Writes constants with one digit, so that our kernels can hold them in four bits."""

    def __call__(self, graph):
        for node in graph.nodes:
            if node.target is torch.ops.aten.mul.Tensor:
                node.args = tuple(round(each, 1) if isinstance(each, float) else each for each in node.args)

    def uuid(self):
        return get_hash_for_files((__file__,))  # or Inductor's cache would give back what an older text of it made


config.post_grad_custom_post_pass = RoundConstants()


def program():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 10))
    labels = torch.randint(0, 10, (8,))
    return model, (torch.randn(8, 32),), lambda logits: nn.functional.cross_entropy(logits, labels)
