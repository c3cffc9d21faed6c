"""What does the program compute, op by op, when all its floating arithmetic is done in float64?

`Float64` keeps what is computed in it in float64, whatever lower floating dtype the program asks for; `widened` lends
parameters, buffers and inputs float64 copies of their values. Random numbers are drawn in the dtype that the program
draws them in, so that they are the same ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeGuard, cast

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator, OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from idbg.engine.compat import comparing, fx
from idbg.engine.compat.lowering import Compiled
from idbg.engine.kerneldiff.float64.draws import DRAWS_INSIDE, Op, draw_of, draws_outside, place_of
from idbg.engine.kerneldiff.float64.wide_ops import in_float64
from idbg.schema.errors import said

_WAS = "_idbg_was"  # on a tensor of ours: the dtype that the program's own would have, where it is not `like`

_Args = tuple[object, ...]
_Kwargs = Mapping[str, object]

_TAKES_DEFAULT_DTYPE = ("rand", "randn", "normal")
_REINTERPRETS = ("view.dtype", "view_copy.dtype")


class NotInFloat64(Exception):
    """The program does something that has no meaning in float64: the message says what."""


def wide(dtype: torch.dtype) -> torch.dtype:
    """float64 for floats, complex128 for complex numbers; any other dtype as it is."""
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype


def is_narrow(value: object) -> TypeGuard[Tensor]:
    """Whether it is a tensor of floating or complex numbers that float64 (complex128) would hold with more digits."""
    return isinstance(value, Tensor) and wide(value.dtype) != value.dtype


def usual_dtype(tensors: Iterable[Tensor]) -> torch.dtype:
    """The narrow dtype that most of the tensors have; torch's default where none is narrow."""
    counts = Counter(tensor.dtype for tensor in tensors if is_narrow(tensor) and not tensor.dtype.is_complex)
    return counts.most_common(1)[0][0] if counts else torch.get_default_dtype()


@contextmanager
def widened(tensors: Iterable[Tensor]) -> Iterator[None]:
    """While it lasts, these tensors (leaves of autograd) hold float64 copies; what is written to them is lost after."""
    kept = [(tensor, tensor.data) for tensor in {id(each): each for each in tensors}.values() if _can_be_lent(tensor)]
    by_memory = Counter((fx.storage_of(data)[0], data.dtype) for _, data in kept)
    bases: dict[int, Tensor] = {}
    try:
        for tensor, data in kept:
            memory = fx.storage_of(data)[0]
            if by_memory[memory, data.dtype] == 1:
                tensor.data = data.to(wide(data.dtype))
                continue
            if memory not in bases:  # views of one memory stay views of one
                flat = torch.empty(0, dtype=data.dtype, device=data.device).set_(data.untyped_storage())
                bases[memory] = flat.to(wide(data.dtype))
            tensor.data = bases[memory].as_strided(data.shape, data.stride(), data.storage_offset())
        yield
    finally:
        for tensor, data in kept:
            tensor.data = data


def _can_be_lent(tensor: Tensor) -> bool:
    return is_narrow(tensor) and tensor.is_leaf and tensor.layout == torch.strided and not tensor.is_inference()


