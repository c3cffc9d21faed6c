"""Find the op in eager that produces the first NaN or infinity from finite operands, in the forward and the backward.

The program runs once more in eager, and each op's results are checked. Explicit values are no origin:
`masked_fill(mask, -inf)`, `torch.full(size, inf)`, uninitialized memory.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from idbg.analysis.crashes import frames_of
from idbg.engine.compat import comparing, fx
from idbg.engine.compat.torch_types import OpOverload, tree_leaves
from idbg.engine.failures.owners import is_own
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs, OpMode
from idbg.engine.kerneldiff.sides.run import run_eager
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors import nonfinite
from idbg.engine.kerneldiff.tensors.nonfinite import FirstNonfinite, What
from idbg.schema.faults import NanOrigin
from idbg.schema.programs import Failure

SEARCHED = "eager, checked op by op"
_UNFILLED = re.compile(r"(new_)?empty.*|resize_.*|set_")
_NODE = re.compile(r"(?:.*::)?(\w+?)(?:Backward\d*)?$")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def eager_nan_origins(subject: Subject, *, backward: bool = False) -> tuple[tuple[NanOrigin, ...], Failure | None]:
    """NaN and infinities in the state and the inputs; the first NaN and the first infinity that an op of the forward
    produces, and of the backward; the failure if the run ended early.
    """
    mode = _NanOrigins()
    inputs = tuple(_nonfinite_inputs(subject))
    side = run_eager(subject, SEARCHED, [comparing.forward_stacks_recorded(), mode], backward=backward)
    return (*inputs, *mode.origins.values()), side.result.failure


def _nonfinite_inputs(subject: Subject) -> Iterator[NanOrigin]:
    for name, value in subject.tensors.items():
        if not nonfinite.can_hold(value) or nonfinite.is_finite(value):
            continue
        for what in nonfinite.NAN_KINDS:
            if (first := nonfinite.first_of(nonfinite.mask(value.detach(), what), what)) is not None:
                yield _origin(first, value, phase="given", name=name)


class _NanOrigins(OpMode):
    """Fills `origins`: the first of each kind in the forward and in the backward."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[tuple[str, What], NanOrigin] = {}

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        if func.is_view or _UNFILLED.fullmatch(fx.op_name(func)):
            return func(*args, **kwargs)
        before = _before(func, args)  # the op may overwrite its operands
        result = func(*args, **kwargs)
        for value in tree_leaves(result):
            if nonfinite.can_hold(value) and value.numel() and not nonfinite.is_finite(value):
                self._look(func, value, before, kwargs)
        return result

    def _look(self, func: OpOverload, value: Tensor, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        leaves = tree_leaves((args, kwargs))
        if any(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in leaves):
            return
        differentiated = comparing.differentiated()
        phase = "backward" if differentiated else "forward"
        for what in nonfinite.NAN_KINDS:
            if (phase, what) in self.origins:
                continue
            first = _new_nonfinite(func, value, leaves, what)
            if first is None:
                continue
            node, stack = differentiated or ("", [])
            file, line = _users_line(stack) if differentiated else current_user_line()
            self.origins[phase, what] = _origin(
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


def _new_nonfinite(func: OpOverload, value: Tensor, leaves: Sequence[object], what: What) -> FirstNonfinite | None:
    """The elements of this kind in the result whose operands have none: those of the same element of a pointwise op, of
    another op all. A NaN may originate from infinities.
    """
    where = nonfinite.mask(value, what)
    operands = [leaf for leaf in leaves if nonfinite.can_hold(leaf) and leaf is not value]
    kinds: tuple[What, ...] = ("nan",) if what == "nan" else nonfinite.NAN_KINDS
    for operand in operands:
        held = [nonfinite.mask(operand, kind) for kind in kinds]
        if _by_element(func, value, operand):
            for each in held:
                where = where & ~each.broadcast_to(value.shape).to(where.device)
        elif any(bool(each.any()) for each in held):
            return None
    return nonfinite.first_of(where, what)


def _of_infinities(func: OpOverload, value: Tensor, leaves: Sequence[object], first: FirstNonfinite) -> bool:
    for operand in filter(nonfinite.can_hold, leaves):
        held = nonfinite.mask(operand, "inf")
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


def _operands(func: OpOverload, value: Tensor, args: Sequence[object], first: FirstNonfinite) -> str:
    """The op's operands: for a pointwise op the numbers of that element ("-0.2", "0, 0"), else how large each is."""
    tensors = [(argument.name, operand) for argument, operand in zip(func._schema.arguments, args, strict=False)]
    if all(_by_element(func, value, operand) for _, operand in tensors if isinstance(operand, Tensor)):
        return ", ".join(filter(None, (_number(operand, value, first) for _, operand in tensors)))
    return ", ".join(f"|{name}| {_largest(operand)}" for name, operand in tensors if nonfinite.can_hold(operand))


def _number(operand: object, value: Tensor, first: FirstNonfinite) -> str:
    if isinstance(operand, Tensor):
        return _figure(operand.detach().broadcast_to(value.shape)[first.index].item())
    return _figure(operand) if isinstance(operand, (int, float)) and not isinstance(operand, bool) else ""


def _largest(value: Tensor) -> str:
    sizes = value.detach().abs()
    sizes = sizes.float() if sizes.element_size() == 1 else sizes
    return f"up to {_figure(sizes.max().item())}" if sizes.numel() else "of no elements"


def _figure(number: complex) -> str:
    return f"{number:.4g}"


def current_user_line() -> tuple[str, int]:
    """The innermost line of the program's own code that runs now."""
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


def _origin(first: FirstNonfinite, value: Tensor, **more: object) -> NanOrigin:
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
