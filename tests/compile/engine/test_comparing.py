"""A comparison in the worker: what is known is told before the next side may take the process with it."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from idbg.cli import exits
from idbg.cli.commands.diff import status
from idbg.cli.fail_on import Policy
from idbg.engine.kerneldiff.sides import run as sides
from idbg.engine.kerneldiff.sides.python_state import PythonState
from idbg.reports.baseline import NOTHING_KNOWN
from idbg.reports.diff import summary
from idbg.schema import events
from idbg.schema.diff import Comparison, DiffReport
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program, Target
from idbg.schema.remarks import Remark
from idbg.views.blame import blame_sentence
from idbg.views.diagnostics import diagnostics
from idbg.views.remarks import tensor_note
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile
from tests.harness.compared import run_with

AOT, EAGER = Target("aot_eager"), Comparison()
DEFAULT = Policy(frozenset(), False, None, NOTHING_KNOWN, False)
TWO_SIDES = """
import torch
from tests.harness.traced import is_traced
def program():
    def model(x):
        if is_traced():
            x = x + torch.ones(3)
        return x.relu()
    return model, (torch.ones(2, 3),)
"""
EXITS = """
import sys, torch
torch.compile(lambda x: x * 2)(torch.ones(3))
sys.exit(3)
"""
DIFFERENTIATES = """
import torch
@torch.compile
def slope(x):
    return torch.autograd.grad(x.square().sum(), x)[0]
slope(torch.ones(3, requires_grad=True))
"""
FOR_INFERENCE = """
import torch
def inference(graph, inputs):
    return lambda *values: tuple(value.detach() for value in graph(*values))
torch.manual_seed(0)
layer = torch.compile(torch.nn.Linear(4, 3), backend=inference)
layer(torch.ones(2, 4))
"""
LEAVES = """
import sys, torch
def program():
    def model(x):
        sys.exit(4)
    return model, (torch.ones(3),)
"""


def told(
    folder: Path, text: str, comparison: Comparison = EAGER, target: Target = AOT
) -> tuple[list[SessionEvent], events.RunEnded]:
    path = folder / "model.py"
    path.write_text(text)
    found: list[SessionEvent] = []
    request = Compile(1, Program(str(path)), target, str(folder), comparison)
    return found, Jobs(found.append).compile(request)


def reports(found: list[SessionEvent]) -> list[DiffReport]:
    return [event.report for event in found if isinstance(event, events.Compared)]


def test_what_the_reference_gave_is_told_before_the_test_side_begins(tmp_path: Path) -> None:
    found, _ = told(tmp_path, TWO_SIDES)
    first, *_, last = reports(found)
    assert first.verdict == "waiting" and [side.name for side in first.sides] == ["eager"]
    assert tensor_note(first.outputs[0]) == "not compared: aot_eager has not run yet"
    assert not first.outputs[0].judged and not first.outputs[0].failed
    kinds = [event for event in found if isinstance(event, (events.SideStarted, events.Compared))]
    assert isinstance(kinds[1], events.Compared) and isinstance(kinds[2], events.SideStarted)
    assert kinds[2].side == "aot_eager"
    assert last.verdict == "failed" and last.outputs[0].max_abs == 1 and last.outputs[0].failed


def test_nothing_is_red_or_green_before_every_side_has_run(tmp_path: Path) -> None:
    found, ended = told(tmp_path, TWO_SIDES)
    sides = [event.side for event in found if isinstance(event, events.SideStarted)]
    last_began = max(place for place, event in enumerate(found) if isinstance(event, events.SideStarted))
    before = reports(found[:last_began])
    assert sides[:3] == ["eager", "aot_eager", "float64"] and len(before) == 2
    assert {report.verdict for report in before} == {"waiting"}
    assert not any(diff.judged or diff.failed_by for report in before for diff in report.outputs)
    assert before[-1].outputs[0].max_abs == 1, "what is measured is told"
    assert ended.verdict == "wrong"


def test_the_comparison_is_told_also_where_the_program_exits_after_it(tmp_path: Path) -> None:
    found, ended = told(tmp_path, EXITS)
    assert ended.failure is not None and "sys.exit(3)" in ended.failure.message
    assert reports(found)[-1].verdict == "passed"
    assert list(tmp_path.glob("outputs-*.safetensors"))


def test_a_script_that_differentiates_inside_is_compared(tmp_path: Path) -> None:
    found, ended = told(tmp_path, DIFFERENTIATES)
    assert ended.failure is None
    last = reports(found)[-1]
    assert last.verdict == "passed", summary(last)
    assert Remark("first calls") in last.notes


def test_a_side_that_exits_has_failed(tmp_path: Path) -> None:
    found, _ = told(tmp_path, LEAVES)
    failure = reports(found)[-1].sides[0].failure
    assert failure is not None and failure.message == "it ended itself with sys.exit(4)"


@pytest.mark.parametrize("comparison", [EAGER, Comparison(rtol=1e-3, atol=0.0)])
def test_nothing_is_told_twice(tmp_path: Path, comparison: Comparison) -> None:
    found, _ = told(tmp_path, TWO_SIDES, comparison)
    all_told = reports(found)
    assert all(one != other for one, other in pairwise(all_told))


def test_a_kernels_launch_is_at_its_line_in_the_runs_own_code(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\ntorch._inductor.config.graph_partition = True\n"
        "def program():\n    return (lambda x: ((x @ x).sin() @ x).softmax(-1)), (torch.ones(3, 3),)\n"
    )
    found: list[SessionEvent] = []
    asked = Compile(1, Program(str(path)), Target("inductor"), str(tmp_path), Comparison(per_kernel=True))
    with torch._inductor.config.patch(graph_partition=True):
        Jobs(found.append).compile(asked)
    codes = {(e.code.frame, e.code.part): e.code for e in found if isinstance(e, events.CodeCaptured)}
    kernels = reports(found)[-1].kernels
    assert len(kernels) >= 4
    for one in kernels:
        listed = [kernel for kernel in codes[one.frame, one.part].kernels if kernel.name == one.name]
        assert (one.handle, one.wrapper_line) in [
            (call.handle, call.line) for kernel in listed for call in kernel.calls
        ]


def test_a_backend_for_inference_is_compared_by_its_forward_unless_gradients_are_requested(tmp_path: Path) -> None:
    own = Target("aot_eager", own_backend=True)
    found, _ = told(tmp_path, FOR_INFERENCE, target=own)
    report = reports(found)[-1]
    assert report.verdict == "passed" and report.gradients == ()
    assert [diff.name for diff in report.outputs] == ["Linear: out"]
    assert Remark("forward alone", report.test, "no output requires a gradient") in report.notes
    found, _ = told(tmp_path, FOR_INFERENCE, Comparison(backward=True), own)
    report = reports(found)[-1]
    assert report.verdict == "error" and "nothing to differentiate" in summary(report)


STALE = """
import torch
class Scaled(torch.nn.Module):
    scale = 2.0
    def forward(self, x):
        return x * self.scale
