"""Classes and functions of torch that have no public path: ops, dispatch modes, pytrees, fake tensors."""

from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

__all__ = [
    "FakeTensor",
    "HigherOrderOperator",
    "OpOverload",
    "TorchDispatchMode",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
]
