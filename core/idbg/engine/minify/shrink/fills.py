"""Create a tensor by one short expression, instead of reading it from a file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from idbg.engine.repro.draft import memory_span

Kind = Literal["ones", "zeros", "arange", "rand", "randn", "scaled", "full", "inline"]

# how much a reader has to take in; a stored tensor is worse than all of them
WEIGHTS: dict[Kind, int] = {
    "ones": 0,
    "zeros": 0,
    "arange": 1,
    "rand": 1,
    "randn": 1,
    "full": 2,
    "scaled": 3,
    "inline": 4,
}


@dataclass(frozen=True)
class Fill:
    """What a tensor is filled with. `bound`: whole numbers stay below it. `number`: what "full" is full of, or the
    standard deviation of "scaled", around `mean`. `values`: those of "inline", as they lie in memory.
    """

    kind: Kind
    bound: int = 2
    number: complex = 1.0
    mean: float = 0.0
    values: tuple[complex, ...] = ()


@dataclass(frozen=True)
class Form:
    """Everything of a tensor but its values."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: str = "cpu"

    @property
    def room(self) -> int:
        """Elements of memory that it spans."""
        return memory_span(self.shape, self.stride)

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies in memory as a new tensor does; the strides of sizes 0 and 1 do not matter."""
        real = contiguous(self.shape)
        pairs = zip(self.shape, self.stride, real, strict=True)
        return 0 in self.shape or all(step == other for size, step, other in pairs if size > 1)

    @property
    def order(self) -> tuple[int, ...] | None:
        """Its dimensions from the outermost in memory to the innermost, if nothing lies between; None otherwise."""
        places = sorted(range(len(self.shape)), key=lambda place: (-self.stride[place], place))
        moved = Form(tuple(self.shape[at] for at in places), tuple(self.stride[at] for at in places), self.dtype)
        return tuple(places) if moved.is_contiguous else None


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a new tensor of this shape."""
    steps = [1]
    for size in reversed(shape[1:]):
        steps.insert(0, steps[0] * max(size, 1))
    return tuple(steps[: len(shape)])


def resized(form: Form, shape: tuple[int, ...]) -> Form:
    """The tensor with other sizes, laid out as it was: dense and in the same order, else with the strides it has."""
    if form.is_contiguous:
        return Form(shape, contiguous(shape), form.dtype, form.device)
    order = form.order
    if order is None:
        return Form(shape, form.stride, form.dtype, form.device)
    steps = contiguous([shape[at] for at in order])
    strides = [steps[order.index(at)] for at in range(len(shape))]
    return Form(shape, tuple(strides), form.dtype, form.device)


def recipe(fill: Fill, form: Form) -> str:
    """Python that makes the tensor, its strides as well; what has an operator in it is in parentheses."""
    order = form.order
    if form.is_contiguous:
        return _shaped(fill, form, form.shape)
    if order is None or fill.kind == "inline":
        return _shaped(fill, form, (form.room,)) + f".as_strided({form.shape}, {form.stride})"
    made = _shaped(fill, form, tuple(form.shape[at] for at in order))
    if order == (1, 0):
        return made + ".t()"
    return made + f".permute({', '.join(str(order.index(at)) for at in range(len(order)))})"


def number(value: complex, dtype: torch.dtype) -> str:
    """One element as Python."""
    if dtype.is_complex:
        return f"complex({number(value.real, torch.float64)}, {number(value.imag, torch.float64)})"
    if dtype == torch.bool:
        return str(bool(value))
    if not dtype.is_floating_point:
        return str(int(value.real))
    real = float(value.real)
    if math.isfinite(real):
        return repr(real)
    return "torch.nan" if math.isnan(real) else "torch.inf" if real > 0 else "-torch.inf"


def _shaped(fill: Fill, form: Form, shape: tuple[int, ...]) -> str:
    """The tensor as a new one of this shape."""
    dtype = form.dtype
    is_whole = not (dtype.is_floating_point or dtype.is_complex)
    is_narrow = dtype.is_floating_point and dtype.itemsize == 1  # no generator of random numbers fills these
    given = _options(form, dtype if is_narrow else torch.float32)
    cast = f".to({dtype})" if is_narrow else ""
    sizes = ", ".join(map(str, shape)) if shape else "()"
    if fill.kind in ("ones", "zeros"):
        return f"torch.{fill.kind}({sizes}{_options(form, torch.float32)})"
    if fill.kind == "full":
        return f"torch.full({_tuple(shape)}, {number(fill.number, dtype)}{_options(form, torch.float32)})"
    if fill.kind == "inline":
        usual = dtype if dtype in (torch.bool, torch.int64) else torch.float32
        return f"torch.tensor({_nested(fill.values, shape, dtype)}{_options(form, usual)})"
    if dtype == torch.bool and fill.kind != "arange":
        return f"(torch.randn({sizes}{_options(form, dtype)}) > 0)"
    if is_whole and fill.kind != "arange":
        return f"torch.randint({fill.bound}, {_tuple(shape)}{_options(form, torch.int64)})"
    if fill.kind == "arange" and not dtype.is_complex:
        return _counted(fill, form, shape) + cast
    if fill.kind == "scaled":
        around = f" + {fill.mean:g}" if fill.mean else ""
        return f"(torch.randn({sizes}{given}) * {fill.number.real:g}{around}){cast}"
    return f"torch.{'rand' if fill.kind == 'rand' else 'randn'}({sizes}{given}){cast}"


def _counted(fill: Fill, form: Form, shape: tuple[int, ...]) -> str:
    """0, 1, 2, ...: whole numbers below the bound; every second True."""
    count, dtype = math.prod(shape), form.dtype
    shaped = "" if len(shape) == 1 else f".reshape({_tuple(shape) if not shape else ', '.join(map(str, shape))})"
    if dtype == torch.bool:
        return f"(torch.arange({count}{_options(form, dtype)}) % 2 == 0)" + shaped
    if not dtype.is_floating_point:
        made = f"torch.arange({count}{_options(form, torch.int64)})"
        return (f"({made} % {fill.bound})" if count > fill.bound else made) + shaped
    return f"torch.arange({count}.0{_options(form, dtype if dtype.itemsize == 1 else torch.float32)})" + shaped


def _options(form: Form, usual: torch.dtype) -> str:
    """The arguments that say dtype and device, where they are not what torch takes by itself."""
    text = "" if form.dtype == usual else f", dtype={form.dtype}"
    place = "cuda" if form.device == "cuda:0" else form.device
    return text + ("" if place == "cpu" else f', device="{place}"')


def _tuple(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _nested(values: Sequence[complex], shape: tuple[int, ...], dtype: torch.dtype) -> str:
    if not shape:
        return number(values[0], dtype)
    step = len(values) // shape[0] if shape[0] else 0
    rows = [_nested(values[at * step : (at + 1) * step], shape[1:], dtype) for at in range(shape[0])]
    return f"[{', '.join(rows)}]"
