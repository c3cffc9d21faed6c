"""Each kind of advice is applied to the program that provoked it: the recompile or break is gone, in plain torch too.

A line of code is put where its user would: settings at the top, `torch.compile(...)` in place of the program's,
anything else before the call. Advice without code says what to change: `by_hand` has the program changed so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest
import torch
from torch._dynamo.utils import counters

from idbg.analysis.decisions.breaks import suggestions
from idbg.analysis.decisions.recompile_advice import suggestions_for as advice
from idbg.analysis.decisions.recompiles import timelines
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.analysis.decisions.trials import of_timeline, to_try, trial
from idbg.schema.decisions.dynamo import FrameResult, Skip
from idbg.schema.runs import Run
from idbg.views.advice import rows
from idbg.views.tree import Row

Runner = Callable[..., Run]
HEAD = "import torch\nones = torch.ones\n"
CHANGED = ("dynamic", "dynamic_sources", "settings")
LEFT = ("a version of its own", "the second version then fits all")
"""What advice says that leaves a recompile."""


@dataclass(frozen=True)
class Case:
    """A function's text; the lines in a loop over `v` before its call, with these arguments."""

    function: str
    values: str
    before: str
    call: str
    by_hand: dict[str, "Case"] = field(default_factory=dict)
    top: str = ""
    compiled: str = "torch.compile(f)"

    def text(self, code: str = "") -> str:
        compiled = code.replace("...", "f") if code.startswith("torch.compile(") else self.compiled
        top = f"{code}\n" if ".config." in code else ""
        here = code if code and not top and not code.startswith("torch.compile(") else "pass"
        lines = [f"{HEAD}{top}{self.top}", self.function, f"c = {compiled}", f"for v in {self.values}:"]
        return "\n".join([*lines, f"    {self.before}", f"    {here}", f"    c({self.call})", ""])


PLUS = "def f(x):\n    return x + 1"
ADDED = "def f(x, y):\n    return x + y"
TIMES = "def f(x, n):\n    return x * n"
SUMMED = "def f(x):\n    return x.sum() + 1"
MODULE = """class M(torch.nn.Module):
    def forward(self, x):
        self.n += 1
        return x * self.n
f = M()
f.n = 5"""
TWO = "def a(x): return x + 1\ndef b(x): return x + 2\n"
CALLED = "def f(x, g):\n    return g(x)"
KEYS = "def f(x, d):\n    for k in d: x = x * d[k]\n    return x"
INFERENCE = "with torch.inference_mode(v): x = ones(2)"
SHARED = "x = ones(2); y = x if v else ones(2)"
OF_CLASS = "class A: k = 1\nclass B: k = 2\ndef f(x, o):\n    return x + o.k"
OF_ENUM = "import enum\nE = enum.Enum('E', 'A B')\ndef f(x, e):\n    return x + (1 if e is E.A else 2)"
FLOATS = """class M(torch.nn.Module):
    def forward(self, x):
        return x * self.s
f = M()"""

