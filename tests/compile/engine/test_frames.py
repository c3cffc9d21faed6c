"""What is known of each frame that Dynamo was asked for: its end, its parent, its attempts; and what was left alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from idbg.analysis.decisions.breaks import places
from idbg.analysis.decisions.frames import spoken
from idbg.schema.decisions.dynamo import BreakAgain, FrameResult, Skip
from idbg.schema.runs import Run

Runner = Callable[..., Run]

BREAKS = """\
import torch

def inner(x, n):
    y = x.sin()
    print("hi")
    return y * n

@torch.compile
def f(x, n):
    z = inner(x, n)
    if z.sum() > 0:
        return z.cos()
    return z.tan()

f(torch.ones(3), 3)
f(torch.ones(4), 5)
"""
LEFT = """\
import torch

def generates(x):
    yield x + 1

def of_numbers(a):
    return a + 1

def loops(x):
    for each in range(3):
        x = x + 1
        print(each)
    return x

class Own:
    def __enter__(self):
        print("in")

    def __exit__(self, *why):
        print("out")

def managed(x):
    with Own():
        return x.sin()

list(torch.compile(generates)(torch.ones(2)))
torch.compile(of_numbers)(2)
torch.compile(loops)(torch.ones(2))
torch.compile(managed)(torch.ones(2))
"""


@pytest.fixture(autouse=True)
def _counted_anew() -> None:
    counters.clear()


def test_frames_know_whose_code_called_them_and_count_what_torch_counts(ran: Runner):
    run = ran(BREAKS, backend="eager")
    parents = {frame.id: frame.parent for frame in run.frames.values()}
    assert [parents[f"{number}/0"] for number in range(5)] == ["", "0/0", "1/0", "0/0", "3/0"]
    assert [parents[f"{number}/1"] for number in range(5)] == ["", "0/1", "1/1", "0/1", "3/1"]
    results = run.decided.last(FrameResult)
    assert set(results) == set(run.frames)
    assert {result.end for result in results.values()} == {"compiled"}
    assert sum(result.ops or 0 for result in results.values()) == counters["stats"]["calls_captured"]
    assert sum(bool(result.ops) for result in results.values()) == counters["stats"]["unique_graphs"]
    assert results["0/0"].attempts == 2 and len(results["0/0"].restarts) == 1
    assert (results["1/0"].entries, results["1/1"].entries) == (1, 2)
    assert (results["1/1"].alike, results["1/1"].limit) == (2, torch._dynamo.config.recompile_limit)
    assert all((result.seconds or 0) > (result.lost or 0) >= 0 for result in results.values())


def test_every_break_is_counted_as_torch_counts_them(ran: Runner):
    run = ran(BREAKS, backend="eager")
    met = [way for place in places(run) for way in place.ways]
    assert met.count("call") == sum(counters["graph_break"].values()) == 4
    assert (met.count("branch"), len(met), len(run.breaks)) == (2, 6, 2)


def test_entries_are_those_of_torchs_cache(ran: Runner, monkeypatch: pytest.MonkeyPatch):
    seen: dict[str, int] = {}
    text = BREAKS + (
        "from torch._dynamo.eval_frame import _debug_get_cache_entry_list as listed\n"
        "for each in (inner, f._torchdynamo_orig_callable):\n"
        "    seen[each.__name__] = len(listed(each.__code__))\n"
    )
    monkeypatch.setattr("builtins.seen", seen, raising=False)
    run = ran(text, backend="eager")
    assert run.failure is None
    most = {
        run.frames[name].function: result.entries
        for name, result in run.decided.last(FrameResult).items()
        if name.endswith("/1")
    }
    assert seen == {"inner": most["inner"], "f": most["f"]}


def test_what_dynamo_leaves_alone_is_told_once_with_the_reason(ran: Runner):
    run = ran(LEFT, backend="eager")
    assert run.failure is None
    ends = {run.frames[name].function: result.end for name, result in run.decided.last(FrameResult).items()}
    assert ends == {"of_numbers": "skipped", "loops": "eager", "managed": "eager"}
    assert {(broke.line, broke.way) for broke in run.breaks if Path(broke.file).name == "subject.py"} == {
        (3, "frame"),
        (12, "frame"),
        (17, "frame"),
    }
    generator = next(broke for broke in run.breaks if broke.line == 3)
    assert "generator" in generator.reason and generator.frame == ""
    own = [skip for skip in run.decided.every(Skip) if Path(skip.file).name == "subject.py"]
    assert sorted(skip.function for skip in own) == ["Own.__enter__", "Own.__exit__"]
    assert {skip.reason for skip in own} == {"no tensor-related objects found in frame"}


def test_nothing_of_torchs_stays_as_it_was_while_listening(ran: Runner):
    import torch._dynamo.convert_frame
    import torch._dynamo.guards as guards

    convert_frame: Any = torch._dynamo.convert_frame
    before = convert_frame.format_error_msg, guards.get_guard_fail_reason, guards.strip_local_scope
    wrapper = dict(vars(convert_frame.CatchErrorsWrapper))
    hooks = len(convert_frame._bytecode_hooks)
    ran(BREAKS, backend="eager")
    assert (convert_frame.format_error_msg, guards.get_guard_fail_reason, guards.strip_local_scope) == before
    assert dict(vars(convert_frame.CatchErrorsWrapper)) == wrapper
    assert len(convert_frame._bytecode_hooks) == hooks


def test_frames_after_a_reset_have_names_of_their_own_in_breaks_and_recompiles_too(ran: Runner):
    run = ran(BREAKS + "torch._dynamo.reset()\nf(torch.ones(3), 3)\nf(torch.ones(4), 5)\n", backend="eager")
    assert run.frames["1/0#2"].parent == "0/0#2"
    assert "0/1#2" in {event.frame for event in run.recompiles}
    assert "0/0#2" in {again.frame for again in run.decided.every(BreakAgain)}
    assert set(run.decided.last(FrameResult)) == set(run.frames)


FAILS = """\
import torch

