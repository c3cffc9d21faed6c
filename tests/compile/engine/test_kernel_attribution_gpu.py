"""The same on a CUDA GPU: Triton kernels and extern calls, called alone, and their scripts by plain Python."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from idbg.engine.kerneldiff.kernel_attribution.script import launch_script
from idbg.format.attributions import sentence
from tests.harness.owned import Owned, edited

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def tried(owned: Owned, launch: int, folder: Path) -> tuple[int, str]:
    """The exit status and the output of a launch's script, by plain Python."""
    script = launch_script(owned.comparison.owner(owned.report, launch), folder)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def chain(x: Tensor, w: Tensor) -> Tensor:
    first = ((x @ w) * 1.25).softmax(-1)
    second = ((first @ w) * 1.0492 + first).softmax(-1)
    return (second @ w) * 1.75


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_wrong_triton_kernel_is_the_compilers_and_its_script_shows_it(dtype: torch.dtype, tmp_path: Path):
    inputs = tuple(torch.randn(96, 96, device="cuda", dtype=dtype) for _ in range(2))
    with edited(lambda text: text.replace("1.0492", "1.5492")) as changed:
        owned = Owned(chain, inputs)
        owner = owned.owner()
        assert changed and owner.kind == "compiler" and "softmax" in owner.name, sentence(owner)
        status, printed = tried(owned, owner.launch, tmp_path)
        assert status == 1 and "WRONG: " in printed, printed
        behind = owned.owner(len(owned.report.kernels) - 1)
        assert (behind.kind, behind.cause) == ("before", owner.launch), sentence(behind)


def test_of_a_clean_program_every_launch_is_nobodys_and_so_say_the_scripts(tmp_path: Path):
    def program(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return F.conv2d(x, w).relu().sum((2, 3)) @ w.flatten(1)[:, :8], x.sort(-1)[0].cos()

    owned = Owned(program, (torch.randn(4, 3, 16, 16, device="cuda"), torch.randn(8, 3, 3, 3, device="cuda")))
    names = set()
    for at, kernel in enumerate(owned.report.kernels):
        owner = owned.owner(at)
        if not kernel.observed:
            continue
        names.add(kernel.name.partition("_")[0])
        assert owner.kind == "nobody", sentence(owner)
        status, printed = tried(owned, at, tmp_path)
        assert status == 0 and "right: " in printed, printed
    assert {"triton", "extern"} <= names


def test_a_buffer_that_was_reused_too_early_names_who_wrote_over_it():
    def program(x: Tensor) -> Tensor:
        first, second = x @ x, x @ x.t()
        return (first * 1.0493).sin() + (second * 1.0494).cos()

    def reuse(text: str) -> str:
        return re.sub(r"^( +)buf1 = empty_strided_cuda\(.*$", r"\1buf1 = buf0  # reuse", text, count=1, flags=re.M)

    with edited(reuse) as changed:
        owner = Owned(program, (torch.randn(64, 64, device="cuda"),)).owner()
    assert changed and owner.kind == "before" and owner.launch == 1, sentence(owner)
    assert "the wrapper gives buf1, which it writes, the memory of buf0" in sentence(owner)


def test_a_lost_tail_depends_on_what_was_in_its_memory():
    def edit(text: str) -> str:
        return re.sub(r"xmask = xindex < xnumel", "xmask = xindex < xnumel - 8", text)

    with edited(edit) as changed:
        owned = Owned(lambda x: x.sin() * 1.0495 + 2, (torch.randn(333, 333, device="cuda"),))
        owner = owned.owner(0)
    assert changed and owner.kind == "compiler", sentence(owner)
    assert "what was in its memory before" in sentence(owner)


def test_a_wrong_extern_call_and_a_wrong_kernel_of_the_backward(tmp_path: Path):
    def program(x: Tensor) -> Tensor:
        return torch.addmm(x, x, x, alpha=0.5494).sin() * 1.0496

    def edit(text: str) -> str:
        return text.replace("0.5494", "0.5594") if "_forward']" in text[:200] else text

    x = torch.randn(48, 48, device="cuda", requires_grad=True)
    with edited(edit) as changed:
        owned = Owned(program, (x,), loss=lambda out: out.square().sum())
        owner = owned.owner()
        assert changed and (owner.kind, owner.name) == ("compiler", "extern_kernels.addmm"), sentence(owner)
        status, printed = tried(owned, owner.launch, tmp_path)
        assert status == 1 and "WRONG: " in printed, printed
        late = [at for at, kernel in enumerate(owned.report.kernels) if kernel.part == "backward" and kernel.observed]
        assert late and {owned.owner(at).kind for at in late} <= {"before", "nobody"}