RECOMPILES: dict[str, Case] = {
    "size": Case(PLUS, "(2, 3, 4)", "x = ones(v)", "x"),
    "size, automatic dynamic off": Case(
        PLUS, "(2, 3, 4)", "x = ones(v)", "x", compiled="torch.compile(f, dynamic=False)"
    ),
    "size 1 of a broadcast": Case(
        ADDED,
        "(1, 4)",
        "y = ones(3, v)",
        "ones(3, 4), y",
        {"pad size": Case(ADDED, "(1, 4)", "y = ones(3, v).expand(3, 4).contiguous()", "ones(3, 4), y")},
    ),
    "size 0": Case(
        SUMMED, "(3, 0, 4)", "x = ones(v)", "x", {"pad size": Case(SUMMED, "(3, 3, 3)", "x = ones(v)", "x")}
    ),
    "size as a number": Case(
        "def f(x):\n    for i in range(x.shape[0]):\n        x = x + i\n    return x",
        "(2, 3)",
        "x = ones(v)",
        "x",
        {
            "as a number": Case(
                "def f(x):\n    return x + x.shape[0]", "(3, 4)", "torch._dynamo.mark_dynamic(x := ones(v), 0)", "x"
            )
        },
    ),
    "size that is tested": Case(
        "def f(x):\n    return x + 1 if x.shape[0] > 5 else x - 1",
        "(2, 3, 8)",
        "x = ones(v)",
        "x",
        {"pad x to one side": Case(PLUS, "(8, 8, 8)", "x = ones(v)", "x")},
    ),
    "rank": Case(
        PLUS,
        "((2,), (2, 2))",
        "x = ones(v)",
        "x",
        {"same number of dimensions": Case(PLUS, "((1, 2), (1, 2))", "x = ones(v)", "x")},
    ),
    "strides": Case(PLUS, "(ones(2, 3), ones(3, 2).t())", "x = v", "x"),
    "integer": Case(TIMES, "(3, 4, 5)", "n = v", "ones(2), n"),
    "integers 0 and 1": Case(TIMES, "(3, 1, 0, 5)", "n = v", "ones(2), n"),
    "integer as a number": Case(
        "def f(x, n):\n    for i in range(n):\n        x = x * 2\n    return x",
        "(2, 3)",
        "n = v",
        "ones(2), n",
        {"choose outside": Case(PLUS, "(2, 3)", "n = v", "ones(2)")},
    ),
    "integer that is tested": Case(
        "def f(x, n):\n    return x * 2 if n > 5 else x * n",
        "(2, 3, 8)",
        "n = v",
        "ones(2), n",
        {"choose outside": Case(PLUS, "(2, 3, 8)", "n = v", "ones(2)")},
    ),
    "global integer": Case("k = 0\ndef f(x):\n    return x * k", "(3, 4)", "k = v", "ones(2)"),
    "float": Case(TIMES, "(0.5, 0.25, 0.1)", "n = v", "ones(2), n"),
    "integer, then float": Case(TIMES, "(3, 0.5)", "n = v", "ones(2), n"),
    "integer of a module": Case(MODULE, "(1, 2, 3)", "x = ones(2)", "x"),
    "text": Case(
        "def f(x, m):\n    return x + 1 if m == 'a' else x * 2",
        "('a', 'b')",
        "m = v",
        "ones(2), m",
        {"choose outside": Case(PLUS, "('a', 'b')", "m = v", "ones(2)")},
    ),
    "dtype": Case(PLUS, "(torch.int8, torch.int16)", "x = ones(2).to(v)", "x"),
    "gradients": Case(PLUS, "(False, True)", "x = ones(2, requires_grad=v)", "x"),
    "list, then tuple": Case("def f(x, l):\n    return x * l[0]", "([3], (3,))", "l = v", "ones(2), l"),
    "length": Case(
        "def f(x, l):\n    return x + len(l)",
        "([1], [1, 2])",
        "l = v",
        "ones(2), l",
        {"same length": Case("def f(x, l):\n    return x + len(l)", "([1, 2], [1, 2])", "l = v", "ones(2), l")},
    ),
    "key": Case(
        "def f(x, d):\n    return x + 1 if 'a' in d else x * 2",
        "({'a': 1}, {'b': 1})",
        "d = v",
        "ones(2), d",
        {
            "same keys": Case(
                "def f(x, d):\n    return x + 1 if 'a' in d else x * 2", "({'a': 1}, {'a': 1})", "d = v", "ones(2), d"
            )
        },
    ),
    "order of keys": Case(
        KEYS,
        "('ab', 'ba')",
        "d = dict.fromkeys(v, 2)",
        "ones(2), d",
        {"same keys in the same order": Case(KEYS, "('ab', 'ab')", "d = dict.fromkeys(v, 2)", "ones(2), d")},
    ),
    "sizes of parameters": Case(CALLED, "(2, 3, 4)", "g = torch.nn.Linear(2, v)", "ones(2), g"),
    "another function": Case(
        CALLED,
        "(a, b)",
        "g = v",
        "ones(2), g",
        {"call it outside": Case(PLUS, "(a, b)", "x = v(ones(2))", "x", top=TWO)},
        TWO,
    ),
    "another function of torch's": Case(
        CALLED,
        "(torch.sin, torch.cos)",
        "g = v",
        "ones(2), g",
        {"call it outside": Case(PLUS, "(torch.sin, torch.cos)", "x = v(ones(2))", "x")},
    ),
    "grad mode": Case(
        PLUS,
        "(True, False)",
        "torch.set_grad_enabled(v)",
        "ones(2)",
        {"always with gradients": Case(PLUS, "(True, True)", "torch.set_grad_enabled(v)", "ones(2)")},
    ),
    "gradients, then none": Case(PLUS, "(True, False)", "x = ones(2, requires_grad=v)", "x"),
    "device": Case(
        PLUS,
        "('cpu', 'meta')",
        "x = ones(2, device=v)",
        "x",
        {"same device": Case(PLUS, "('cpu', 'cpu')", "x = ones(2, device=v)", "x")},
    ),
    "tensor of inference mode": Case(
        PLUS,
        "(False, True)",
        INFERENCE,
        "x",
        {"same mode (inference_mode": Case(PLUS, "(True, True)", INFERENCE, "x")},
    ),
    "tensor, then parameter": Case(
        PLUS,
        "(ones(2), torch.nn.Parameter(ones(2), requires_grad=False))",
        "x = v",
        "x",
        {"always as a Tensor": Case(PLUS, "(ones(2), ones(2))", "x = v", "x")},
    ),
    "another class": Case(
        OF_CLASS,
        "(A, B)",
        "o = v()",
        "ones(2), o",
        {"always as a A": Case(OF_CLASS, "(A, A)", "o = v()", "ones(2), o")},
    ),
    "autocast": Case(
        PLUS,
        "(False, True)",
        "torch.set_autocast_enabled('cpu', v)",
        "ones(2)); torch.set_autocast_enabled('cpu', False",
        {"as it is between calls": Case(PLUS, "(1, 2)", "x = ones(2)", "x")},
    ),
    "default device": Case(
        PLUS,
        "('cpu', 'meta')",
        "x = torch.zeros(2, device='cpu'); torch.set_default_device(v)",
        "x); torch.set_default_device(None",
        {"as it is between calls": Case(PLUS, "(1, 2)", "x = ones(2)", "x")},
    ),
    "one tensor twice": Case(
        ADDED, "(0, 1)", SHARED, "x, y", {"share no memory": Case(ADDED, "(0, 0)", SHARED, "x, y")}
    ),
    "one tensor twice at first": Case(
        ADDED, "(1, 0)", SHARED, "x, y", {"share no memory": Case(ADDED, "(1, 1)", SHARED, "x, y")}
    ),
    "another object": Case(
        OF_ENUM,
        "(E.A, E.B)",
        "e = v",
        "ones(2), e",
        {"same object": Case(OF_ENUM, "(E.A, E.A)", "e = v", "ones(2), e")},
    ),
    "default of a function": Case(
        CALLED,
        "(3, 4)",
        "g = lambda x, n=v: x * n",
        "ones(2), g",
        {"call it outside": Case(PLUS, "(3, 4)", "x = ones(2) * v", "x")},
    ),
    "integer of a tuple": Case("def f(x, t):\n    return x * t[0]", "((3, 1), (4, 1), (5, 1))", "t = v", "ones(2), t"),
    "integer of a partial": Case(
        CALLED, "(3, 4, 5)", "import functools; g = functools.partial(torch.mul, other=v)", "ones(2), g"
    ),
    "bound of a slice": Case("def f(x, s):\n    return x[s]", "(2, 3, 4)", "s = slice(0, v)", "ones(8), s"),
    "size that is passed": Case("def f(x, n):\n    return x[:n] + 1", "(2, 3, 4)", "n = v", "ones(8), n"),
    "sizes of two": Case(
        "def f(x, y):\n    return x.sum() + y.sum()", "((2, 3), (4, 3), (4, 5), (6, 7))", "x, y = map(ones, v)", "x, y"
    ),
    "layout": Case(
        PLUS,
        "(torch.contiguous_format, torch.channels_last)",
        "x = ones(2, 3, 4, 4).to(memory_format=v)",
        "x",
    ),
    "float of a module": Case(
        FLOATS,
        "(0.1, 0.2, 0.3)",
        "f.s = v",
        "ones(2)",
        {"make self.s a tensor": Case(FLOATS, "(0.1, 0.2, 0.3)", "f.s = torch.tensor(v)", "ones(2)")},
    ),
    "size across a break": Case(
        "h = torch.compiler.disable(lambda x: ones(k))\nk = 0\ndef f(x):\n    return h(x.sin()) * 2",
        "(3, 4, 5)",
        "k = v",
        "ones(2)",
    ),
    "what crosses a break": Case(
        "h = torch.compiler.disable(lambda: k)\nk = 0\ndef f(x):\n    return x.sin() * h()",
        "(3, 4, 5)",
        "k = v",
        "ones(2)",
    ),
    "float across a break": Case(
        "def f(x):\n    y = x.sum().item()\n    return x + 1 if y > 3 else x - 1",
        "(2.5, 3.5, 4.5)",
        "x = ones(2) * v",
        "x",
    ),
    "sizes of a cache": Case(
        """class Cache:
    k = [ones(3), ones(3)]
def f(x, cache):
    for i in range(2):
        cache.k[i] = torch.cat([cache.k[i], x])
        x = x + cache.k[i].sum()
    return x
cache = Cache()
""",
        "range(4)",
        "x = ones(1)",
        "x, cache",
        {
            "allocate the cache once": Case(
                "def f(x, k, at):\n    k[0][at] = x[0]\n    return x + k[0].sum()",
                "range(4)",
                "k = [ones(9)] if not v else k; at = torch.tensor(v)",
                "ones(1), k, at",
            )
        },
    ),
}


