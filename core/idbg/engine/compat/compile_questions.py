"""Answer what asks torch whether it is compiled (`torch.compiler.is_compiling`) in torch's place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType

import torch

from idbg.engine.compat.stages import is_torchs

Answer = Callable[[FrameType], bool | None]
"""What the code in this frame gets as its answer; None for torch's own."""

_QUESTIONS = ("is_compiling", "is_dynamo_compiling")  # Dynamo answers True to each; older names of theirs call them
_WRAPPERS = ("typing_extensions.py", "warnings.py", "_py_warnings.py")  # of those older names
_answers: list[Answer] = []
_torchs: dict[str, FunctionType] = {}


@contextmanager
def answered_by(answer: Answer) -> Iterator[None]:
    """While it lasts, `answer` decides what code outside of torch gets that asks whether it is compiled."""
    functions: list[FunctionType] = [function for name in _QUESTIONS if (function := vars(torch.compiler).get(name))]
    before = [function.__code__ for function in functions]
    _answers.append(answer)
    try:
        for function, code in zip(functions, before, strict=True):
            if code.co_filename != __file__:
                _torchs[function.__name__] = FunctionType(code, function.__globals__, function.__name__)
                function.__code__ = _asked.__code__.replace(co_name=function.__name__)  # also where it is imported
        yield
    finally:
        _answers.pop()
        for function, code in zip(functions, before, strict=True):
            function.__code__ = code


def _asked() -> bool:
    """Stands for the code of torch's functions, in whose module it runs."""
    import sys

    return bool(sys.modules["idbg.engine.compat.compile_questions"].answer_to(sys._getframe()))


def answer_to(question: FrameType) -> bool:
    """The answer to a question that is called in this frame."""
    frame = question.f_back
    while frame is not None and _passes_on(frame):
        frame = frame.f_back
    own = frame is not None and not is_torchs(frame.f_code.co_filename)
    answer = _answers[-1](frame) if own and frame is not None and _answers else None
    return bool(_torchs[question.f_code.co_name]()) if answer is None else answer


def _passes_on(frame: FrameType) -> bool:
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    return (name in _QUESTIONS and is_torchs(file)) or file.endswith(_WRAPPERS)
