"""A dispatch mode that sees every op, also those inside of higher-order ops."""

from contextlib import nullcontext
from typing import Any

from idbg.engine.compat import comparing
from idbg.engine.compat.torch_types import HigherOrderOperator, OpOverload, TorchDispatchMode

Op = OpOverload | HigherOrderOperator
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class OpMode(TorchDispatchMode):
    """While it is active, `run` runs each op in the place of torch."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Op, types: object, args: Args = (), kwargs: Kwargs | None = None) -> object:
        given = dict(kwargs or {})
        if isinstance(func, OpOverload):
            return self.run(func, args, given)
        kernel = comparing.dense_kernel(func)
        with self if kernel else nullcontext():  # a higher-order op runs its graphs op by op
            return (kernel or func)(*args, **given)

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        """Run the op and return its result."""
        raise NotImplementedError
