"""Where in eager is a NaN or an infinity born: which op makes one of operands that hold none, forward and backward?

The program runs once more in eager, and each op's results are looked at. What the program asks for in so many words is
no birth: `masked_fill(mask, -inf)`, `torch.full(size, inf)`, memory that nobody has filled yet.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from idbg.analysis.crashes import frames_of
from idbg.engine.compat import comparing, dynamo, fx
from idbg.engine.failures.owners import is_own
from idbg.engine.kerneldiff.float64.draws import Op
from idbg.engine.kerneldiff.sides.run import Call, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors import cease
from idbg.engine.kerneldiff.tensors.cease import Nonfinite, What
from idbg.schema.faults import NanOrigin
from idbg.schema.programs import Failure

SEARCHED = "eager, looked at op by op"
_UNFILLED = re.compile(r"(new_)?empty.*|resize_.*|set_")
_NODE = re.compile(r"(?:.*::)?(\w+?)(?:Backward\d*)?$")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def eager_nan_origins(subject: Subject, *, backward: bool = False) -> tuple[tuple[NanOrigin, ...], Failure | None]:
    """What the state and the inputs hold before anything runs; then the first NaN and the first infinity that are born
    in the forward, and likewise in the backward, as far as it comes; and why it did not come to its end.
    """
    mode = _NanOrigins()

    def around(stack: ExitStack) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        stack.enter_context(comparing.forward_stacks_recorded())
        stack.enter_context(mode)
        return subject.model

    given = tuple(_nonfinite_inputs(subject))
    side = run_side(SEARCHED, subject, around, backward)
    return (*given, *mode.births.values()), side.result.failure


def _nonfinite_inputs(subject: Subject) -> Iterator[NanOrigin]:
    for name, value in subject.tensors.items():
        if not cease.can_hold(value) or cease.is_finite(value):
            continue
        for what in cease.KINDS:
            if (first := cease.first_of(cease.mask(value.detach(), what), what)) is not None:
                yield _origin(first, value, phase="given", name=name)


class _NanOrigins(TorchDispatchMode):
    """While it is in force, `births` fills: the first of each kind in the forward and in the backward."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.births: dict[tuple[str, What], NanOrigin] = {}

    def __torch_dispatch__(
        self, func: Op, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        given = dict(kwargs or {})
        if not isinstance(func, OpOverload):
            kernel = comparing.dense_kernel(func)
            with self if kernel else nullcontext():  # what a higher-order op holds runs op by op
                return (kernel or func)(*args, **given)
        if func.is_view or _UNFILLED.fullmatch(fx.op_name(func)):
            return func(*args, **given)
        before = _before(func, args)  # what it writes to is lost after
        result = func(*args, **given)
        for value in tree_leaves(result):
            if cease.can_hold(value) and value.numel() and not cease.is_finite(value):
                self._look(func, value, before, given)
        return result

    def _look(self, func: OpOverload, value: Tensor, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        leaves = tree_leaves((args, kwargs))
        if any(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in leaves):
            return
        differentiated = comparing.differentiated()
        phase = "backward" if differentiated else "forward"
        for what in cease.KINDS:
            if (phase, what) in self.births:
                continue
            first = _born(func, value, leaves, what)
            if first is None:
                continue
            node, stack = differentiated or ("", [])
            file, line = _users_line(stack) if differentiated else current_user_line()
            self.births[phase, what] = _origin(
                first,
                value,
                phase=phase,
                op=fx.op_name(func),
                operands=_operands(func, value, args, first),
                from_infinity=what == "nan" and _of_infinities(func, value, leaves, first),
                file=file,
                line=line,
                name="",
                node=_words(node),
            )


def _before(func: OpOverload, args: tuple[object, ...]) -> tuple[object, ...]:
    written = set(fx.written(func))
    return tuple(
        value.clone() if at in written and isinstance(value, Tensor) else value for at, value in enumerate(args)
    )


def _born(func: OpOverload, value: Tensor, leaves: Sequence[object], what: What) -> Nonfinite | None:
    """What of this kind is in the result, and in no operand: of an op that goes element by element, in none of that
    element's. A NaN may be born of infinities.
    """
    where = cease.mask(value, what)
    operands = [leaf for leaf in leaves if cease.can_hold(leaf) and leaf is not value]
    kinds: tuple[What, ...] = ("nan",) if what == "nan" else cease.KINDS
    for operand in operands:
        held = [cease.mask(operand, kind) for kind in kinds]
        if _by_element(func, value, operand):
            for each in held:
                where = where & ~each.broadcast_to(value.shape).to(where.device)
        elif any(bool(each.any()) for each in held):
            return None
    return cease.first_of(where, what)


def _of_infinities(func: OpOverload, value: Tensor, leaves: Sequence[object], first: Nonfinite) -> bool:
    for operand in filter(cease.can_hold, leaves):
        held = cease.mask(operand, "inf")
        if _by_element(func, value, operand):
            held = held.broadcast_to(value.shape)[first.index]
        if bool(held.any()):
            return True
    return False


def _by_element(func: OpOverload, value: Tensor, operand: Tensor) -> bool:
    if torch.Tag.pointwise not in func.tags and fx.op_name(func) != "_to_copy":
        return False
    sizes = zip(reversed(operand.shape), reversed(value.shape), strict=False)
    return operand.dim() <= value.dim() and all(size in (1, wanted) for size, wanted in sizes)


def _operands(func: OpOverload, value: Tensor, args: Sequence[object], first: Nonfinite) -> str:
    """What the op was given, for that element where it goes element by element: "-0.2", "0, 0"; else how large each
    operand is.
    """
    tensors = [(argument.name, given) for argument, given in zip(func._schema.arguments, args, strict=False)]
    if all(_by_element(func, value, given) for _, given in tensors if isinstance(given, Tensor)):
        said = [_number(given, value, first) for _, given in tensors]
        return ", ".join(each for each in said if each)
    return ", ".join(f"|{name}| {_largest(given)}" for name, given in tensors if cease.can_hold(given))


def _number(given: object, value: Tensor, first: Nonfinite) -> str:
    if isinstance(given, Tensor):
        return _figure(given.detach().broadcast_to(value.shape)[first.index].item())
    return _figure(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else ""


def _largest(value: Tensor) -> str:
    sizes = value.detach().abs()
    sizes = sizes.float() if sizes.element_size() == 1 else sizes
    return f"up to {_figure(sizes.max().item())}" if sizes.numel() else "of no elements"


def _figure(number: complex) -> str:
    return f"{number:.4g}"


def current_user_line() -> tuple[str, int]:
    """The innermost line of the program's own that runs now."""
    frame = sys._getframe()
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0


def _users_line(stack: Sequence[str]) -> tuple[str, int]:
    places = [place for entry in reversed(stack) for place in frames_of(entry)]
    return next(((place.file, place.line) for place in places if is_own(place.file)), ("", 0))


def _words(node: str) -> str:
    """ "NativeLayerNormBackward0" as "native_layer_norm"."""
    match = _NODE.match(node)
    return _WORD.sub("_", match[1]).lower() if match else node


def _origin(first: Nonfinite, value: Tensor, **more: object) -> NanOrigin:
    fields = {"name": "", **more}
    return NanOrigin(
        side="eager",
        what=first.what,
        index=first.index,
        count=first.count,
        elements=value.numel(),
        dtype=str(value.dtype).removeprefix("torch."),
        **fields,  # type: ignore[arg-type]
    )
