"""Run a candidate's statements on tensors without memory: a millisecond instead of a process."""

import ast
import operator
import sys
import time
import warnings
from dataclasses import dataclass

import torch

from idbg.engine.compat.comparing import without_memory
from idbg.engine.minify.shrink.parts import Argument, Parts

_LONG = 0.03  # CPU seconds of one run: hundreds of longer runs take longer than the tries that they save
_CONSTANTS = {"torch": torch, "operator": operator, "device": torch.device, "inf": torch.inf, "nan": torch.nan}


@dataclass(frozen=True)
class DryRunResult:
    """The result of a dry run: how many statements ran before one raised (the result counts as one),
    whether all did, the shape and dtype of each named tensor, and Python's warnings.
    """

    steps: int
    is_whole: bool
    forms: dict[str, tuple[torch.Size, torch.dtype]]
    warned: frozenset[str]


class DryRun:
    """Decides whether statements run. Allows all candidates if that is unknown (`is_known` is False): the first
    candidate does not run this way, takes long, or has definitions that would have to be run.
    """

    def __init__(self, parts: Parts) -> None:
        brings_its_own = parts.draft.definitions or any(each.input.is_array for each in parts.arguments)
        begun = time.thread_time()
        self.is_known = not brings_its_own and _run(parts).is_whole
        if self.is_known and time.thread_time() - begun > _LONG:  # the first time torch loads what it needs
            begun = time.thread_time()
            self.is_known = _run(parts).is_whole and time.thread_time() - begun < _LONG

    def __call__(self, parts: Parts) -> bool:
        """Whether the statements run with arguments of these forms, as far as that is known."""
        return not self.is_known or _run(parts).is_whole

    def ran(self, parts: Parts) -> DryRunResult:
        """Run the statements."""
        return _run(parts)

    def is_alike(self, parts: Parts, before: Parts) -> bool:
        """Whether it gives tensors of the same forms as before, and warns of nothing new, as far as that is known."""
        if not self.is_known:
            return True
        now, then = _run(parts), _run(before)
        return now.is_whole and now.forms == then.forms and now.warned <= then.warned


def _run(parts: Parts) -> DryRunResult:
    """Run the statements on tensors without memory; nothing runs if a module is not imported here."""
    steps, names, warned = 0, dict[str, object](_CONSTANTS), list[warnings.WarningMessage]()
    is_whole = False
    try:
        with without_memory(), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for name in parts.draft.imports:
                _bring(name, names)
            names |= {each.input.name: _value(each) for each in parts.arguments}
            for statement in ast.parse("\n".join(parts.draft.statements)).body:
                exec(compile(ast.Module([statement], []), "<statement>", "exec"), names)
                steps += 1
            eval(parts.draft.result or "None", names)
            is_whole = True
    except Exception:  # whatever an op may raise: then it is no program, or not one that is known to be
        is_whole = False
    tensors = {name: value for name, value in names.items() if isinstance(value, torch.Tensor)}
    forms = {name: (value.shape, value.dtype) for name, value in tensors.items()}
    return DryRunResult(steps, is_whole, forms, frozenset(str(each.message) for each in warned or ()))


def _bring(name: str, names: dict[str, object]) -> None:
    """An import as the script has it. Raises KeyError for what is not imported here: a module may do anything."""
    line = name if name.startswith(("import ", "from ")) else f"import {name}"
    sys.modules[line.split()[1]]
    exec(line, names)


def _value(argument: Argument) -> object:
    if argument.input.literal:
        return eval(argument.input.literal, dict(_CONSTANTS))
    if argument.form is None:
        raise ValueError(f"what {argument.input.recipe} makes is not known")
    form = argument.form
    return torch.empty_strided(form.shape, form.stride, dtype=form.dtype, device=form.device)
