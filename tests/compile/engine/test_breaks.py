"""Real programs that break: which line, why in plain words, torch's page, how it goes on, what is crossed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from torch._dynamo.utils import counters

from idbg.analysis.decisions.breaks import BreakPlace, places
from idbg.schema.runs import Run

Runner = Callable[..., Run]
HEAD = "import torch\nones = torch.ones\n"
# program, its line, the way the function goes on, words that ours or torch's say
CASES: dict[str, tuple[str, int, str, str]] = {
    "branch on data": (
        "@torch.compile\ndef f(x):\n    y = x.sin()\n    if y.sum() > 0:\n        return y.cos()\n"
        "    return y\nf(ones(3))\n",
        *(6, "branch", "branches on the value"),
    ),
    "print, of a dict by keyword": (
        "@torch.compile\ndef f(*, d):\n    y = d['a'].sin()\n    print('x')\n"
        "    return {'b': y.cos()}\nf(d={'a': ones(3)})\n",
        *(6, "call", "print() cannot"),
    ),
    "item": (
        "@torch.compile\ndef f(x):\n    n = x.sum().item()\n    return x * n\nf(ones(3))\n",
        *(5, "call", ".item()"),
    ),
    "custom autograd function": (
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        print('in')\n"
        "        return x * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n"
        "@torch.compile\ndef f(x):\n    return F.apply(x.sin()).cos()\n"
        "f(ones(3, requires_grad=True)).sum().backward()\n",
        *(6, "call", "print() cannot"),
    ),
    "unsupported call": (
        "import os\n@torch.compile\ndef f(x):\n    y = x.sin()\n    os.getpid()\n    return y.cos()\nf(ones(3))\n",
        *(7, "call", "torch never traces"),
    ),
    "nested function": (
        "@torch.compile\ndef f(x):\n    def g(y):\n        torch._dynamo.graph_break()\n        return y.cos()\n"
        "    return g(x.sin())\nf(ones(3))\n",
        *(6, "call", "asks for a break"),
    ),
    "disabled function": (
        "@torch.compiler.disable\ndef g(x):\n    return x.cos()\n@torch.compile\ndef f(x):\n    return g(x.sin()) + 1\n"
        "f(ones(3))\n",
        *(8, "call", "keeps from being compiled"),
    ),
}


def _of_subject(run: Run) -> BreakPlace:
    assert run.failure is None
    return next(place for place in places(run) if Path(place.file).name == "subject.py")


@pytest.mark.parametrize("case", CASES)
def test_where_why_and_how_it_goes_on(ran: Runner, case: str):
    text, line, way, words = CASES[case]
    counters.clear()
    run = ran(HEAD + text, backend="eager")
    place = _of_subject(run)
    assert (place.line, place.ways[0]) == (line, way)
    assert words in place.words
    assert place.page.startswith("GB")
    assert place.first.stack[-1].line == place.first.line
    met = [each for found in places(run) for each in found.ways]
    assert met.count("call") == sum(counters["graph_break"].values())


def test_both_sides_are_found_and_what_crosses_is_measured(ran: Runner):
    text = "@torch.compile\ndef f(x):\n    y = x.sin()\n    print('x')\n    return y.cos() + 1\nf(ones(4, 8))\n"
    place = _of_subject(ran(HEAD + text, backend="inductor"))
    (side,) = place.sides
    assert (side.before, side.after, side.called) == ("0/0", ("1/0",), ())
    assert (side.tensors, side.size) == (1, 4 * 8 * 4)
    assert (side.kernels_before, side.kernels_after) == (1, 1)
    assert side.seconds is not None and side.seconds > 0


def test_a_function_that_is_called_between_is_found(ran: Runner):
    text = (
        "def g(x):\n    y = x.sin()\n    print('x')\n    return y\n"
        "@torch.compile\ndef f(x):\n    return g(x + 1).cos()\nf(ones(3))\n"
    )
    outer = next(side for side in _of_subject(ran(HEAD + text, backend="eager")).sides if side.before == "0/0")
    assert (outer.called, outer.after) == (("1/0",), ("3/0",))
