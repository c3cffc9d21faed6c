"""On a GPU: each script begins CUDA anew in its fork, and what one does to its context is nothing to the next."""

from pathlib import Path

import pytest
import torch

from idbg.engine.minify.forks.client import Forks

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

GB = 10**9
WORKS = """
import torch
from torch._inductor.utils import run_and_get_code

x = torch.linspace(0, 1, {size}, device="cuda")
result, (code,) = run_and_get_code(torch.compile(lambda x: x.sin() + {size}), x)
assert torch.allclose(result, x.sin() + {size})
print("triton_poi" in code, torch.cuda.is_available())
raise SystemExit(0)
"""
ILLEGAL = """
import re
import torch
from torch._inductor.async_compile import AsyncCompile

own = AsyncCompile.triton


def planted(self, name, source, device_str="cuda"):
    return own(self, name, re.sub(r"tl\\.store\\((\\w+) \\+ ", r"tl.store(\\1 + (1 << 40) + ", source), device_str)


AsyncCompile.triton = planted
try:
    torch.compile(lambda x: x.cos() + 3)(torch.ones(1000, device="cuda"))
    torch.cuda.synchronize()
except Exception as error:
    print("REPRODUCED", type(error).__name__, str(error).splitlines()[0])
    raise SystemExit(1)
"""
SAYS_NOTHING = "torch.compile(lambda x: x.cos() + 3)(torch.ones(9, device='cuda')).sum().item()"
WITHOUT_A_WORD = ILLEGAL.partition("try:")[0] + SAYS_NOTHING
TAKES = "import torch\nheld = torch.ones(1 << 28, device='cuda')\nprint(held.sum().item())\nwhile True: pass\n"


def test_scripts_in_a_row_use_the_gpu_whatever_one_of_them_does_to_it(tmp_path: Path) -> None:
    def run(text: str, seconds: float = 120):
        script.write_text(text)
        return forks.run(script, seconds=seconds, memory=32 * GB)

    script = tmp_path / "script.py"
    with Forks(tmp_path, (), tmp_path / "scratch") as forks:
        first = run(WORKS.format(size=1000))
        assert (first.status, first.printed.split()[:2]) == (0, ["True", "True"]), first.printed
        assert forks.forks, "the warm process can be forked: CUDA's driver was not begun in it"
        illegal = run(ILLEGAL)
        assert illegal.verdict == "same" and "illegal memory access" in illegal.signature, illegal.printed
        assert run(WORKS.format(size=2000)).status == 0
        raised = run(WITHOUT_A_WORD)
        assert raised.verdict == "other" and "illegal memory access" in raised.printed
        assert run(TAKES, seconds=30).hung
        assert run(WORKS.format(size=3000)).status == 0
        assert forks.forks


def test_a_script_in_a_python_of_its_own_gives_the_same_answer(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ILLEGAL)
    with Forks(tmp_path, (), tmp_path / "scratch", fork=False) as forks:
        illegal = forks.run(script, seconds=120, memory=32 * GB)
    assert illegal.verdict == "same" and "illegal memory access" in illegal.signature, illegal.printed
