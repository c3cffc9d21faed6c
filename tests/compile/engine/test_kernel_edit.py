"""A kernel that was edited runs in place of the original, and is compared with it and with float64."""

import pytest
import torch

from idbg.schema import events
from idbg.schema.code import Kernel
from idbg.schema.diff import Comparison
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, EditKernel

PROGRAM = """
import torch
def program():
    torch.manual_seed(0)
    x = torch.randn(64, 64{device})
    return lambda x: torch.relu(x) * 3.25 + 1, (x,)
"""
SCRIPT = """
import torch
def f(x):
    return torch.relu(x) * 3.25 + 1
compiled = torch.compile(f)
print(compiled(torch.randn(64, 64)).sum())
print("not reached while an edit is tried", compiled(torch.randn(64, 64)).sum())
"""
TRAINING = """
import torch
def program():
    torch.manual_seed(0)
    w = torch.nn.Parameter(torch.randn(64))
    return lambda x: torch.sin(torch.nn.functional.dropout(x, 0.5) * w) * 3.25, (torch.randn(8, 64),), torch.sum
"""


class Compiled:
    """A program that ran once, and its kernels."""

    def __init__(self, tmp_path, text: str, comparison: Comparison | None = None) -> None:
        path = tmp_path / "model.py"
        path.write_text(text)
        self.told: list[events.SessionEvent] = []
        self.jobs = Jobs(self.told.append)
        self.request = Compile(1, Program(str(path)), Target("inductor"), str(tmp_path), comparison)
        started = events.RunStarted(
            run=1, program=self.request.program, target=self.request.target, comparison=comparison
        )
        self.told.append(started)
        ended = self.jobs.compile(self.request)
        assert ended.failure is None, ended.failure
        self.run = fold(self.told).runs[1]

    def kernel(self, part: str = "") -> Kernel:
        return next(each for each in self.run.kernels if each.source and part in ("", each.part))

    def edited(self, kernel: Kernel, old: str, new: str) -> KernelEdit:
        assert old in kernel.source
        request = EditKernel(
            run=1,
            program=self.request.program,
            target=self.request.target,
            kernel=kernel,
            text=kernel.source.replace(old, new),
            version=1,
            comparison=self.request.comparison,
        )
        event = self.jobs.do(request)
        assert isinstance(event, events.KernelEdited)
        return event.edit


@pytest.mark.slow
def test_versions_of_a_cpp_kernel_are_compared_and_timed(tmp_path):
    program = Compiled(tmp_path, PROGRAM.replace("{device}", ""))
    kernel = program.kernel()
    same = program.edited(kernel, "3.25", "6.5 / 2")
    assert same.verdict == "agrees" and same.failure is None and same.report is not None
    assert same.report.mode == "float64" and [diff.max_abs for diff in same.report.outputs] == [0.0]
    assert same.original is not None and same.edited is not None
    assert same.original.isolated == same.edited.isolated and not same.edited.bad
    assert same.times is not None and len(same.times.kernel.original.samples) == len(same.times.kernel.edited.samples)
    steps = [event.step for event in program.told if isinstance(event, events.KernelEditing)]
    assert steps[0] == "compiling the program" and steps[-1] == "timing both"

    wrong = program.edited(kernel, "3.25", "3.5")
    assert wrong.verdict == "wrong" and wrong.report is not None and wrong.report.verdict == "failed"
    assert wrong.edited is not None and wrong.edited.bad and wrong.original is not None and not wrong.original.bad

    broken = program.edited(kernel, "3.25)", "3.25")
    assert broken.verdict == "failed" and broken.failure is not None and broken.failure.kind == "input"
    assert "3.25" in broken.text.splitlines()[broken.line - 1] and f"line {broken.line}: " in broken.failure.message
    again = program.edited(kernel, "3.25", "6.5 / 2")  # the original was put back after each
    assert again.verdict == "agrees" and again.original is not None and not again.original.bad


@pytest.mark.slow
def test_a_program_that_compiles_to_another_source_is_told_from_the_runs(tmp_path):
    program = Compiled(tmp_path, PROGRAM.replace("{device}", ""))
    kernel = program.kernel()
    path = tmp_path / "model.py"
    path.write_text(path.read_text().replace("3.25", "4.75"))
    jobs, program.jobs = program.jobs, Jobs(program.told.append)
    edit = program.edited(kernel, "3.25", "3.5")
    assert edit.failure is not None and "compiles differently now" in edit.failure.message
    assert jobs.is_spent(program.request)


@pytest.mark.slow
@pytest.mark.parametrize("comparison", [None, Comparison()], ids=["run", "compared"])
def test_a_script_stops_once_the_kernel_was_tried(tmp_path, capfd, comparison):
    program = Compiled(tmp_path, SCRIPT, comparison)
    capfd.readouterr()
    edit = program.edited(program.kernel(), "3.25", "6.5 / 2")
    assert edit.verdict == "agrees", edit
    assert "not reached" not in capfd.readouterr().out


@pytest.mark.slow
def test_a_backwards_kernel_is_edited_in_a_training_step_that_draws_random_numbers(tmp_path):
    program = Compiled(tmp_path, TRAINING)
    edit = program.edited(program.kernel("backward"), "3.25", "3.5")
    assert edit.verdict == "wrong" and edit.report is not None
    assert {diff.name.partition("(")[0] for diff in edit.report.gradients if diff.failed} == {"grad"}
    assert not any(diff.failed for diff in edit.report.outputs)  # the same numbers are dropped with both kernels
    assert edit.times is not None and edit.times.kind == "training"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_versions_of_a_triton_kernel_are_compared_and_timed(tmp_path):
    program = Compiled(tmp_path, PROGRAM.replace("{device}", ", device='cuda'"))
    kernel = program.kernel()
    assert kernel.language == "triton"
    assert program.edited(kernel, "3.25", "6.5 / 2").verdict == "agrees"
    assert program.edited(kernel, "3.25", "3.5").verdict == "wrong"
    broken = program.edited(kernel, "3.25", "nosuch")
    assert broken.verdict == "failed" and "nosuch" in broken.text.splitlines()[broken.line - 1]


USERS = """
import torch, triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * 3.25, at < n)

def f(x):
    out = torch.empty_like(x)
    scaled[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out

def program():
    return f, (torch.randn(4096, device="cuda"),)
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize(("old", "new", "verdict"), [("3.25", "3.5", "wrong"), ("256", "512", "agrees")])
def test_the_users_own_triton_kernel_and_its_configs_are_edited(tmp_path, old: str, new: str, verdict: str):
    program = Compiled(tmp_path, USERS)
    assert program.edited(program.kernel(), old, new).verdict == verdict