model = Scaled()
model.scale = 2.0
compiled = torch.compile(model, options={"guard_filter_fn": lambda guards: [False for _ in guards]})
for _ in range(2):
    compiled(torch.ones(3))
for _ in range(3):
    model.scale = 3.0
    compiled(torch.ones(3))
"""
SIZES = """
import torch
f = torch.compile(lambda x: (x * 2).sum())
for size in (4, 4, 4, 4, 5, 5, 6, 6, 6, 6):
    f(torch.ones(size))
"""
BAKED = """
import torch
def bake(graph):
    for node in graph.nodes:
        if node.op == "placeholder" and isinstance(node.meta["val"], torch.SymInt):
            for user in list(node.users):
                if user.target is torch.ops.aten.mul.Tensor:
                    user.replace_input_with(node, 8)
torch._inductor.config.post_grad_custom_post_pass = bake
x = torch.ones(8)
torch._dynamo.mark_dynamic(x, 0)
f = torch.compile(lambda x: x * x.shape[0])
f(x)
f(torch.ones(12))
f(torch.ones(16))
"""
OTHER_DRAWS = """
import torch
@torch.compile
def f(x):
    if x.shape[0] > 4 and torch.compiler.is_compiling():
        x = x + 0 * torch.rand(3).sum()
    return torch.nn.functional.dropout(x * 2, 0.3)
f(torch.ones(4))
f(torch.ones(64))
"""
RAISES = """
import torch
from torch.nn.functional import dropout
class Model(torch.nn.Module):
    rate, limit = 0.5, 9
    def forward(self, x):
        if self.limit < 3:
            raise ValueError("too small")
        return dropout(x, self.rate)
model = Model()
f = torch.compile(model, options={"guard_filter_fn": lambda guards: [False for _ in guards]})
torch.manual_seed(0)
for limit in (5, 4, 3, 2):
    model.limit = limit
    print(f(torch.ones(8)))
"""
DROPS_LATER = """
import torch
@torch.compile
def f(x, rate):
    return torch.nn.functional.dropout(x * 2, rate) if rate else x * 2
torch.manual_seed(0)
x = torch.ones(64)
torch.save([f(x, 0.0), f(x, 0.5), f(x, 0.5), f(x, 0.5), torch.rand(3)], "FILE")
"""
TRAINS = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="aot_eager")
losses = []
for _ in range(10):
    loss = compiled(torch.randn(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    if _ % 2:
        optimizer.zero_grad()
    losses.append(loss.item())
torch.save(losses, "FILE")
"""


