"""Code that the compiler calls is left out whole or not at all when a program is made smaller."""

import ast

from idbg.engine.minify.user_level.callbacks import called_back
from idbg.reduce.statements import reduce_source

PROGRAM = """\
import torch
from torch._inductor.lowering import register_lowering
LIMIT = 16
UNUSED = 3

def fits(x):
    if LIMIT:
        return x.get_size()[-1] % LIMIT == 0

@register_lowering(torch.ops.aten.sin.default)
def lowered(x):
    if not fits(x):
        raise ValueError("no multiple")
    return x

def checked(graph):
    for node in graph.nodes:
        print(node)
config.post_grad_custom_pre_pass = checked

def tanh(x):
    return f"unit::{x}"
CppOverrides.tanh = staticmethod(tanh)

def mine(gm, inputs):
    return gm.forward

class Net(torch.nn.Module):
    def __init__(self):
        self.register_buffer("w", ones())
        self.b = 2
def ones():
    return torch.ones(3)
torch.compile(Net(), backend=mine)(torch.randn(3, 17))
"""


def names(dumps: frozenset[str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(PROGRAM)):
        if isinstance(node, ast.stmt) and ast.dump(node) in dumps:
            found.add(getattr(node, "name", ast.unparse(node).partition(" ")[0]))
    return found


def test_it_is_found_with_what_it_reads_and_without_the_model() -> None:
    kept = names(called_back(PROGRAM, {"tanh"}))
    assert kept == {
        *(
            "LIMIT",
            "fits",
            "lowered",
            "checked",
            "config.post_grad_custom_pre_pass",
            "tanh",
            "CppOverrides.tanh",
            "mine",
        )
    }
    assert "tanh" not in names(called_back(PROGRAM)), "an attribute of the program's own objects may be anything"


def test_a_lowering_keeps_the_condition_under_which_it_raises() -> None:
    def fails(text: str) -> bool:
        return "raise ValueError" in text and "torch.compile" in text

    whole = reduce_source(PROGRAM, fails, whole=called_back(PROGRAM, {"tanh"}))
    assert "    if not fits(x):\n        raise ValueError(" in whole
    assert "def mine" not in whole, "what does not matter is left out as ever"
    assert "class Net" not in whole
    assert "if not fits" not in reduce_source(PROGRAM, fails), "as it was without that"


def test_what_stands_in_a_table_of_the_compiler_is_left_whole() -> None:
    """However it came there: torch's own table says which functions those are."""
    text = """\
from torch._inductor.lowering import lowerings
def bad(x):
    if x:
        raise ValueError
def install():
    for op in [1, 2]:
        lowerings[op] = bad
install()
results = {}
results["a"] = bad2(3)
lowerings[torch.ops.aten.sin.default] = lambda x: x + 1
"""
    whole = called_back(text, in_tables={"bad"})
    found = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.stmt) and ast.dump(each) in whole]
    assert sorted(ast.unparse(each).splitlines()[0] for each in found) == [
        "def bad(x):",
        "lowerings[op] = bad",
        "lowerings[torch.ops.aten.sin.default] = lambda x: x + 1",
    ]
