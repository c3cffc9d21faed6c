"""Where no graph has a failure, the user's file is made smaller: breaks, recompiles, Dynamo's errors, commands."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from torch._dynamo.variables import TensorVariable

from idbg.engine.minify.forks.client import Forks
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Budget, Sought
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Minify
from tests.harness.minified import Minifying
from tests.harness.repro_bench import Bench
from tests.harness.user_level import MARK, Smaller, smaller_in

LAYERS = '''
    """Six layers, one of which breaks."""
    import math

    import torch
    from torch import nn


    class Block(nn.Module):
        # a layer
        def __init__(self, width, loud=False):
            super().__init__()
            self.linear = nn.Linear(width, width)
            self.loud = loud

        def forward(self, x, scale=1.0):
            y = self.linear(x)
            if self.loud:
                print("mean", y.mean())
            return x + torch.relu(y) * scale


    class Model(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            self.embed = nn.Embedding(32, width)
            self.layers = nn.ModuleList(Block(width, loud=i == 3) for i in range(6))

        def forward(self, tokens):
            x = self.embed(tokens)
            for layer in self.layers:
                x = layer(x, scale=1 / math.sqrt(2))
            return x


    def program():
        return Model().eval(), (torch.randint(0, 32, (2, 8)),)


    if __name__ == "__main__":
        raise SystemExit("this is imported")
'''

SCRIPT = """
    import torch


    @torch.compile
    def f(x, n):
        x = x + 1
        print("hi")
        x = x * n
        if x.sum() > 0:
            x = x + 2
        return x.sin()


    def main():
        for n in (1, 2, 3):
            print(f(torch.ones(3), n))


    if __name__ == "__main__":
        main()
"""

CLOSURE = """
    import torch

    def outer(k):
        holder = {"n": k}
        def f(x):
            y = x + 1
            return y * holder["n"]
        return f, holder

    f, holder = outer(1)
    g = torch.compile(f, dynamic=False)
    for i in range(4):
        holder["n"] = i
        print(g(torch.ones(3)))
"""

SHAPES = """
    import torch

    def f(x):
        return x.sin() + 1

    g = torch.compile(f, dynamic=False)
    g(torch.ones(3))
    g(torch.ones(4))
    g(torch.ones(4).double())
    print("done")
"""

UNTRACEABLE = """
    import inspect
    import torch

    def helper(x, items):
        items.append(x)
        inspect.signature(open)
        return x + len(items)

    def f(x):
        items = []
        y = helper(x, items)
        return y * 2

    print(torch.compile(f, fullgraph=True)(torch.ones(2)))
"""

PLANTED = """
    import torch
    from torch._dynamo.variables import TensorVariable

    real = TensorVariable.call_method

    def planted(self, tx, name, args, kwargs):
        if name == "sort":
            raise AssertionError("a bug that was planted in Dynamo")
        return real(self, tx, name, args, kwargs)

    TensorVariable.call_method = planted

    def f(x):
        y = x.sin()
        values, places = x.sort()
        return y * values

    print(torch.compile(f)(torch.ones(3)))
