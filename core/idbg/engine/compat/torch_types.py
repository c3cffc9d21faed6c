"""Classes and functions of torch that have no public path: ops, dispatch modes, pytrees, fake tensors."""

from idbg.engine.compat.names import internals

HigherOrderOperator = internals._ops.HigherOrderOperator
OpOverload = internals._ops.OpOverload
FakeTensor = internals._subclasses.fake_tensor.FakeTensor
TorchDispatchMode = internals.utils._python_dispatch.TorchDispatchMode
tree_flatten, tree_leaves = internals.utils._pytree.tree_flatten, internals.utils._pytree.tree_leaves
tree_map, tree_map_only = internals.utils._pytree.tree_map, internals.utils._pytree.tree_map_only
containers = internals.utils._pytree.SUPPORTED_NODES