@pytest.fixture(autouse=True)
def settings_put_back() -> Iterator[None]:
    """What the programs set is no other test's."""
    static = "force_parameter_static_shapes", "force_nn_module_property_static_shapes"
    off = "allow_rnn", "allow_unspec_int_on_nn_module", "capture_scalar_outputs", "capture_dynamic_output_shape_ops"
    own = {**dict.fromkeys(static, True), **dict.fromkeys(off, False), "reorderable_logging_functions": set()}
    with torch._dynamo.config.patch(own), torch.set_grad_enabled(True):
        yield
        torch.compiler.config.dynamic_sources = ""


def fresh(ran: Runner, text: str, **target: object) -> Run:
    torch._dynamo.reset()
    torch.set_grad_enabled(True)
    run = ran(text, backend="eager", **target)
    assert run.failure is None, (text, run.failure)
    return run


@dataclass(frozen=True)
class Counts:
    """What torch itself counts of a program: frames that it compiled, and graph breaks."""

    frames: int
    breaks: int


def plain(text: str) -> Counts:
    """The program without idbg."""
    torch._dynamo.reset()
    torch.set_grad_enabled(True)
    counters.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch, "compile", partial(torch.compile, backend="eager"))
        exec(compile(text, "plain.py", "exec"), {"__name__": "plain"})
    return Counts(counters["frames"]["ok"], sum(counters["graph_break"].values()))


