"""Read the exception that traced code or a backend raises from the text of torch's own."""

import ast
import re

UNHANDLED = "Observed exception"
_RAISED = re.compile(r"Developer debug context: raised exception (\w+)\((.*?)\)\s*(?:\n\n For more|\Z)", re.DOTALL)
_BY_BACKEND = re.compile(r"backend=['\"](.+?)['\"] raised:\n([\w.]+): (.*)", re.DOTALL)
_LITERAL = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^()]*"""
_VARIABLE = rf"ConstantVariable\(\w+: ({_LITERAL})\)"  # an argument, as torch 2.11 has it
_CONSTANT = re.compile(rf"LazyVariableTracker\(realized: {_VARIABLE}\)|{_VARIABLE}", re.DOTALL)


def raised_in_traced_code(words: str) -> tuple[str, str] | None:
    """Type and message of an exception that the program raises in traced code, read from the text of torch's
    `Unsupported`, which has them in all versions; None for another text.
    """
    found = _RAISED.search(words) if words.startswith(UNHANDLED) else None
    return (found[1], _message(found[1], found[2])) if found else None


def raised_by_backend(words: str) -> tuple[str, str, str] | None:
    """The backend, and the type and message of what it raised, from the text of torch's `BackendCompilerFailed`; None
    for another text.
    """
    found = _BY_BACKEND.match(words)
    return (found[1], found[2], found[3].strip()) if found else None


def _message(kind: str, arguments: str) -> str:
    """The text of the exception; `arguments` are those of a call, or, on 2.11, a list or a tuple of variables."""
    constants, of_variables = _CONSTANT.subn(r"\1\2", arguments)
    listed = of_variables or arguments in ("[]", "()")
    try:
        values = tuple(ast.literal_eval(constants if listed else f"[{constants}]"))
    except (ValueError, SyntaxError):  # an argument is no constant
        return arguments.strip("[](),")
    if len(values) == 1:
        return repr(values[0]) if kind == "KeyError" else str(values[0])
    return str(values) if values else kind
