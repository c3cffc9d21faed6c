"""What became of each frame: compiled, given up with an error that nobody saw, left eager, or compiled for nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from idbg.schema.decisions.dynamo import FrameResult
from idbg.schema.runs import Run

Runner = Callable[..., Run]

FINE = "import torch\nfine = torch.compile(lambda x: x.sin())\nfine(torch.ones(3))\n"
CAUGHT = """\
try:
    torch.compile(lambda x: torch.mm(x, x))(torch.ones(3))
except Exception:
    pass
"""
FULLGRAPH = """\
def broken(x):
    print("hi")
    return x + 1

try:
    torch.compile(broken, fullgraph=True)(torch.ones(3))
except torch._dynamo.exc.Unsupported:
    pass
"""
SUPPRESSED = "torch._dynamo.config.suppress_errors = True\ntorch.compile(lambda x: x.cos())(torch.ones(3))\n"


def test_a_failure_that_the_program_catches_is_told(ran: Runner):
    run = ran(FINE + CAUGHT, backend="eager")
    assert (run.verdict, run.failure) == ("failed", None)
    (failed,) = run.frame_failures
    assert (failed.frame, failed.failure.kind, failed.failure.type) == ("1/0", "torch", "TorchRuntimeError")
    assert "2D" in failed.failure.message


def test_a_backends_failure_that_torch_suppresses_is_told_with_its_traceback(
    ran: Runner, monkeypatch: pytest.MonkeyPatch
):
    def refuses(*args: object, **kwargs: object) -> None:
        raise NotImplementedError("no such kernel")

    refuses.__code__ = refuses.__code__.replace(co_filename=f"{Path(torch.__file__).parent}/_inductor/ours.py")
    monkeypatch.setattr("idbg.engine.compat.lowering.compile_fx_inner", refuses)
    with torch._dynamo.config.patch(suppress_errors=False):
        run = ran("import torch\n" + SUPPRESSED, backend="inductor")
    assert (run.verdict, run.failure) == ("failed", None)
    (failed,) = run.frame_failures
    assert (failed.frame, failed.failure.kind) == ("0/0", "torch")
    assert "no such kernel" in failed.failure.message
    assert "refuses" in failed.failure.traceback


OWN_BACKEND = """\
import torch
torch._dynamo.config.suppress_errors = True

@torch._dynamo.register_backend(name="idbg_test_own")
def backend(gm, inputs):
    raise KeyError("mine")

torch.compile(lambda x: x.cos(), backend="idbg_test_own")(torch.ones(3))
"""
RAISES = """\
import torch

def raises(x):
    raise ValueError("of mine")

try:
    torch.compile(raises, fullgraph=True)(torch.ones(3))
except Exception:
    pass