def inner(x):
    return torch.mm(x, x)

@torch.compile
def f(x):
    y = x + 1
    return inner(y)

f(torch.ones(3))
"""


@pytest.mark.parametrize("fullgraph", [False, True])
def test_an_error_inside_dynamo_shows_the_users_stack(ran: Runner, fullgraph: bool):
    text = FAILS
    if fullgraph:
        text = text.replace("torch.compile", "torch.compile(fullgraph=True)").replace("torch.mm(x, x)", "print(x)")
    run = ran(text, backend="eager")
    assert run.failure is not None
    (result,) = run.decided.last(FrameResult).values()
    assert result.end == "failed"
    assert [(Path(line.file).name, line.line, line.function) for line in result.stack] == [
        ("subject.py", 9, "f"),
        ("subject.py", 4, "inner"),
    ]


def test_errors_that_are_suppressed_leave_the_frame_in_eager(ran: Runner):
    text = FAILS.replace("f(torch.ones(3))", "try:\n    f(torch.ones(3))\nexcept RuntimeError:\n    pass")
    text = text.replace("import torch\n", "import torch\ntorch._dynamo.config.suppress_errors = True\n", 1)
    with torch._dynamo.config.patch(suppress_errors=False):
        run = ran(text, backend="eager")
    assert run.decided.last(FrameResult)["0/0"].end == "eager"
    assert run.decided.every(Skip) == [] or "f" not in {skip.function for skip in run.decided.every(Skip)}


def test_code_with_no_frames_has_none(ran: Runner):
    run = ran("import torch\ntorch.ones(3).sum()\n", backend="eager")
    assert (run.frames, run.decided.last(FrameResult), run.decided.every(Skip)) == ({}, {}, [])


NAMED = """\
import torch, torch.nn as nn
class Block(nn.Module):
    def forward(self, x):
        print(x)
        return x.relu()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
    def forward(self, x):
        return self.block(x) + 1
class Both(nn.Module):
    def forward(self, x):
        return x * 4
class Other:
    def step(self, x):
        return x + 3
def main():
    def double(x):
        return x * 2
    net = torch.compile(Net())
    line = torch.compile(nn.Linear(4, 2))
    both = Both()  # torch 2.11 compiles nothing of a Sequential by its method
    both.compile()
    functions = torch.compile(double), torch.compile(Other().step), torch.compile(torch.exp)
    x = torch.ones(3, 4)
    both(line(net(x)))
    for function in functions:
        function(x)
main()
"""


def test_a_frame_is_named_by_its_class_or_function_and_by_the_users_torch_compile(ran: Runner):
    run = ran(NAMED, backend="eager")
    found = {(spoken(frame), frame.call.name, frame.call.line) for frame in run.frames.values() if frame.call}
    assert found == {
        ("Net.forward", "Net", 21),
        ("Block.forward", "Net", 21),
        ("Block.forward, after line 4", "Net", 21),
        ("Net.forward, after line 11", "Net", 21),
        ("Linear", "Linear", 22),
        ("Both.forward", "Both", 24),
        ("double", "double", 25),
        ("Other.step", "Other.step", 25),
        ("exp", "exp", 25),
    }
    assert {frame.line for frame in run.frames.values() if frame.function in ("Linear", "exp")} == {22, 25}
    assert not run.recompiles, "torch compiles the same wrapper around each: none is one of another"