def texts_with(case: Case, each: Suggestion) -> list[str]:
    """The program with this advice done."""
    texts = [edit.text() for words, edit in case.by_hand.items() if words in each.words]
    texts = texts or ([case.text(each.code)] if each.code else [])
    assert texts, f"no program does this: {each.words}"
    return texts


def after(ran: Runner, case: Case, each: Suggestion) -> list[Run]:
    """The runs of the program with this advice done: in its text, and as a target."""
    runs = [fresh(ran, text) for text in texts_with(case, each)]
    torch.compiler.config.dynamic_sources = ""
    if each.can_be_tried:
        tried = each.tried(runs[0].target)
        runs.append(fresh(ran, case.text(), **{name: getattr(tried, name) for name in CHANGED}))
    return runs


@pytest.mark.parametrize("name", RECOMPILES)
def test_the_recompile_is_gone(ran: Runner, name: str) -> None:
    case = RECOMPILES[name]
    before = fresh(ran, case.text())
    found = [(timeline, each) for timeline in timelines(before) for each in advice(before, timeline)]
    assert before.recompiles and found
    counted = plain(case.text())
    assert sum(result.end == "compiled" for result in before.decided.last(FrameResult).values()) == counted.frames
    for timeline, each in found:
        assert all(plain(text).frames < counted.frames for text in texts_with(case, each)), each
        for run in after(ran, case, each):
            again = sum(len(other.recompiles) for other in timelines(run) if other.function == timeline.function)
            assert again < len(timeline.recompiles), (each, again)
            alone = len({row.failed[0].source for row in timeline.recompiles if row.failed}) == 1
            assert not again or not alone or any(words in each.words for words in LEFT), (each, again)
            assert run.times_broken <= before.times_broken, each


