"""Replace dtypes by float32, and devices by the CPU."""

from dataclasses import replace

import torch

from idbg.engine.minify.shrink.literals import attributes, devices, replaced
from idbg.engine.minify.shrink.parts import Argument, Parts, plain_dtype
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure, Step

_ALIASES = {"torch.half": torch.float16, "torch.double": torch.float64}


def simplify_dtypes(smallest: SmallestFailure) -> None:
    """All floating dtypes to float32 at once, then each, in the arguments and in the statements; then the CPU."""
    forms = [each.form for each in smallest.parts.arguments if each.form is not None]
    spelled = {
        text: dtype for text, dtype in _spellings().items() if attributes(smallest.parts.draft.statements, [text])
    }
    odd = {form.dtype for form in forms if plain_dtype(form.dtype) != form.dtype} | set(spelled.values())
    smallest.together([_plain(dtype) for dtype in sorted(odd, key=str)])
    named = [each.input.name for each in smallest.parts.arguments if each.form is not None and each.form.dtype in odd]
    smallest.together([_plain_alone(name) for name in named])
    if any(form.device != "cpu" for form in forms):
        smallest.take(_on_the_cpu(smallest.parts))


def _spellings() -> dict[str, torch.dtype]:
    """The spellings of floating dtypes other than float32."""
    dtypes = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}
    return {str(dtype): dtype for dtype in dtypes if plain_dtype(dtype) != dtype} | _ALIASES


def _plain(dtype: torch.dtype) -> Step:
    """One dtype replaced wherever it is."""

    def step(parts: Parts) -> Parts | None:
        wanted = plain_dtype(dtype)
        spelled = [text for text, each in _spellings().items() if each == dtype]
        lines = parts.draft.statements
        lines = replaced(lines, [(span, str(wanted)) for span, _ in attributes(lines, spelled)])
        return parts.changed(lambda each: _with_dtype(each, wanted) if _dtype(each) == dtype else None, lines)

    return step


def _plain_alone(name: str) -> Step:
    def change(argument: Argument) -> Argument | None:
        dtype = _dtype(argument)
        return _with_dtype(argument, plain_dtype(dtype)) if argument.input.name == name and dtype else None

    return lambda parts: parts.changed(change)


def _dtype(argument: Argument) -> torch.dtype | None:
    return argument.form.dtype if argument.form is not None else None


def _with_dtype(argument: Argument, dtype: torch.dtype) -> Argument | None:
    form = argument.form
    if form is None or form.dtype == dtype or not argument.is_ours:
        return None
    return replace(argument, form=replace(form, dtype=dtype))


def _on_the_cpu(parts: Parts) -> Parts | None:
    def change(argument: Argument) -> Argument | None:
        form = argument.form
        if form is None or form.device == "cpu" or not argument.is_ours:
            return None
        return replace(argument, form=replace(form, device="cpu"))

    return parts.changed(change, replaced(parts.draft.statements, devices(parts.draft.statements)))
