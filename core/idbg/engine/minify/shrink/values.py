"""Replace recorded values by ones, integers, random numbers of a seed, or one special number."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from idbg.engine.minify.shrink.fills import Fill, Form, Kind, contiguous
from idbg.engine.minify.shrink.parts import Argument, Parts
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure, Step

_FEW = 16  # elements that are written into the script rather than into a file
_DIGITS = 2  # to which they are rounded, where that is enough

# what all arguments are made by at once: floating, whole, boolean
_ALL: tuple[tuple[Kind, Kind, Kind], ...] = (
    ("ones", "zeros", "ones"),
    ("randn", "randn", "randn"),
    ("rand", "arange", "arange"),
    ("arange", "arange", "arange"),
    ("zeros", "zeros", "zeros"),
    ("scaled", "randn", "randn"),
)
_ALONE: tuple[Kind, ...] = ("ones", "rand", "arange", "zeros", "scaled")


def simplify_values(smallest: SmallestFailure) -> None:
    """All arguments by one recipe; else each that can, and the others alone, until as few as possible are stored."""
    if not any(smallest.take(parts) for parts in _all_at_once(smallest.parts)):
        smallest.together([_made(each.input.name, "randn") for each in _unmade(smallest.parts)])
        for argument in _unmade(smallest.parts):
            _alone(smallest, argument)
        smallest.take(_plainer(smallest.parts))
    odd = [each for each in smallest.parts.arguments if each.form is not None and not each.form.is_contiguous]
    smallest.together([_contiguous(each.input.name) for each in odd])


def write_out(smallest: SmallestFailure) -> None:
    """The few elements of small stored tensors go into the script: rounded, else as they are."""
    stored = [each for each in smallest.parts.arguments if each.is_stored and each.form and 0 < each.form.room <= _FEW]
    for argument in stored:
        name = argument.input.name
        if not smallest.take(_changed(smallest.parts, name, lambda each: _inline(each, _DIGITS))):
            smallest.take(_changed(smallest.parts, name, lambda each: _inline(each, None)))


def _alone(smallest: SmallestFailure, argument: Argument) -> None:
    """One tensor that random numbers cannot stand for: the plainest that can, or a number that is in it."""
    name = argument.input.name
    for kind in _ALONE:
        if smallest.take(_made(name, kind)(smallest.parts)):
            return
    for value in specials(argument):
        fill = Fill("full", number=value)
        if smallest.take(_changed(smallest.parts, name, lambda each, fill=fill: replace(each, fill=fill))):  # type: ignore[misc]
            return


def _plainer(parts: Parts) -> Parts | None:
    """Ones where random numbers are, now that it is known which arguments need values of their own."""

    def change(argument: Argument) -> Argument | None:
        is_random = argument.fill is not None and argument.fill.kind == "randn"
        return _refilled(argument, _kind(argument, _ALL[0])) if is_random else None

    return parts.changed(change)


def specials(argument: Argument) -> Iterator[complex]:
    """Numbers of a recorded tensor of which one alone may be what matters: NaN, infinities, the largest, the smallest
    but for zero, a zero below zero.
    """
    recorded = argument.recorded
    if recorded is None or recorded.numel() == 0 or recorded.dtype == torch.bool or recorded.is_complex():
        return
    if not recorded.dtype.is_floating_point:
        yield from dict.fromkeys((int(recorded.max()), int(recorded.min())))
        return
    values = recorded.detach().to(torch.float64).flatten()
    if bool(values.isnan().any()):
        yield math.nan
    for infinity in (math.inf, -math.inf):
        if bool((values == infinity).any()):
            yield infinity
    finite = values[values.isfinite()]
    real = finite[finite != 0]
    if real.numel():
        magnitudes = real.abs()
        yield from dict.fromkeys(float(real[at]) for at in (int(magnitudes.argmax()), int(magnitudes.argmin())))
    if bool(((values == 0) & values.signbit()).any()):
        yield -0.0


def _unmade(parts: Parts) -> list[Argument]:
    """Tensors that are stored, or made by a recipe of others."""
    return [each for each in parts.arguments if _is_unmade(each)]


def _is_unmade(argument: Argument) -> bool:
    return argument.form is not None and argument.fill is None


def _all_at_once(parts: Parts) -> Iterator[Parts]:
    """All tensors made anew, by one kind after the other; the first kinds also with the strides that they have."""
    for number, kinds in enumerate(_ALL):
        made = _filled(parts, kinds)
        yield made.changed(_new) or made
        if number < 2:
            yield made


def _filled(parts: Parts, kinds: tuple[Kind, Kind, Kind]) -> Parts:
    """All tensors made anew; those that hold whole numbers and booleans by the second and third kind."""
    return parts.changed(lambda each: _refilled(each, _kind(each, kinds)) if _is_unmade(each) else None) or parts


def _made(name: str, kind: Kind) -> Step:
    return lambda parts: _changed(parts, name, lambda each: _refilled(each, kind))


def _contiguous(name: str) -> Step:
    return lambda parts: _changed(parts, name, _new)


def _changed(parts: Parts, name: str, change: Callable[[Argument], Argument | None]) -> Parts | None:
    """The parts with one argument changed, if it is there and can be."""
    return parts.changed(lambda each: change(each) if each.input.name == name else None)


def _kind(argument: Argument, kinds: tuple[Kind, Kind, Kind]) -> Kind:
    assert argument.form is not None
    dtype = argument.form.dtype
    if dtype == torch.bool:
        return kinds[2]
    return kinds[0] if dtype.is_floating_point or dtype.is_complex else kinds[1]


def _refilled(argument: Argument, kind: Kind) -> Argument:
    """The argument created by this kind of recipe, with the statistics of its recorded values that the kind uses."""
    recorded = argument.recorded
    if recorded is None or recorded.numel() == 0 or recorded.dtype == torch.bool or recorded.is_complex():
        return replace(argument, fill=Fill("randn" if kind == "scaled" else kind))
    if not recorded.dtype.is_floating_point:
        return replace(
            argument, fill=Fill("randn" if kind == "scaled" else kind, bound=max(1, int(recorded.max()) + 1))
        )
    if kind != "scaled":
        return replace(argument, fill=Fill(kind))
    values = recorded.detach().to(torch.float64)
    values = values[values.isfinite()]
    deviation, mean = (float(values.std()), float(values.mean())) if values.numel() > 1 else (0.0, 0.0)
    if not deviation:
        return replace(argument, fill=Fill("randn"))
    around = mean if abs(mean) > deviation / 4 else 0.0
    return replace(argument, fill=Fill("scaled", number=float(f"{deviation:.1g}"), mean=float(f"{around:.1g}")))


def _new(argument: Argument) -> Argument:
    """The argument as a contiguous tensor."""
    form = argument.form
    if form is None or form.is_contiguous or (argument.fill is None and argument.recorded is None):
        return argument
    return replace(argument, form=Form(form.shape, contiguous(form.shape), form.dtype, form.device))


def _inline(argument: Argument, digits: int | None) -> Argument:
    assert argument.form is not None
    memory = argument.value().as_strided((argument.form.room,), (1,))
    values: list[complex] = [_rounded(value, digits) for value in memory.tolist()]
    return replace(argument, fill=Fill("inline", values=tuple(values)))


def _rounded(value: complex, digits: int | None) -> complex:
    if digits is None or not isinstance(value, float) or not math.isfinite(value):
        return value
    return float(f"{value:.{digits}g}")
