"""Detect programs that call backward themselves: they need recorded gradients."""

import dis
from collections.abc import Iterator
from functools import partial
from types import CodeType

import torch

from idbg.engine.failures.owners import chain
from idbg.schema.errors import exception_text

_CALLS = {"LOAD_ATTR", "LOAD_METHOD"}
_OF_AUTOGRAD = ("torch/autograd/__init__.py", "torch/_tensor.py")


def differentiates(model: object) -> bool:
    """Whether the function itself (or a module's forward) calls `.backward()`. Functions that it calls are not
    searched: if they differentiate, torch's error shows it (`failed_to_differentiate`).
    """
    while isinstance(model, partial):
        model = model.func
    call = model.forward if isinstance(model, torch.nn.Module) else model
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    return isinstance(code, CodeType) and any(
        step.opname in _CALLS and step.argval == "backward"
        for each in _codes(code)
        for step in dis.get_instructions(each)
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def failed_to_differentiate(error: BaseException | None) -> bool:
    """Whether torch refused to differentiate because no gradients were recorded: the program itself calls backward."""
    if error is None:
        return False
    return any("does not require grad" in exception_text(link) and _in_autograd(link) for link in chain(error))


def _in_autograd(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.replace("\\", "/").endswith(_OF_AUTOGRAD):
            return True
        trace = trace.tb_next
    return False