"""


def test_what_the_programs_own_backend_raised_is_the_programs_also_where_torch_suppresses_it(ran: Runner):
    with torch._dynamo.config.patch(suppress_errors=False):
        run = ran(OWN_BACKEND, backend="idbg_test_own")
    (failed,) = run.frame_failures
    assert (failed.failure.kind, failed.failure.type, failed.failure.message) == ("user", "KeyError", "'mine'")
    assert (Path(failed.failure.file).name, failed.failure.line) == ("subject.py", 6)
    assert "suppress_errors" in failed.failure.hint


def test_what_the_program_raises_in_traced_code_is_its_own_also_where_it_catches_it(ran: Runner):
    run = ran(RAISES, backend="eager")
    (failed,) = run.frame_failures
    assert (failed.failure.kind, failed.failure.type, failed.failure.message) == ("user", "ValueError", "of mine")
    assert (Path(failed.failure.file).name, failed.failure.line) == ("subject.py", 4)


def test_a_break_that_fullgraph_makes_an_error_is_one_also_where_the_program_catches_it(ran: Runner):
    run = ran(FINE + FULLGRAPH, backend="eager")
    assert [(failed.frame, failed.failure.type) for failed in run.frame_failures] == [("1/0", "Unsupported")]
    assert run.verdict == "failed"


def test_a_failure_that_ends_the_program_is_told_once(ran: Runner):
    run = ran(FINE + "torch.compile(lambda x: torch.mm(x, x))(torch.ones(3))\n", backend="eager")
    assert run.failure is not None
    assert run.frame_failures == []


def test_a_strict_refusal_that_the_program_catches_is_no_failure_of_the_compile(ran: Runner):
    text = "import torch\ntry:\n    torch.compile(lambda x: x.double())(torch.ones(3))\nexcept Exception:\n    pass\n"
    run = ran(text, strict=True)
    assert run.verdict == "violations"
    assert [failed.failure.kind for failed in run.frame_failures] == ["constraints"]


def test_a_graph_break_is_no_failure(ran: Runner):
    text = "def breaks(x):\n    y = x.sin()\n    print('inside')\n    return y.cos()\n\n"
    run = ran(FINE + text + "torch.compile(breaks)(torch.ones(3))\n", backend="eager")
    assert (run.verdict, run.frame_failures, len(run.breaks)) == ("compiled", [], 1)


def test_a_program_of_which_nothing_is_compiled_is_not_clean(ran: Runner):
    text = "import torch\nmodel = torch.compile(torch.nn.LSTM(4, 4))\nmodel(torch.randn(3, 2, 4))\n"
    run = ran(text, backend="eager")
    assert (run.verdict, run.graphs) == ("empty", {})
    assert "LSTM" in run.breaks[0].reason


def test_the_call_that_hits_the_recompile_limit_is_a_break_and_no_recompile(ran: Runner):
    text = (
        "import torch\ntorch._dynamo.config.recompile_limit = 2\n"
        "f = torch.compile(lambda x: x.sin(), dynamic=False)\nfor n in range(2, 7):\n    f(torch.ones(n))\n"
    )
    with torch._dynamo.config.patch(recompile_limit=torch._dynamo.config.recompile_limit):
        run = ran(text, backend="eager")
    assert list(run.frames) == ["0/0", "0/1"]
    assert [event.frame for event in run.recompiles] == ["0/1"]
    (limit,) = run.breaks
    assert "recompile_limit is 2" in limit.reason
    assert "size mismatch" in limit.reason
    assert (Path(limit.file).name, limit.line) == ("subject.py", 3)


@pytest.mark.parametrize("backend", ["mock", "aot"])
def test_a_backward_that_the_program_never_calls_is_said_to_be_idle(ran: Runner, backend: str):
    text = "import torch\nmodel = torch.nn.Linear(3, 3)\nout = torch.compile(model)(torch.ones(2, 3))\n"
    idle = ran(text, backend=backend)
    assert "backward" in {graph.stage for graph in idle.graphs}
    assert idle.backwards_idle == ("0/0",)
    called = ran(text + "out.sum().backward()\nassert model.weight.grad is not None\n", backend=backend)
    assert called.backwards_idle == ()
    assert called.failure is None


def test_compiled_autograd_compiles_its_own_backward_and_no_other_in_one_frame(ran: Runner):
    text = (
        "import torch\ntorch._dynamo.config.compiled_autograd = True\nmodel = torch.nn.Linear(3, 3)\n"
        "@torch.compile\ndef step(x):\n    model(x).sum().backward()\n\nstep(torch.ones(2, 3))\n"
    )
    with torch._dynamo.config.patch(compiled_autograd=False):
        run = ran(text)
    assert run.failure is None
    (autograd,) = {graph.frame for graph in run.graphs} - {"0/0"}
    assert autograd.startswith("!0/")
    assert autograd in run.frames
    assert {graph.stage for graph in run.graphs if graph.frame == autograd} == {"dynamo", "inference"}
    assert run.backwards_idle == ()


EXITS = """\
import torch

def backend(gm, inputs):
    raise SystemExit(4)

torch.compile(lambda x: x.cos(), backend=backend)(torch.ones(3))
"""


def test_a_backend_that_ends_the_program_has_not_compiled(ran: Runner):
    run = ran(EXITS, own_backend=True)
    assert (run.verdict, run.failure, run.exit_status) == ("failed", None, 4)
    (failed,) = run.frame_failures
    assert (failed.frame, failed.failure.type, failed.went_on) == ("0/0", "SystemExit", False)
    assert run.decided.last(FrameResult)["0/0"].end == "failed"


@pytest.mark.parametrize(
    ("ends", "kind"), [("raise KeyboardInterrupt", "user"), ("signal.raise_signal(signal.SIGINT)", "cancelled")]
)
def test_a_keyboard_interrupt_that_the_program_raises_itself_is_no_cancel(ran: Runner, ends: str, kind: str):
    run = ran(f"import signal\n{FINE}{ends}\n", backend="eager")
    assert run.failure is not None and run.failure.kind == kind
    assert run.verdict == ("failed" if kind == "user" else "waiting")
