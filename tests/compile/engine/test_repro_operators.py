"""Calls of Python's `operator` functions are written as operators."""

import ast
import operator

import pytest

from idbg.engine.repro.source import operator_statements


@pytest.mark.parametrize(
    ("function", "arguments", "lines"),
    [
        ("add", "x, y", ["a = x + y"]),
        ("sub", "2, x - 1", ["a = 2 - (x - 1)"]),
        ("neg", "x", ["a = -x"]),
        ("getitem", "x, (slice(None, 2, None), None, Ellipsis, 0)", ["a = x[:2, None, Ellipsis, 0]"]),
        ("getitem", "x, ()", ["a = x[()]"]),
        ("getitem", "x, slice(1, None, 2)", ["a = x[1::2]"]),
        ("setitem", "x, slice(1, None, None), y", ["x[1:] = y"]),
        ("iadd", "x, 1", ["a = x", "a += 1"]),
        ("iand", "x, y", ["a = x", "a &= y"]),
        ("is_not", "x, None", ["a = x is not None"]),
    ],
)
def test_a_call_is_written_as_its_operator(function: str, arguments: str, lines: list[str]) -> None:
    assert operator_statements("a", function, arguments) == lines


@pytest.mark.parametrize("call", [("truth", "x"), ("call", "f, x"), ("add", "*x"), ("index", "x")])
def test_what_has_no_operator_stays_a_call(call: tuple[str, str]) -> None:
    assert operator_statements("a", *call) is None


BINARY = [
    "add",
    "sub",
    "mul",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and_",
    "or_",
    "xor",
    "truediv",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "is_",
    "is_not",
]


@pytest.mark.parametrize("function", [*BINARY, "iadd", "imod", "ior", "neg", "pos", "invert", "inv", "not_"])
def test_an_operator_gives_what_its_function_gives(function: str) -> None:
    called = getattr(operator, function)
    given = "13, 5" if function in BINARY or (function.startswith("i") and function not in ("invert", "inv")) else "13"
    names: dict[str, object] = {}
    exec("\n".join(operator_statements("a", function, given) or ()), names)
    assert names["a"] == called(*ast.literal_eval(f"({given},)"))
