"""Replace dtypes by float32, and devices by the CPU."""

from collections.abc import Callable
from dataclasses import replace

import torch

from idbg.engine.minify.shrink.fills import Form
from idbg.engine.minify.shrink.literals import attributes, devices, replaced
from idbg.engine.minify.shrink.parts import Parts, plain_dtype
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
        return _changed(parts, lines, lambda form: form.dtype == dtype, lambda form: replace(form, dtype=wanted))

    return step


def _plain_alone(name: str) -> Step:
    def step(parts: Parts) -> Parts | None:
        held = next((each for each in parts.arguments if each.input.name == name), None)
        form = held.form if held is not None else None
        return _changed(
            parts,
            parts.draft.statements,
            lambda each: each is form,
            lambda each: replace(each, dtype=plain_dtype(each.dtype)),
        )

    return step


def _on_the_cpu(parts: Parts) -> Parts | None:
    lines = parts.draft.statements
    lines = replaced(lines, [(span, text) for span, text in devices(lines)])
    return _changed(parts, lines, lambda form: form.device != "cpu", lambda form: replace(form, device="cpu"))


def _changed(
    parts: Parts, lines: tuple[str, ...], chosen: Callable[[Form], bool], change: Callable[[Form], Form]
) -> Parts | None:
    arguments = tuple(
        replace(each, form=change(each.form)) if each.form is not None and each.is_ours and chosen(each.form) else each
        for each in parts.arguments
    )
    if arguments == parts.arguments and lines == parts.draft.statements:
        return None
    return replace(parts, arguments=arguments, draft=replace(parts.draft, statements=lines))