class Float64(TorchDispatchMode):
    """While it is in force, every floating tensor that an op takes or makes is float64 (complex128).

    `like` is the dtype that the program mostly computes in: what tensors are taken to have been where nothing else is
    known. `draws` says what random numbers were drawn.
    """

    supports_higher_order_operators = True

    def __init__(self, like: torch.dtype = torch.float32) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.like = like
        self.draws: list[str] = []
        self._default = torch.get_default_dtype()
        self._twins: dict[int, tuple[Tensor, Tensor]] = {}
        self._around = ExitStack()

    def __enter__(self) -> "Float64":
        self._default = torch.get_default_dtype()
        self._around.callback(torch.set_default_dtype, self._default)
        torch.set_default_dtype(torch.float64)  # what int / int and torch.ones(2) give
        for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
            self._around.enter_context(torch.autocast(device, enabled=False))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        self._around.close()
        self._twins.clear()

    def __torch_dispatch__(
        self, func: Op, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        given = dict(kwargs or {})
        name = fx.op_name(func)
        if isinstance(func, HigherOrderOperator):
            return self._nested(func, args, given)
        if f"{name}.{func._overloadname}" in _REINTERPRETS:
            raise NotInFloat64(f"{func} reads a tensor's bits as another dtype")
        if draws_outside(func):
            return self._drawn(func, name, args, given)
        if DRAWS_INSIDE.fullmatch(name) and (cast("float | None", _argument(func, "dropout_p", args, given)) or 0) > 0:
            raise NotInFloat64(f"{func} draws random numbers inside of its kernel")
        was = self._result_was(args, given)
        args, given = tree_map(self._wide, (args, given))
        return self._marked(in_float64(func, args, given), was)

    def _wide(self, value: object) -> object:
        """A tensor in float64: its twin, so that what is written to it is found again. A dtype: what stands for it."""
        if isinstance(value, torch.dtype):
            return wide(value)
        if not is_narrow(value):
            return value
        if id(value) not in self._twins:
            self._twins[id(value)] = (value, value.to(wide(value.dtype)))
        return self._twins[id(value)][1]

    def held(self, value: object) -> object:
        """What stands for this value while the mode is in force: a tensor in float64, with what was written to it."""
        return self._wide(value)

    def _was(self, tensor: Tensor) -> torch.dtype:
        return tensor.dtype if is_narrow(tensor) else cast("torch.dtype", getattr(tensor, _WAS, self.like))

    def _result_was(self, args: _Args, kwargs: _Kwargs) -> torch.dtype:
        """The dtype that the program's own result would have: the one that is asked for, or the widest argument's."""
        flat = tree_leaves((args, kwargs))
        asked = [leaf for leaf in flat if isinstance(leaf, torch.dtype)]
        if asked:
            return asked[0]
        dtypes = {self._was(leaf) for leaf in flat if isinstance(leaf, Tensor) and leaf.dtype.is_floating_point}
        if not dtypes:
            return self._default
        widest, *others = dtypes
        for dtype in others:
            widest = torch.promote_types(widest, dtype)
        return widest

    def _marked(self, result: object, was: torch.dtype) -> object:
        """The result in float64, with a note of what it would have been if that is not the usual."""

        def marked(value: object) -> object:
            value = value.to(wide(value.dtype)) if is_narrow(value) else value
            if was != self.like and isinstance(value, Tensor) and value.dtype == torch.float64:
                setattr(value, _WAS, was)
            return value

        return tree_map(marked, result)

    def _nested(self, op: HigherOrderOperator, args: _Args, kwargs: _Kwargs) -> object:
        """An op that calls graphs: torch's own kernel for plain tensors, with the mode in force below it."""
        name = fx.op_name(op)
        kernel: Compiled | None = _branch_taken if name == "cond" else comparing.dense_kernel(op)
        if kernel is None:
            raise NotInFloat64(f"torch.ops.higher_order.{name} cannot be run op by op")
        args, given = tree_map(self._wide, (args, dict(kwargs)))
        super().__enter__()  # type: ignore[no-untyped-call]
        try:
            return kernel(*args, **given)
        finally:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _drawn(self, func: OpOverload, name: str, args: _Args, kwargs: dict[str, object]) -> object:
        """An op that draws random numbers, in the program's own dtypes."""
        place = place_of(cast("torch.Generator | None", kwargs.get("generator")))
        if name in _TAKES_DEFAULT_DTYPE and not any(isinstance(leaf, Tensor) for leaf in tree_leaves((args, kwargs))):
            kwargs["dtype"] = kwargs.get("dtype") or self._default
        was = self._result_was(args, kwargs)
        twins: tuple[_Args, _Kwargs] = tree_map(
            lambda leaf: leaf if isinstance(leaf, torch.dtype) else self._wide(leaf), (args, kwargs)
        )
        narrow_args, narrow_kwargs = tree_map(self._narrow, twins)
        result = func(*narrow_args, **narrow_kwargs)
        self.draws.append(draw_of(name, result, place))
        if name == "native_dropout":
            return self._dropped_out(twins[0], result[1])
        written = fx.written(func)
        if not written:
            return self._marked(result, was)
        for at in written:
            argument = func._schema.arguments[at].name
            wide_one = cast("Tensor", _argument(func, argument, *twins))
            wide_one.copy_(cast("Tensor", _argument(func, argument, narrow_args, narrow_kwargs)))
        return wide_one

    def _narrow(self, value: object) -> object:
        return value.to(self._was(value)) if isinstance(value, Tensor) and value.dtype == torch.float64 else value

    def _dropped_out(self, args: _Args, mask: Tensor) -> tuple[Tensor, Tensor]:
        value, chance = cast("tuple[Tensor, float]", args[:2])
        kept = value * mask
        return (kept / (1 - chance) if chance < 1 else kept), mask


def _branch_taken(chosen: Tensor, then: Compiled, otherwise: Compiled, operands: _Args) -> object:
    return then(*operands) if chosen else otherwise(*operands)


def _argument(func: OpOverload, name: str, args: _Args, kwargs: _Kwargs) -> object:
    """The argument of this name, wherever it was given; None where it was not."""
    if name in kwargs:
        return kwargs[name]
    names = [argument.name for argument in func._schema.arguments]
    at = names.index(name) if name in names else len(args)
    return args[at] if at < len(args) else None


def why_not(error: BaseException) -> str:
    """One sentence for a report: why there is no float64 side."""
    told = said(error).strip().partition("\n")[0] or type(error).__name__
    return told if isinstance(error, NotInFloat64) else f"the program cannot run in float64: {told}"