NO_ADVICE = {
    "sizes of a NumPy array vary from the second version on, also with dynamic=True": Case(
        "import numpy\ndef f(x, a):\n    return x + torch.from_numpy(a).sum()",
        "(2, 3, 4)",
        "a = numpy.ones(v)",
        "ones(2), a",
    ),
    "what a set has": Case(
        "def f(x, s):\n    return x + 1 if 'a' in s else x", "({'a'}, {'b'})", "s = v", "ones(2), s"
    ),
}


@pytest.mark.parametrize("name", NO_ADVICE)
def test_what_nothing_is_known_to_help_has_no_advice(ran: Runner, name: str) -> None:
    run = fresh(ran, NO_ADVICE[name].text())
    (timeline,) = timelines(run)
    assert advice(run, timeline) == []


FLOW = "def f(x):\n    if x.sum() > 0:\n        return x + 1\n    return x - 1"
BREAKS: dict[str, Case] = {
    "print of a tensor": Case("def f(x):\n    print('a', x)\n    return x + 1", "(2,)", "x = ones(v)", "x"),
    "print of a size": Case(
        "def f(x):\n    print('a', x.shape)\n    return x + 1",
        "(2,)",
        "x = ones(v)",
        "x",
        {"f-string": Case("def f(x):\n    print(f'a {x.shape}')\n    return x + 1", "(2,)", "x = ones(v)", "x")},
    ),
    "print with a keyword": Case(
        "def f(x):\n    print('a', end='')\n    return x + 1",
        "(2,)",
        "x = ones(v)",
        "x",
        {"f-string": Case("def f(x):\n    print(f'a {x}')\n    return x + 1", "(2,)", "x = ones(v)", "x")},
    ),
    "print that torch is to reorder, of what it cannot": Case(
        "def f(x):\n    print('a', x.shape, end='')\n    return x + 1",
        "(2,)",
        "x = ones(v)",
        "x",
        {"f-string": Case("def f(x):\n    print(f'a {x.shape}')\n    return x + 1", "(2,)", "x = ones(v)", "x")},
        "torch._dynamo.config.reorderable_logging_functions.add(print)",
    ),
    "LSTM": Case(
        "m = torch.nn.LSTM(2, 2)\ndef f(x):\n    return m(x)[0] + 1", "(3,)", "x = ones(v, 2, 2).detach()", "x"
    ),
    "item": Case("def f(x):\n    return x * x.sum().item()", "(2,)", "x = ones(v)", "x"),
    "shape of values": Case("def f(x):\n    return x.nonzero() + 1", "(2,)", "x = ones(v)", "x"),
    "branch on data": Case(
        FLOW,
        "(2,)",
        "x = ones(v)",
        "x",
        {
            "let a graph choose": Case(
                "def f(x):\n    return torch.where(x.sum() > 0, x + 1, x - 1)", "(2,)", "x = ones(v)", "x"
            )
        },
    ),
    "branch on a random number": Case(
        "import random\ndef f(x):\n    if random.random() < 2:\n        return x + 1\n    return x",
        "(2,)",
        "x = ones(v)",
        "x",
        {
            "draw it": Case(
                "def f(x):\n    return torch.where(torch.rand(()) < 2, x + 1, x)", "(2,)", "x = ones(v)", "x"
            )
        },
    ),
    "backward inside": Case(
        "def f(x):\n    y = (x * 2).sum()\n    y.backward()\n    return y",
        "(2,)",
        "x = ones(v, requires_grad=True)",
        "x",
        {
            ".backward() outside": Case(
                "def f(x):\n    return (x * 2).sum()", "(2,)", "x = ones(v, requires_grad=True)", "x"
            )
        },
    ),
    "generator": Case(
        "def f(x):\n    yield x + 1",
        "(2,)",
        "x = ones(v)",
        "x) and list(c(x)",
        {
            "calls the generator": Case(
                "def g(x):\n    yield x + 1\ndef f(x):\n    return list(g(x))", "(2,)", "x = ones(v)", "x"
            )
        },
        "torch.compile(lambda x: x + 1)(ones(2))\n",  # or nothing is compiled
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_break_is_gone(ran: Runner, name: str) -> None:
    case = BREAKS[name]
    before = fresh(ran, case.text())
    found = [each for broke in before.breaks for each in suggestions(broke)]
    assert found, before.breaks
    counted = plain(case.text())
    for each in found:
        edits = [edit for words, edit in case.by_hand.items() if words in each.words]
        text = edits[0].text(each.code if ".config." in each.code else "") if edits else case.text(each.code)
        assert not fresh(ran, text).times_broken, each
        now = plain(text)
        assert not now.breaks and (now.frames <= max(counted.frames, 1) or counted.breaks), each


def test_a_generator_that_runs_in_eager_after_a_break_is_no_break_of_its_own(ran: Runner) -> None:
    text = """
import contextlib, threading, torch
lock = threading.Lock()
@contextlib.contextmanager
def one():
    yield 1
@torch.compile
def f(x):
    with lock:
        x = x * 2
    with one() as n:
        x = x + n
    return x
f(torch.ones(2))
"""
    run = ran(text, backend="eager")
    assert [each.kind for each in run.breaks] == ["Unsupported context manager"]
    assert "called in eager after a graph break" in " ".join(skip.reason for skip in run.decided.every(Skip))


def test_a_recompile_names_the_version_that_was_nearest(ran: Runner) -> None:
    text = """
import torch
scale = 1.0
@torch.compile
def f(x, mode):
    return x * scale if mode == "eval" else x + 1
f(torch.ones(2), "eval"); f(torch.ones(2), "x1"); scale = 2.0; f(torch.ones(2), "eval")
"""
    (timeline,) = timelines(ran(text, backend="eager"))
    assert [(row.failed[0].source, row.failed[0].against) for row in timeline.recompiles] == [
        ("L['mode']", "0/0"),
        ("G['scale']", "0/0"),
    ]


SEVERAL = """
import torch, torch.nn as nn
@torch.compile
def norm(x):
    return x - x.mean()
enc = torch.compile(nn.Sequential(nn.Linear(16, 32), nn.ReLU()))
dec = torch.compile(nn.Linear(32, 4), mode="default")
for n in (4, 6):
    dec(enc(norm(torch.randn(n, 16))))
"""


def test_each_module_that_torch_compiles_by_a_wrapper_has_a_row_with_its_own_guards(ran: Runner) -> None:
    run = fresh(ran, SEVERAL)
    found = {each.function: (each.line, [row.failed[0].source for row in each.recompiles]) for each in timelines(run)}
    own = ["L['args'][0]"]
    assert found == {"norm": (3, ["L['x']"]), "Sequential": (6, own), "Linear": (7, own)}
    assert all("gradients" not in each.words for timeline in timelines(run) for each in advice(run, timeline))
    assert len(run.recompiles) == plain(SEVERAL).frames - len(found)


def test_tensors_that_change_together_are_named_together(ran: Runner) -> None:
    text = """
import torch
m = torch.nn.Sequential(torch.nn.Linear(2, 2))
c = torch.compile(m)
c(torch.ones(1, 2)); m.double(); c(torch.ones(1, 2).double())
"""
    run = fresh(ran, text)
    (only,) = advice(run, timelines(run)[0])
    assert only.words.startswith("let args[0], fn[0].bias, fn[0].weight have the same dtype") and not only.code


def test_what_was_tried_says_on_its_row_what_it_changed(ran: Runner) -> None:
    case = Case(ADDED, "(2, 3, 4)", "x = ones(v); y = ones(v)", "x, y")
    before = fresh(ran, case.text())
    (timeline,) = timelines(before)
    first, *_ = to_try(before)
    assert [text(row) for row in rows([first], "key")] == [f"→ may help: {first.words}"]
    tried = first.tried(before.target)
    again = fresh(ran, case.text(), **{name: getattr(tried, name) for name in CHANGED})
    helped = trial(before, again, first)
    assert text(next(rows([first], "key", [helped], of_timeline(timeline)))) == (
        f"✔ {first.words}  tried: 2 compiles, then 1 (run {again.number})"
    )
    idle = trial(before, before, first)
    assert (
        "✘" in (shown := text(next(rows([first], "key", [idle], of_timeline(timeline)))))
        and "still 2 compiles" in shown
    )
    assert first not in to_try(fresh(ran, case.text(), **{name: getattr(tried, name) for name in CHANGED}))


def text(row: Row) -> str:
    return "".join(str(getattr(word, "text", word)) for word in row.text)