"""


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    folder = tmp_path_factory.mktemp("forks")
    with Forks(folder, (), folder / "warm") as forks:
        yield forks


@pytest.fixture
def smaller(tmp_path: Path, forks: Forks, monkeypatch: pytest.MonkeyPatch) -> Smaller:
    return smaller_in(tmp_path, forks, monkeypatch)


@pytest.mark.slow
def test_of_six_layers_the_one_that_breaks_is_left_alone(smaller: Smaller) -> None:
    small = smaller(LAYERS, Sought("break"), fresh=True)
    found = small.minified
    assert found.reproduced and found.status == 1 and found.minimal
    assert "REPRODUCED Graph break: Failed to trace builtin operator" in found.printed
    assert found.note == "It is the model's layers.3 (Block) alone." and found.note in small.script
    assert "print()" in small.left, "the line that breaks is made smaller too"
    assert (
        "class Block(nn.Module):" in small.left and "torch.compile(" in small.left and 'backend="eager"' in small.left
    )
    for gone in ("Model", "program", "layers", "linear =", "relu", "__main__", "no_grad", "tensors"):
        assert gone not in small.left
    assert small.left.count("\n") <= 18 and len(small.script.splitlines()) < 80
    assert found.size < found.whole and found.unit == "lines"
    begun = [each for each in small.told if each.whole]
    assert {each.whole for each in begun} == {found.whole} and all(each.size <= found.whole for each in begun)
    assert {"the modules of the model", "modules", "statements of the file"} <= {each.doing for each in small.told}
    assert next(each.calls for each in small.told if each.doing == "statements of the file") <= 6


@pytest.mark.slow
def test_a_break_that_is_not_the_first_is_the_only_one_left(smaller: Smaller, tmp_path: Path) -> None:
    small = smaller(SCRIPT, Sought("break", place=f"{tmp_path / 'subject.py'}:10"))
    assert small.minified.reproduced and small.minified.minimal
    assert small.minified.signature.message == "Data-dependent branching"
    assert "if x > 0:" in small.left and "print" not in small.left and "__main__" not in small.left
    # the first that is met is an error then
    assert "fullgraph=True" in small.left and "set_logs" not in small.script


@pytest.mark.slow
def test_a_number_that_changes_in_a_closure_recompiles_and_a_budget_leaves_the_smallest_so_far(
    smaller: Smaller,
) -> None:
    small = smaller(CLOSURE, Sought("recompile"), budget=Budget(calls=8))
    assert small.minified.reproduced and not small.minified.minimal
    assert small.minified.guarantee == "not known to be minimal: its 8 tries are used up"
    again = smaller(CLOSURE, Sought("recompile"), budget=Budget(calls=4))
    assert (again.minified.known, again.minified.calls) == (7, 4)  # the whole is tried anew
    whole = smaller(CLOSURE, Sought("recompile"))
    assert whole.minified.reproduced and whole.minified.minimal and whole.minified.known > 7
    assert "error_on_recompile = True" in whole.script
    assert 'holder["n"]' in whole.left and "print" not in whole.left and "x + 1" not in whole.left


@pytest.mark.slow
def test_a_recompile_for_a_shape_keeps_two_calls(smaller: Smaller) -> None:
    small = smaller(SHAPES, Sought("recompile"))
    assert small.minified.reproduced and "size mismatch at index" in small.minified.signature.message
    assert small.left.count("g(torch.") == 2 and "double" not in small.left and "done" not in small.left


@pytest.mark.slow
def test_a_bug_of_dynamos_is_known_by_its_own_words(smaller: Smaller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TensorVariable, "call_method", TensorVariable.call_method)  # what the program plants goes
    small = smaller(PLANTED, Sought("failure"))
    assert small.minified.reproduced and "a bug that was planted in Dynamo" in small.minified.signature.message
    assert "x.sort()" in small.left and "y * values" not in small.left and "sin" not in small.left


@pytest.mark.slow
def test_what_the_program_itself_raises(smaller: Smaller) -> None:
    text = """
        import sys
        import torch

        def checked(x, limit):
            if x.shape[0] > limit:
                raise ValueError("too long a tensor")
            return x

        def f(x):
            return checked(x, 2) + 1

        print(sys.argv, torch.compile(f)(torch.ones(3)))
    """
    small = smaller(text, Sought("failure"))
    assert small.minified.reproduced and small.minified.signature.type == "ValueError"
    assert 'raise ValueError("too long a tensor")' in small.left and "print" not in small.left


@pytest.mark.slow
def test_a_command_of_the_users_decides(smaller: Smaller, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("width = 3\n")
    check = "import sys, own; sys.exit(7 * ('sin()' in open(sys.argv[1]).read()))"
    small = smaller(
        "import own\n" + SHAPES.replace("\n    ", "\n"), Sought("check", command=(sys.executable, "-c", check))
    )
    found = small.minified
    assert found.reproduced and found.minimal and found.signature.type == "exit 7"
    assert (Path(found.path).parent / "subject.py").read_text() == "def f():\n    return x.sin()\n"


def test_a_command_that_does_not_fail_has_nothing_to_make_smaller(smaller: Smaller) -> None:
    small = smaller(SHAPES, Sought("check", command=(sys.executable, "-c", "")))
    assert small.minified.signature.kind == "none" and not small.minified.path


def test_a_failure_that_does_not_come_every_time_is_said_to(smaller: Smaller) -> None:
    text = """
        from pathlib import Path
        import torch

        counter = Path("counter")
        runs = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(runs + 1))
        if runs % 3 == 0:
            raise KeyError("now and then")
        print(torch.compile(lambda x: x + 1)(torch.ones(3)))
    """
    small = smaller(text, Sought("failure"), budget=Budget(calls=6))
    assert 0 < small.minified.failed < small.minified.tried == 11
    assert small.minified.path and not small.minified.minimal


def test_what_is_no_failure_of_the_program_is_refused(smaller: Smaller) -> None:
    with pytest.raises(ValueError, match="the run has no graph break"):
        smaller(SHAPES, Sought("break"))


@pytest.mark.slow
def test_the_worker_looks_at_the_program_where_no_graph_has_what_dynamo_cannot_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bench = Bench(tmp_path, dedent(UNTRACEABLE), backend="eager")
    request = bench.jobs.request
    assert request is not None and bench.ended.failure is not None
    asked = Minify(1, request.program, request.target, request.folder, Sought("failure"), bench.ended.failure)
    ended = bench.jobs.do(asked)
    assert isinstance(ended, events.MinifyEnded) and ended.minified is not None, ended
    assert ended.minified.reproduced and ended.minified.unit == "lines" and ended.minified.minimal
    assert ended.minified.signature.type == "Unsupported"
    left = Path(ended.minified.path).read_text().partition(MARK)[2]
    assert "inspect.signature(open)" in left and "append" not in left and "return" not in left
    doing = {event.progress.doing for event in bench.told if isinstance(event, events.MinifyProgressed)}
    assert {"statements of the file", "a fresh process"} <= doing


def test_a_program_that_hangs_with_nothing_compiled_is_said_to(tmp_path: Path) -> None:
    """Also where it catches what it can; one that was to end is not waited for: these outlast the timeout."""
    ended = looked_for(tmp_path, "import time\ntry:\n    time.sleep(1000)\nexcept Exception:\n    time.sleep(1000)\n")
    assert ended.failure is not None
    assert ended.failure.message == "the program has not ended in 1 s with nothing compiled (--seconds)"


def test_what_is_cancelled_before_anything_was_tried_is_said_to_be(tmp_path: Path) -> None:
    ended = looked_for(tmp_path, "import signal\nsignal.raise_signal(signal.SIGINT)", seconds=300.0)
    assert ended.failure is not None and ended.failure.kind == "cancelled"


def looked_for(folder: Path, text: str, seconds: float = 1.0) -> events.MinifyEnded:
    """What becomes of a search for a hang, for so long at most, in a process that did not run the program."""
    path = folder / "subject.py"
    path.write_text(text)
    program, target = Program(str(path), cwd=str(folder)), Target(backend="inductor")
    asked = Minify(1, program, target, str(folder / "repros"), Sought("hang"), budget=Budget(seconds=seconds))
    ended = Jobs(lambda event: None).do(asked)
    assert isinstance(ended, events.MinifyEnded)
    return ended


@pytest.mark.slow
def test_of_a_program_that_raises_what_feeds_a_node_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bench = Minifying(tmp_path, "torch.compile(lambda x: x.sin() + 1)(torch.ones(3))\nraise ValueError('later')\n")
    graph = bench.graph("dynamo")
    assert bench.ended.failure is not None
    found = bench.minified(Sought("node", node=graph.node_id("sin")))
    assert (found.signature.kind, found.status, found.unit) == ("none", 0, "nodes"), found.printed


def test_a_violated_mark_dynamic_is_one_failure_whatever_compiles_it(smaller: Smaller) -> None:
    text = """
        import torch

        def f(x, w):
            y = x @ w
            if x.shape[0] == 4:
                return y.sin()
            return y.cos()

        x = torch.randn(4, 3)
        torch._dynamo.mark_dynamic(x, 0)
        w = torch.ones(3, 5) @ torch.ones(5, 6)
        torch.compile(f)(x, w)
    """
    found = smaller(text, Sought("failure"))
    assert found.left.endswith('torch.compile(f, backend="eager")()\n'), found.left
    assert "def f():\n    if x.shape[0] == 2:\n        pass\n" in found.left
    assert found.minified.others == (), "eager refuses products of other sizes too"
