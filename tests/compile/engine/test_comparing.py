"""A comparison in the worker: what is known is told before the next side may take the process with it."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from idbg.reports.diff import summary
from idbg.schema import events
from idbg.schema.diff import Comparison, DiffReport
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program, Target
from idbg.schema.remarks import Remark
from idbg.views.remarks import tensor_note
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile

AOT, EAGER = Target("aot_eager"), Comparison()
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
TRAINS = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="aot_eager")
losses = []
for _ in range(5):
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
    assert report.verdict == "failed"
    (wrong,) = notes_of(report, "later call")
    assert wrong.subject.startswith("call 3 of forward (") and wrong.by == "2"
    assert "scale is 3, not 2" in str(wrong.detail) and "guard_filter_fn" in str(wrong.detail)


def test_of_a_right_function_calls_1_2_4_8_and_those_with_other_sizes_are_compared(tmp_path: Path) -> None:
    report = last_report(tmp_path, SIZES)
    assert report.verdict == "passed"
    (compared,) = notes_of(report, "later calls")
    assert compared.detail == "1, 2, 4, 5, 7, 8"


def test_comparing_later_calls_leaves_a_training_as_it_is(tmp_path: Path) -> None:
    plain, compared = tmp_path / "plain.pt", tmp_path / "compared.pt"
    exec(TRAINS.replace("FILE", str(plain)), {})
    torch.compiler.reset()
    report = last_report(tmp_path, TRAINS.replace("FILE", str(compared)))
    assert report.verdict == "passed"
    assert [note.detail for note in notes_of(report, "later calls")] == ["1, 2, 4"]
    assert torch.load(plain) == torch.load(compared)
