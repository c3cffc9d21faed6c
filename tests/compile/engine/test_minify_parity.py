"""Verdicts 16 to 20 of the earlier system: what strict mode refused, by the one call that breaks the rule."""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from idbg.schema.repros import Minified, Sought
from tests.harness.minified import Minifying

DENY_CONV = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["convolution", "conv2d"]\n'
DENY_RELU = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["relu_"]\n'
BY_EIGHT = '[[rules]]\nkind = "alignment"\nmultiple = 8\n'
FLOATS = '[[rules]]\nkind = "dtype"\nallowed = ["float32"]\n'
CONV = "def program():\n    return torch.nn.Conv2d(3, 4, 3), (torch.randn(1, 3, 8, 8),)\n"
CUMSUM = "def program():\n    return lambda x: x.cumsum(1)[:, :17, :], (torch.randn(1, 20, 16),)\n"
LINEAR = """
def program():
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()).double()
    return model, (torch.randn(2, 8, 32, dtype=torch.float64),)
"""
RELU = "def program():\n    return lambda x: torch.relu_(x + 1), (torch.randn(8, 8),)\n"
INT8 = "def program():\n    return lambda x: x.to(torch.int8) * 2, (torch.randn(8, 8),)\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier searches tried is none of this one's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def calls(found: Minified) -> list[str]:
    """What the script's program calls, but for what only hands an argument back."""
    tree = ast.parse(Path(found.path).read_text())
    (program,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "program")
    named = [ast.unparse(node.func) for node in ast.walk(program) if isinstance(node, ast.Call)]
    return [name for name in named if "clone" not in name]


@dataclass(frozen=True)
class Verdict:
    """A program, the rules that refuse it, the rule that does, and what its only call is (any: "")."""

    text: str
    rules: str
    rule: str
    call: str = ""


VERDICTS = {
    "16": Verdict(CONV, DENY_CONV, "unsupported_ops", "conv"),
    "17": Verdict(CUMSUM, BY_EIGHT, "alignment"),
    "18": Verdict(LINEAR, FLOATS, "dtype"),
    "19": Verdict(RELU, DENY_RELU, "unsupported_ops", "relu_"),
    "20": Verdict(INT8, FLOATS, "dtype", "to"),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", VERDICTS)
def test_what_strict_mode_refused_is_one_call_that_breaks_the_same_rule(number: str, tmp_path: Path) -> None:
    asked = VERDICTS[number]
    bench = Minifying(tmp_path, asked.text, rules=asked.rules, strict=True)
    assert bench.ended.failure is not None and bench.ended.failure.kind == "constraints"
    found = bench.minified(Sought())
    assert found.reproduced, found.printed
    assert (found.signature.kind, found.signature.type, found.minimal) == ("violation", asked.rule, True)
    assert f"REPRODUCED {asked.rule}" in found.printed
    assert found.lines < 80
    if asked.call:
        (call,) = calls(found)
        assert asked.call in call
    if number == "20":
        assert "int8" in Path(found.path).read_text().partition("def program(")[2]
