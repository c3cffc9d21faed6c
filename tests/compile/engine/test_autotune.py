"""What torch measures to choose a kernel is told with each candidate's time, and what it found without measuring."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from idbg.render.text import text as text_of
from idbg.schema.decisions.inductor import Autotuned
from idbg.schema.runs import Run
from idbg.views import autotune as report
from idbg.views.tree import referring
from tests.harness.fresh_caches import own_caches

TEXT = """\
import torch
import torch._inductor.config

torch._inductor.config.freezing = True  # Dynamo asks it too, which knows nothing of options
model = torch.nn.Linear(64, 64).eval()

def f(x):
    return model(x).relu() + {number}

with torch.no_grad():
    torch.compile(f)(torch.randn(32, 64))
"""
OPTIONS = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "CPP,ATEN"}


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_caches(tmp_path, monkeypatch)


def tunings(run: Run) -> list[Autotuned]:
    return [tuned for each in run.decided.of(Autotuned).values() for tuned in each]


def without_number(name: str) -> str:
    """Torch counts its candidates over all of a process."""
    return name.rstrip("0123456789")


@pytest.mark.slow
def test_each_candidate_has_its_time_and_the_next_compile_finds_them(ran: Callable[..., Run]):
    cold = ran(TEXT.format(number=1), backend="inductor", options=OPTIONS)
    assert cold.failure is None
    (tuned,) = tunings(cold)
    assert tuned.part == "inference" and not tuned.cached and len(tuned.choices) >= 2
    assert tuned.nodes and set(tuned.nodes) <= set(cold.graph("0/0", "post_grad", "inference").by_name)
    times = [choice.seconds for choice in tuned.choices if choice.seconds is not None]
    assert times == sorted(times) and times[0] > 0
    assert tuned.chosen == tuned.choices[0].name and tuned.seconds is not None and tuned.seconds > sum(times)
    kernels = report.kernels_of(cold, "0/0", tuned)
    assert kernels and set(kernels) <= {kernel.name for kernel in cold.kernels}
    told = text_of(report.view(cold))
    assert f"{tuned.chosen}, the fastest of" in told and "faster than the next" in told
    shown = next(referring(report.view(cold)))
    assert shown.refs.kernel is not None and shown.refs.kernel[2] in kernels and shown.refs.nodes

    torch._dynamo.reset()
    warm = ran(TEXT.format(number=2), backend="inductor", options=OPTIONS)
    (found,) = tunings(warm)
    assert found.cached and without_number(found.chosen) == without_number(tuned.chosen)
    assert "found in the autotune cache" in text_of(report.view(warm))


def test_nothing_was_measured_where_nothing_is_chosen_so(ran: Callable[..., Run]):
    run = ran(TEXT.format(number=1), backend="inductor")
    assert tunings(run) == [] and text_of(report.view(run)) == report.NOTHING


@pytest.mark.slow
def test_a_candidate_that_fails_says_why(ran: Callable[..., Run]):
    broken = TEXT.replace(
        "with torch",
        "from torch._inductor.codegen.cpp_template_kernel import CppTemplateCaller\n"
        "def fails(self, *args, out):\n    raise RuntimeError('no such instruction')\n"
        "kept, CppTemplateCaller.benchmark = CppTemplateCaller.benchmark, fails\n\nwith torch",
    )
    text = broken.format(number=1) + "CppTemplateCaller.benchmark = kept\n"
    run = ran(text, backend="inductor", options=OPTIONS)
    (tuned,) = tunings(run)
    (failed,) = [choice for choice in tuned.choices if choice.seconds is None]
    assert failed.error == "RuntimeError: no such instruction"
    (line,) = [line for line in text_of(report.view(run)).splitlines() if failed.name in line]
    assert line.split()[1] == "failed" and line.endswith("RuntimeError: no such instruction")
