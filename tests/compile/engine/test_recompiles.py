"""Why a frame is compiled again: the guard, what it expected, what was there, and the user's line; and the limit."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from idbg.analysis.decisions.recompile_advice import suggestions_for as advice
from idbg.analysis.decisions.recompiles import timelines
from idbg.schema.decisions.dynamo import FailedGuard, FrameResult
from idbg.schema.runs import Run
from idbg.views.recompiles import guard_words

Runner = Callable[..., Run]
CHANGED = ("dynamic", "dynamic_sources", "settings")
HEAD = "import torch\nones = torch.ones\n"
CASES = {
    "closure": (
        "n = 1\ndef make():\n    k = 0\n    def add():\n        nonlocal k\n        k += 1\n"
        "    def f(x):\n        return x * k\n    return add, f\nadd, f = make()\nf = torch.compile(f)\n"
        "f(ones(2)); add(); f(ones(2))\n",
        ("value", "L['k']", "0", "1", 10),
    ),
    "list": (
        "@torch.compile\ndef f(x, l):\n    return x + len(l)\nl = [1]\nf(ones(2), l); l.append(2); f(ones(2), l)\n",
        ("length", "L['l']", "1", "2", 5),
    ),
    "dict": (
        "@torch.compile\ndef f(x, *, d):\n    return x + d['a'] if 'a' in d else x\n"
        "f(ones(2), d={'a': 1}); f(ones(2), d={'b': 1})\n",
        ("key", "L['d']", "a key 'a'", "['b']", 5),
    ),
    "dtype": (
        "@torch.compile\ndef f(x):\n    return x + 1\nf(ones(2)); f(ones(2).double())\n",
        ("tensor", "L['x']", "Float", "Double", 0),
    ),
    "shape": (
        "@torch.compile\ndef f(x):\n    return x + 1\nf(ones(2)); f(ones(3))\n",
        ("size", "L['x']", "2", "3", 0),
    ),
    "grad": (
        "@torch.compile\ndef f(x):\n    return x + 1\nf(ones(2))\nwith torch.no_grad():\n    f(ones(2))\n",
        ("state", "grad_mode", "on", "off", 0),
    ),
    "global": (
        "k = 3\n@torch.compile\ndef f(x):\n    return x * k\nf(ones(2)); k = 4; f(ones(2))\n",
        ("value", "G['k']", "3", "4", 6),
    ),
    "function": (
        "@torch.compile\ndef f(x, g):\n    return g(x)\nf(ones(2), lambda x: x + 1); f(ones(2), lambda x: x + 2)\n",
        ("identity", "L['g'].__code__", "the same code", "<lambda> (line 6)", 5),
    ),
    "object": (
        "class C:\n    def __repr__(self):\n        raise SystemExit(3)\n"
        "@torch.compile\ndef f(x, c):\n    return x * 2 if isinstance(c, C) else x\n"
        "f(ones(2), C()); f(ones(2), [C()])\n",
        ("type", "L['c']", "C", "list", 8),
    ),
    "module": (
        "class M(torch.nn.Module):\n    def forward(self, x):\n        self.n += 1\n        return x * self.n\n"
        "m = M(); m.n = 0\nm = torch.compile(m)\nm(ones(2)); m(ones(2))\n",
        ("value", "L['self'].n", "0", "1", 5),
    ),
}


def _failed(run: Run) -> FailedGuard:
    assert run.failure is None
    failed = run.recompiles[0].failed
    return failed[0]


@pytest.mark.parametrize("case", CASES)
def test_what_was_expected_and_what_was_there(ran: Runner, case: str):
    text, (kind, source, expected, actual, line) = CASES[case]
    run = ran(HEAD + text, backend="eager")
    failed = _failed(run)
    assert (failed.kind, failed.source, failed.expected, failed.actual) == (kind, source, expected, actual)
    assert failed.against == "0/0" and run.recompiles[0].frame == "0/1"
    assert (failed.line, Path(failed.file).name) == (line, "subject.py" if line else "")


def test_each_version_that_did_not_fit_tells_why(ran: Runner):
    text = "f = torch.compile(lambda x: x + 1, dynamic=False)\nf(ones(2)); f(ones(3)); f(ones(3).double())\n"
    run = ran(HEAD + text, backend="eager")
    last = run.recompiles[-1]
    assert [(each.against, each.what) for each in last.failed] == [("0/1", "dtype"), ("0/0", "dtype")]


def test_a_call_beyond_the_limit_keeps_the_guards_that_failed_and_the_count(ran: Runner):
    text = (
        "torch._dynamo.config.recompile_limit = 2\nf = torch.compile(lambda x: x + 1, dynamic=False)\n"
        "for n in range(2, 7):\n    f(ones(n))\n"
    )
    with torch._dynamo.config.patch(recompile_limit=torch._dynamo.config.recompile_limit):
        run = ran(HEAD + text, backend="eager")
    limited = run.decided.last(FrameResult)["0/2"]
    assert (limited.end, limited.limit) == ("eager", 2)
    assert [(each.against, each.expected, each.actual) for each in limited.failed] == [
        ("0/1", "3", "4"),
        ("0/0", "2", "4"),
    ]
    (limit,) = run.breaks
    assert (limit.way, limit.kind) == ("limit", "Dynamo recompile limit exceeded")


TRIES = {
    "size": "f = torch.compile(lambda x: x + 1)\nfor n in (3, 4, 5):\n    f(ones(n))\n",
    "int": "f = torch.compile(lambda x, n: x * n)\nfor n in (3, 4, 5):\n    f(ones(3), n)\n",
    "module": (
        "class M(torch.nn.Module):\n    def forward(self, x):\n        self.n += 1\n        return x * self.n\n"
        "m = M()\nm.n = 2\nm = torch.compile(m)\nfor _ in range(4):\n    m(ones(2))\n"
    ),
}


@pytest.mark.parametrize("case", TRIES)
def test_what_is_suggested_helps_when_it_is_tried(ran: Runner, case: str):
    before = ran(HEAD + TRIES[case], backend="eager")
    (timeline,) = timelines(before)
    tried = next(each for each in advice(before, timeline) if each.can_be_tried).tried(before.target)
    torch._dynamo.reset()
    after = ran(HEAD + TRIES[case], **{name: getattr(tried, name) for name in ("backend", *CHANGED)})
    assert after.failure is None
    assert len(after.recompiles) < len(before.recompiles)


def test_a_compile_that_failed_has_no_advice(ran: Runner) -> None:
    text = """
import torch
@torch.compile
def f(x, w):
    return x @ w
for n in (8, 9):
    f(torch.ones(4, n), torch.ones(8, 8))
"""
    run = ran(text, backend="eager")
    (timeline,) = timelines(run)
    assert run.failure is not None and timeline.recompiles[0].failed
    assert advice(run, timeline) == []


def test_the_reason_is_the_guard_of_the_version_that_the_call_nearly_fits(ran: Runner) -> None:
    text = """
import torch
@torch.compile
def f(xs, opts):
    return sum(x * opts.get("scale", 1.0) for x in xs)
x = torch.ones(5)
f([x, x], {}); f([x, x, x], {}); f([x, x, x], {"scale": 2.0})
"""
    (timeline,) = timelines(ran(text, backend="eager"))
    assert [guard_words(row.failed[0]) for row in timeline.recompiles] == [
        "length of xs is 3, and was 2",
        "opts has the keys ['scale'], and had no key 'scale'",
    ]