def last_report(folder: Path, text: str, target: Target = AOT) -> DiffReport:
    sent, _ = told(folder, text, target=target)
    return reports(sent)[-1]


def notes_of(report: DiffReport, kind: str) -> list[Remark]:
    return [note for note in report.notes if isinstance(note, Remark) and note.kind == kind]


def test_a_call_that_a_skipped_guard_lets_through_is_wrong_and_what_changed_is_named(tmp_path: Path) -> None:
    report = last_report(tmp_path, STALE)
    assert report.verdict == "failed" and [diff.name for diff in report.outputs if diff.failed] == [
        "Scaled call 3: out"
    ]
    wrong = "; ".join(("scale is 3, not 2", "guard_filter_fn skips guards"))
    assert blame_sentence(report).startswith("call 3 of Scaled (")
    assert blame_sentence(report).endswith(f":5) is wrong, and call 2 was right; what changed since: {wrong}")
    run = run_with(report)
    (found,) = [each for each in diagnostics(run) if each.kind == "mismatch"]
    assert wrong in found.message and status(run, DEFAULT) == exits.FAILED


def test_of_a_right_function_calls_1_2_4_8_and_those_with_other_sizes_are_compared(tmp_path: Path) -> None:
    report = last_report(tmp_path, SIZES)
    assert report.verdict == "passed"
    (compared,) = notes_of(report, "later calls")
    assert compared.detail == "1, 2, 4, 5, 7, 8"


@pytest.mark.slow
def test_a_size_that_a_pass_bakes_into_the_graph_is_wrong_at_the_call_with_another(tmp_path: Path) -> None:
    report = last_report(tmp_path, BAKED, Target("inductor"))
    assert report.verdict == "failed" and status(run_with(report), DEFAULT) == exits.FAILED
    (wrong,) = notes_of(report, "later call")
    assert wrong.subject.startswith("call 2 of <lambda> (") and wrong.by == "1"
    assert wrong.detail == "size 0 of args[0] is 12, not 8"
    assert notes_of(report, "later calls") == [Remark("later calls", "<lambda>", "1, 2")], "none is compared after it"


def test_a_check_that_a_stale_guard_skips_is_lost_at_that_call(tmp_path: Path) -> None:
    report = last_report(tmp_path, RAISES)
    assert report.verdict == "error" and report.raises_alone is not None
    assert summary(report).startswith("✘ eager raises, aot_eager returns a value")
    assert "call 4 of Model (" in blame_sentence(report) and "limit is 2, not 4" in blame_sentence(report)
    assert status(run_with(report), DEFAULT) == exits.FAILED


def test_a_later_call_that_draws_other_random_numbers_is_not_comparable(tmp_path: Path) -> None:
    report = last_report(tmp_path, OTHER_DRAWS)
    assert report.verdict == "waiting" and report.not_judged == "some later calls"
    assert status(run_with(report), DEFAULT) == exits.UNDECIDED
    assert summary(report).count("call 2 of f (") == 1 and not notes_of(report, "later calls")
    assert [diff.judged for diff in report.outputs] == [True, False]


@pytest.mark.slow
def test_where_inductor_draws_its_own_numbers_later_calls_are_compared_in_a_twin(tmp_path: Path) -> None:
    """The first call draws none."""
    plain, compared = tmp_path / "plain.pt", tmp_path / "compared.pt"
    text = DROPS_LATER
    exec(text.replace("FILE", str(plain)), {})
    torch.compiler.reset()
    report = last_report(tmp_path, text.replace("FILE", str(compared)), Target("inductor"))
    assert report.verdict == "passed" and notes_of(report, "later calls")[0].detail == "1, 2, 4"
    assert all(map(torch.equal, torch.load(plain), torch.load(compared)))


def test_comparing_later_calls_leaves_a_training_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compared = tmp_path / "plain.pt", tmp_path / "compared.pt"
    exec(TRAINS.replace("FILE", str(plain)), {})
    torch.compiler.reset()
    ran: Counter[str] = Counter()
    walked: Counter[str] = Counter()
    run_side, effects = sides.run_side, PythonState.effects
    monkeypatch.setattr(
        sides, "run_side", lambda name, *args, **named: ran.update([name]) or run_side(name, *args, **named)
    )
    monkeypatch.setattr(PythonState, "effects", lambda state: walked.update(["effects"]) or effects(state))
    report = last_report(tmp_path, TRAINS.replace("FILE", str(compared)))
    assert report.verdict == "passed"
    assert [note.detail for note in notes_of(report, "later calls")] == ["1, 2, 4, 8"]
    assert torch.load(plain) == torch.load(compared)
    assert ran == {"eager": 4, "aot_eager": 4, "float64": 1}, "two more for each later call"
    assert walked.total() == ran.total(), "Python state is walked at no call that is not compared"
