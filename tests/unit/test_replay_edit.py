"""What a repro says with another backend, accelerator or options: a copy's calls are changed, and nothing else."""

import ast

import pytest

from idbg.accelerators.parse import parse
from idbg.replay.edit import Repro
from idbg.schema.errors import BadInput

COMPILE = '''
"""It fails: „Ümläut“."""
import torch

def main():
    result = torch.compile(program, {how})(*inputs())  # ☃ stays
    print("REPRODUCED", ERROR)
'''
RULE = '''
RULES = """
name = "npu"

[[rules]]
kind = "alignment"
multiple = 16
"""

def main():
    backend = idbg.backend("mock", strict=False, accelerator=RULES)
    torch.compile(program, backend=backend)(*inputs())
    found = [each for each in backend.violations if each.rule == "alignment"]
    print(f"REPRODUCED {found}")
'''


def compiled(text: str) -> dict[str, object]:
    """The keywords of its torch.compile; an expression that is no literal as Python."""

    def value(node: ast.expr) -> object:
        try:
            return ast.literal_eval(node)
        except ValueError:
            return ast.unparse(node)

    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    call = next(node for node in calls if ast.unparse(node.func) == "torch.compile")
    return {str(each.arg): value(each.value) for each in call.keywords}


def repro(how: str) -> Repro:
    return Repro(COMPILE.replace("{how}", how), "repro.py")


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("eager", "eager"),
        ("aot_eager", "aot_eager"),
        ("aot", "inductor"),
        ("mock", "__import__('idbg').backend('mock', strict=False)"),
    ],
)
def test_another_backend_takes_the_place_of_the_scripts(name: str, backend: str) -> None:
    changed = repro('backend="x", dynamic=True').with_backend(name)
    assert compiled(changed.text) == {"dynamic": True, "backend": backend}
    assert "# ☃ stays" in changed.text and "„Ümläut“" in changed.text


def test_options_of_inductor_are_not_given_to_another_backend_and_that_is_said() -> None:
    script = repro('backend="inductor", options={"max_autotune": True}, mode="default"')
    changed = script.with_backend("eager")
    assert compiled(changed.text) == {"backend": "eager"}
    assert changed.note == "without its mode and options"
    assert compiled(script.with_backend("inductor").text)["options"] == {"max_autotune": True}


def test_options_are_added_to_those_that_it_has() -> None:
    changed = repro('options={"a": 1, "b": 2}').with_options({"b": 3, "c": True})
    assert compiled(changed.text) == {"options": {"a": 1, "b": 3, "c": True}}


def test_a_bare_decorator_is_a_compile_too() -> None:
    script = Repro('@torch.compile\ndef f(x):\n    return x\nprint("REPRODUCED")\n', "repro.py")
    assert compiled(script.with_backend("eager").text) == {"backend": "eager"}


def test_a_broken_rule_is_asked_by_another_backend_that_asks_rules() -> None:
    assert "backend = idbg.backend('aot', strict=False" in Repro(RULE, "repro.py").with_backend("aot").text
    with pytest.raises(BadInput, match="inductor checks no rules"):
        Repro(RULE, "repro.py").with_backend("inductor")
    with pytest.raises(BadInput, match="before any option"):
        Repro(RULE, "repro.py").with_options({"a": 1})


def test_another_accelerators_rule_of_the_same_kind_is_asked_at_every_stage() -> None:
    other = 'name = "b"\n[[rules]]\nkind = "dtype"\nallowed = ["float32"]\n[[rules]]\nkind = "alignment"\n'
    other += 'name = "by 8"\nmultiple = 8\nstages = ["backward"]\n'
    changed = Repro(RULE, "repro.py").with_accelerator(other, "b.toml")
    names: dict[str, str] = {}
    exec(changed.text.partition("def main")[0], names)
    (rule,) = [each for each in parse(names["RULES"]).rules if each.name != "unknown"]
    assert (rule.name, rule.stages) == ("by 8", ())
    assert "each.rule == 'by 8'" in changed.text and changed.note == "by its rule by 8"


def test_an_accelerator_without_such_a_rule_needs_no_run() -> None:
    changed = Repro(RULE, "repro.py").with_accelerator('name = "b"\n', "b.toml")
    assert changed.gone and changed.note == "b.toml has no rule of the kind alignment"


def test_what_is_no_repro_of_ours_is_refused() -> None:
    with pytest.raises(BadInput, match="is no repro of idbg's"):
        Repro("print('hello')\n", "hello.py")
    with pytest.raises(BadInput, match="is not Python"):
        Repro("REPRODUCED (", "hello.py")
    with pytest.raises(BadInput, match=r"no torch\.compile that could be changed"):
        Repro('print("REPRODUCED")', "repro.py").with_backend("eager")
    with pytest.raises(BadInput, match="no rules of an accelerator"):
        repro("").with_accelerator('name = "b"\n', "b.toml")
