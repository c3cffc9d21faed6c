"""Advice on caches and on compile time is done in plain torch: what was a miss is a hit, and what was built stays."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
import torch
import torch._inductor.codecache as codecache
from torch._dynamo.utils import counters

from idbg.analysis.decisions import times
from idbg.analysis.decisions.caches import ways_out
from idbg.analysis.decisions.times import Spent, Use
from idbg.schema.runs import Run
from idbg.views.time_help import helps
from tests.harness.framed import run_of
from tests.harness.fresh_caches import answers, own_caches

Runner = Callable[..., Run]
ONCE = "torch.compile(f)(torch.ones(8))\n"
HEAD = "import torch\nimport torch._inductor.config as config\ndef f(x):\n    return (x.sin() + {number}).cos()\n"


@dataclass(frozen=True)
class Case:
    """A program that a cache does not serve, words of the advice, and the program with that done."""

    before: str
    words: str
    after: str


PASS = """from torch._inductor.custom_graph_pass import CustomGraphPass
class Pass(CustomGraphPass):
    def __call__(self, graph):
        pass
    def uuid(self):
        return b"1"
config.post_grad_custom_post_pass = Pass()
"""
SIZES = "c = torch.compile(f, dynamic=False)\nc(torch.ones(8)); c(torch.ones(9))\n"
MARKED = """c = torch.compile(f)
for n in (8, 9):
    x = torch.ones(n)
    torch._dynamo.mark_dynamic(x, 0)
    c(x)
"""
WEIGHTS = "m = torch.nn.Linear(8, 8).eval()\nwith torch.no_grad():\n    torch.compile(m)(torch.ones(2, 8))\n"
CACHES = {
    "a pass without a uuid": Case(
        f"config.post_grad_custom_post_pass = lambda graph: None\n{ONCE}", "uuid()", PASS + ONCE
    ),
    "sizes that change": Case(SIZES, "can be dynamic (torch._dynamo.mark_dynamic)", MARKED),
    "freezing": Case(f"config.freezing = True\n{WEIGHTS}", "without freezing the graph is cached", WEIGHTS),
}


def not_found(text: str) -> int:
    """How often torch found no graph in its cache, in two runs of a program without idbg."""
    counters.clear()
    for _ in range(2):
        torch._dynamo.reset()
        exec(compile(text, "plain.py", "exec"), {"__name__": "plain"})
    return sum(counters["inductor"][f"fxgraph_cache_{end}"] for end in ("miss", "bypass"))


@pytest.mark.slow
@pytest.mark.parametrize("name", CACHES)
def test_the_cache_is_used(ran: Runner, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CACHES[name]
    own_caches(tmp_path, monkeypatch)
    before, after = (HEAD.format(number=number) + text for number, text in enumerate((case.before, case.after), 1))
    own = torch._inductor.config.patch(post_grad_custom_post_pass=None, freezing=False)
    with own:
        torch._dynamo.reset()
        run = ran(before, backend="inductor")
        assert run.failure is None and any(case.words in ways_out(each) for each in answers(run)), answers(run)
    own_caches(tmp_path / "plain", monkeypatch)
    with own:
        counted = not_found(before)
    with own:
        assert not_found(after) < counted


BUILDS = HEAD.format(number=3) + "torch.compile(f)(torch.ones(300))\n"


@pytest.mark.slow
def test_what_was_built_and_tested_is_found_again_in_the_folder_of_the_cache(tmp_path: Path) -> None:
    """That the advice states as a fact: for kernels, and for the tests of vector instructions."""
    run = run_of()
    for use in ("cpp", "cpu check"):
        assert "keep the folder" in " ".join(helps(run, (), Spent(use, 1.0, 1.0))), use
    log, compiler, program = tmp_path / "log", tmp_path / "g++", tmp_path / "plain.py"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *" -E "*) ;; *" -o "*) echo built >> {log};; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    program.write_text(BUILDS)
    folder = {"CXX": str(compiler), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    built: list[int] = []
    for _ in range(2):
        subprocess.run([sys.executable, program], env=os.environ | folder, check=True, capture_output=True)
        built.append(len(log.read_text().split()) - sum(built))
    assert built[0] > 1 and built[1] == 0


LOOP = """
def step(x):
    return x.sin().cos().tan().relu()
def f(x):
    for _ in range(20): x = {call}
    return x
torch.compile(f, backend="eager")(torch.ones(2))
"""


def test_a_region_that_is_compiled_once_makes_the_graph_of_an_unrolled_loop_smaller(ran: Runner) -> None:
    torch._dynamo.reset()
    unrolled = "import torch\n" + LOOP.format(call="x.sin().cos().tan().relu()")
    run = ran(unrolled, backend="eager")
    advice = " ".join(helps(run, times.tree(run), Spent("dynamo", 1.0, 1.0)))
    assert "come from one line" in advice and "may help: make what it repeats a function" in advice

    def traced(text: str) -> int:
        torch._dynamo.reset()
        counters.clear()
        exec(compile(text, "plain.py", "exec"), {"__name__": "plain"})
        return counters["stats"]["calls_captured"]

    marked = "import torch" + LOOP.replace("def step", "@torch.compiler.nested_compile_region\ndef step")
    assert traced(marked.format(call="step(x)")) < traced(unrolled)


def test_no_setting_that_is_named_is_unknown_to_torch() -> None:
    run = run_of()
    said = " ".join(line for use in get_args(Use) for line in helps(run, (), Spent(use, 1.0, 1.0)))
    assert "cpp_cache_precompile_headers" in said and hasattr(torch._inductor.config, "cpp_cache_precompile_headers")
    assert Path(codecache._HEADER_DIR).match("torchinductor_*/precompiled_headers")
    assert Path(codecache._HEADER_DIR).parent.parent == Path(tempfile.gettempdir())  # whatever the cache's folder
    assert "max_autotune_gemm_backends" in said and hasattr(torch._inductor.config, "max_autotune_gemm_backends")
