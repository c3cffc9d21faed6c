"""Run a program op by op with all of its floating arithmetic in float64.

`Float64` keeps what is computed in float64, whatever lower floating dtype the program names; copies.py gives
parameters, buffers and inputs float64 copies. Random numbers are drawn in the program's own dtypes and on its devices,
so that they are the same. For a device without float64 all else is computed on the CPU.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import cast

import torch
from torch import Tensor

from idbg.engine.compat import comparing, fx, gpu
from idbg.engine.compat.torch_types import HigherOrderOperator, OpOverload, TorchDispatchMode, tree_leaves, tree_map
from idbg.engine.kerneldiff.float64 import attention
from idbg.engine.kerneldiff.float64.copies import weights_filled
from idbg.engine.kerneldiff.float64.devices import DeviceMap
from idbg.engine.kerneldiff.float64.draws import argument, draw_of, draws_inside, draws_outside, generator_position
from idbg.engine.kerneldiff.float64.memory import Memory
from idbg.engine.kerneldiff.float64.op_mode import Op
from idbg.engine.kerneldiff.float64.program_view import ProgramView
from idbg.engine.kerneldiff.float64.undeclared_writes import ReadOnlyArguments, UndeclaredWrite
from idbg.engine.kerneldiff.float64.wide_ops import in_float64
from idbg.engine.kerneldiff.tensors.float64_device import (
    is_converted,
    is_narrow,
    on_float64_device,
    to_float64,
    wide_dtype,
)
from idbg.schema.errors import first_line

_PROGRAM_DTYPE = "_idbg_program_dtype"  # on a tensor of ours, where that is not `like`

_Args = tuple[object, ...]
_Kwargs = Mapping[str, object]

_TAKES_DEFAULT_DTYPE = ("rand", "randn", "normal")
_REINTERPRETS = ("view.dtype", "view_copy.dtype")
_USERS_KERNEL = "triton_kernel_wrapper"
_RECOMPUTED = ("run_and_save_rng_state", "run_with_rng_state")


class NotInFloat64(Exception):
    """The program does something that is not possible in float64; the message has the reason."""


class Float64(TorchDispatchMode):
    """While active, every floating tensor that an op takes or returns is float64 (complex128).

    `like` is the program's usual dtype, assumed for tensors of which nothing else is known. `tensors` are the
    program's, before float64 copies replace their data; `unwritten` are those that nothing writes to: they are
    converted for each op anew, and not stored. What waits may move, if there is a `memory`. `draws` records random
    numbers, `undeclared` the undeclared writes of custom ops. With `narrows`, an op without float64 runs in the
    program's own dtypes and is recorded in `narrowed`.
    """

    supports_higher_order_operators = True

    def __init__(
        self,
        like: torch.dtype = torch.float32,
        tensors: Iterable[Tensor] = (),
        unwritten: Iterable[Tensor] = (),
        *,
        narrows: bool = False,
        memory: Memory | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.like = like
        self._unwritten = {id(tensor): tensor for tensor in unwritten}
        self._programs = {id(tensor): (tensor, tensor.dtype) for tensor in tensors}
        self.devices = DeviceMap(tensor for tensor, _ in self._programs.values())
        self.draws: list[str] = []
        self.undeclared: set[UndeclaredWrite] = set()
        self.narrows = narrows
        self.memory = memory
        self._fresh: list[Tensor] = []  # twins that the running op has made
        self.narrowed: dict[str, torch.dtype] = {}
        self._default = torch.get_default_dtype()
        self._twins: dict[int, tuple[Tensor, Tensor]] = {}
        self._around = ExitStack()

    def __enter__(self) -> "Float64":
        self._default = torch.get_default_dtype()
        self._around.callback(torch.set_default_dtype, self._default)
        torch.set_default_dtype(torch.float64)  # what int / int and torch.ones(2) give
        for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
            self._around.enter_context(torch.autocast(device, enabled=False))
        if self.devices.is_elsewhere:
            self._around.enter_context(comparing.dropout_replaced(self.devices.dropped_out))
        self._around.enter_context(ProgramView(self))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        self._around.close()
        self._twins.clear()

    def __torch_dispatch__(
        self, func: Op, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        named = dict(kwargs or {})
        taken: set[int] = set()

        def op() -> object:
            # in an op, tensors report their real devices and dtypes, not the program's
            with comparing.tensors_as_they_are():
                if self.memory is not None:
                    taken.update(self.memory.fill((args, named), begins=True))
                with weights_filled(func, args, named):
                    return self._in_float64(func, args, named)

        if self.memory is None:
            return op()
        result = self.memory.run(func, op)
        with comparing.tensors_as_they_are():
            self.memory.hold(self._fresh, taken)
            self.memory.ran(func, result, taken)
        self._fresh.clear()
        return result

    def _in_float64(self, func: Op, args: _Args, kwargs: dict[str, object]) -> object:
        name = fx.op_name(func)
        if isinstance(func, HigherOrderOperator):
            return self._nested(func, args, kwargs)
        if f"{name}.{func._overloadname}" in _REINTERPRETS:
            raise NotInFloat64(f"{func} reads a tensor's bits as another dtype")
        if draws_outside(func):
            return self._drawn(func, name, args, kwargs)
        place = generator_position(None) if (drawn := draws_inside(func, args, kwargs)) else ""
        if drawn and not attention.is_fused(func):
            raise NotInFloat64(f"{func} draws random numbers inside of its kernel")
        was, at = self._result_was(name, args, kwargs)
        try:
            wide_args, wide_kwargs = tree_map(self._wide, (args, kwargs))
            before = ReadOnlyArguments(func, wide_args, wide_kwargs)
            wide = in_float64(func, wide_args, wide_kwargs, was)
            self.undeclared.update((*(write for write, _, _ in before.written()), *before.returned(wide)))
            result = self._marked(wide, was, at)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            if not self.narrows or isinstance(error, torch.OutOfMemoryError):
                raise
            result = self._in_own_dtypes(func, args, kwargs)
        if drawn:
            self.draws.append(draw_of(name, None, place))
        return result

    def _wide(self, value: object) -> object:
        """A tensor's float64 twin, which keeps what is written to it; the float64 dtype or device of one of these."""
        if isinstance(value, torch.dtype):
            return wide_dtype(value)
        if isinstance(value, torch.device):
            return self.devices.moved(value)
        if not is_converted(value):
            return value
        if id(value) in self._unwritten:
            self.devices.moved(value.device)
            return to_float64(value)
        if id(value) not in self._twins:
            self.devices.moved(value.device)
            self._twins[id(value)] = (value, to_float64(value))
            self._fresh.append(self._twins[id(value)][1])
        twin = self._twins[id(value)][1]
        if self.memory is not None:
            self.memory.fill(twin)
        return twin

    def read(self, tensor: Tensor) -> None:
        """The program reads the tensor's memory without an op."""
        if self.memory is not None:
            self.memory.release(tensor)

    def converted(self, value: object) -> object:
        """The value as ops see it: a tensor in float64, with what was written to it."""
        return self._wide(value)

    def dtype_of(self, tensor: Tensor) -> torch.dtype:
        """The tensor's dtype in the program."""
        if is_narrow(tensor):
            return tensor.dtype
        _, before = self._programs.get(id(tensor), (None, self.like))
        return cast("torch.dtype", getattr(tensor, _PROGRAM_DTYPE, before))

    def device_of(self, tensor: Tensor) -> torch.device:
        """The tensor's device in the program."""
        return self.devices.of(tensor) if self.devices.is_elsewhere else tensor.device

    def note_dtype(self, tensor: Tensor, dtype: torch.dtype) -> None:
        """Record the program's dtype of a tensor of float64."""
        setattr(tensor, _PROGRAM_DTYPE, dtype)

    def _result_was(self, name: str, args: _Args, kwargs: _Kwargs) -> tuple[torch.dtype, torch.device]:
        """The program's dtype and device of the result. The dtype is the one that is passed, or the widest
        argument's.
        """
        flat = tree_leaves((args, kwargs))
        return self._dtype_was(name, flat), self.devices.of_result(flat)

    def _dtype_was(self, name: str, flat: list[object]) -> torch.dtype:
        named = [leaf for leaf in flat if isinstance(leaf, torch.dtype)]
        # to another device: torch fills in the dtype that the tensor has here
        filled_in = name == "_to_copy" and isinstance(flat[0], Tensor) and named == [flat[0].dtype]
        if named and not filled_in:
            return named[0]
        floats = [leaf for leaf in flat if isinstance(leaf, Tensor) and leaf.dtype.is_floating_point]
        # beside tensors that have dimensions, one that has none decides nothing
        dtypes = {self.dtype_of(leaf) for leaf in [leaf for leaf in floats if leaf.ndim] or floats}
        if not dtypes:
            return self._default
        widest, *others = dtypes
        for dtype in others:
            widest = torch.promote_types(widest, dtype)
        return widest

    def _marked(self, result: object, was: torch.dtype, at: torch.device) -> object:
        """The result in float64, marked with its dtype and device in the program if these are not the usual."""

        def marked(value: object) -> object:
            own = value.dtype if is_narrow(value) else was
            value = to_float64(value) if is_converted(value) else value
            if own != self.like and isinstance(value, Tensor) and value.dtype == torch.float64:
                setattr(value, _PROGRAM_DTYPE, own)
            return value

        held = tree_map(marked, result)
        self.devices.mark(held, at)
        return held

    def _nested(self, op: HigherOrderOperator, args: _Args, kwargs: _Kwargs) -> object:
        """An op that calls graphs: torch's own kernel for plain tensors, with the mode active below it."""
        name = fx.op_name(op)
        if name in _RECOMPUTED:
            return self._recomputed(name, args, dict(kwargs))
        kernel = comparing.dense_kernel(op)
        if kernel is None:
            raise NotInFloat64(f"torch.ops.higher_order.{name} cannot be run op by op")
        if name.startswith(_USERS_KERNEL):
            return self._users_kernel(name, kernel, kwargs)
        args, kwargs = tree_map(self._wide, (args, dict(kwargs)))
        super().__enter__()  # type: ignore[no-untyped-call]
        try:
            return kernel(*args, **kwargs)
        finally:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _recomputed(self, name: str, args: _Args, kwargs: dict[str, object]) -> object:
        """A random op of a checkpointed region: the forward returns the generator's state with the numbers, and the
        backward draws the same again, which is not recorded.
        """
        if name == _RECOMPUTED[0]:
            op, *rest = args
            return self._generator_state(rest), self._in_float64(cast("Op", op), tuple(rest), kwargs)
        state, op, *rest = args
        before, drawn = self._generator_state(rest), len(self.draws)
        self._set_generator_state(rest, cast("Tensor", state))
        try:
            return self._in_float64(cast("Op", op), tuple(rest), kwargs)
        finally:
            self._set_generator_state(rest, before)
            del self.draws[drawn:]

    def _draws_on_gpu(self, args: list[object]) -> bool:
        return gpu.in_use() and self.devices.of_result(tree_leaves(args)).type == "cuda"

    def _generator_state(self, args: list[object]) -> Tensor:
        return torch.cuda.get_rng_state() if self._draws_on_gpu(args) else torch.get_rng_state()

    def _set_generator_state(self, args: list[object], state: Tensor) -> None:
        put = torch.cuda.set_rng_state if self._draws_on_gpu(args) else torch.set_rng_state
        put(state.cpu())

    def _users_kernel(self, name: str, kernel: Callable[..., object], kwargs: _Kwargs) -> object:
        """A Triton kernel, which is written for the program's own dtypes: it writes to tensors, or to copies of them
        that it returns.
        """
        (_, twins), (_, narrow) = self._narrowed((), kwargs)
        result = kernel(**narrow)
        self._note_narrow(name, narrow)
        if result is None:
            for wide_one, written in zip(tree_leaves(twins), tree_leaves(narrow), strict=True):
                if isinstance(wide_one, Tensor) and wide_one is not written:
                    wide_one.copy_(to_float64(written))
        return self._marked(result, self.like, self.devices.of_result(tree_leaves(twins)))

    def _drawn(self, func: OpOverload, name: str, args: _Args, kwargs: dict[str, object]) -> object:
        """An op that draws random numbers, in the program's own dtypes."""
        place = generator_position(cast("torch.Generator | None", kwargs.get("generator")))
        if name in _TAKES_DEFAULT_DTYPE and not any(isinstance(leaf, Tensor) for leaf in tree_leaves((args, kwargs))):
            kwargs["dtype"] = kwargs.get("dtype") or self._default
        was, at = self._result_was(name, args, kwargs)
        twins, narrow = self._narrowed(args, kwargs)
        result = func(*narrow[0], **narrow[1])
        self.draws.append(draw_of(name, result, place))
        if name == "native_dropout":
            return self._marked(self._dropped_out(twins[0], on_float64_device(result[1])), was, at)
        return self._carried(func, twins, narrow, self._marked(result, was, at))

    def _in_own_dtypes(self, func: OpOverload, args: _Args, kwargs: _Kwargs) -> object:
        """An op without float64, in the program's own dtypes: its result is no more exact than these."""
        was, at = self._result_was(fx.op_name(func), args, kwargs)
        twins, narrow = self._narrowed(args, kwargs)
        result = self._marked(func(*narrow[0], **narrow[1]), was, at)
        self._note_narrow(fx.op_name(func), narrow)
        return self._carried(func, twins, narrow, result)

    def _narrowed(self, args: _Args, kwargs: _Kwargs) -> tuple[tuple[_Args, _Kwargs], tuple[_Args, _Kwargs]]:
        """The arguments in float64, and the same values in the program's own dtypes."""
        unchanged = torch.dtype, torch.device
        twins: tuple[_Args, _Kwargs] = tree_map(
            lambda leaf: leaf if isinstance(leaf, unchanged) else self._wide(leaf), (args, kwargs)
        )
        return twins, tree_map(self._narrow, twins)

    def _note_narrow(self, name: str, arguments: object) -> None:
        floats = [leaf.dtype for leaf in tree_leaves(arguments) if is_narrow(leaf) and not leaf.dtype.is_complex]
        if floats:
            self.narrowed[name] = max(floats, key=lambda dtype: torch.finfo(dtype).eps)

    def _carried(
        self, func: OpOverload, twins: tuple[_Args, _Kwargs], narrow: tuple[_Args, _Kwargs], result: object
    ) -> object:
        """The op's result, after copying what it wrote to the float64 arguments."""
        for place_written in fx.written(func):
            name = func._schema.arguments[place_written].name
            held = argument(func, name, *twins)
            for wide_one, written in zip(tree_leaves(held), tree_leaves(argument(func, name, *narrow)), strict=True):
                if isinstance(wide_one, Tensor):
                    wide_one.copy_(to_float64(written))
            if all(each.alias_info is not None for each in func._schema.returns):
                result = held if func._schema.returns else None
        return result

    def _narrow(self, value: object) -> object:
        """A tensor in the program's dtype, on the program's device."""
        if not isinstance(value, Tensor):
            return value
        narrow = value.to(self.dtype_of(value)) if value.dtype == torch.float64 else value
        return narrow.to(self.devices.of(value))

    def _dropped_out(self, args: _Args, mask: Tensor) -> tuple[Tensor, Tensor]:
        value, chance = cast("tuple[Tensor, float]", args[:2])
        kept = value * mask
        return (kept / (1 - chance) if chance < 1 else kept), mask


def float64_failure(error: BaseException) -> str:
    """The reason in a report why there is no float64 side."""
    reason = first_line(error)
    return reason if isinstance(error, NotInFloat64) else f"the program cannot run in float64: {reason}"
