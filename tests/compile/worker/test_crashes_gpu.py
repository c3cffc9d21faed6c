"""On a GPU, which tells of its errors late: with `sync` the launch is named, without it that it was late is said; and
the next run works, in another process.
"""

from collections.abc import Iterator

import pytest
import torch

from idbg.reports import diff
from idbg.schema.diff import Comparison
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.session.session import Session
from idbg.views import faults
from tests.harness.crashing import BY_ZERO, FORWARD, at_fault, planted, ran

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

INDUCTOR = Target(backend="inductor", strict=False, device="cuda")
PLANT = """\
import re
import torch
from torch._inductor.async_compile import AsyncCompile

_own = AsyncCompile.triton


def planted(self, name, source, device_str="cuda"):
    if "sin(" in source:
        source = re.sub(r"tl\\.store\\((\\w+) \\+ ", r"tl.store(\\1 + (1 << 40) + ", source)
    return _own(self, name, source, device_str)


AsyncCompile.triton = planted


"""
OUT_OF_BOUNDS = """\
import torch


def model(table, index, x):
    y = x.sin() + 1
    return torch.embedding(table, index) * y  # here


def program():
    return model, (torch.randn(10, 64), torch.tensor([1, 2, 30] * 700), torch.randn(2100, 64))
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session for all: each error must leave one in which the next program runs."""
    folder = tmp_path_factory.mktemp("crashes")
    with Session(Program(path="none.py"), INDUCTOR, output=folder, alone=True) as session:
        yield session


def runs_again(session: Session) -> None:
    run = ran(session, "import torch\n\n\n" + FORWARD, INDUCTOR)
    assert run.failure is None and run.verdict == "compiled"


def check_launch(run: Run) -> None:
    """The failure of the compiled side names the launch, its nodes, and its arguments as they were."""
    assert run.diff is not None and run.diff.verdict == "error"
    failure = run.diff.sides[1].failure
    assert failure is not None and failure.crash is not None, failure
    site = failure.crash
    assert not site.late and site.kernel.startswith("triton_") and "sin" in site.nodes
    assert site.arguments_of == "crash" and {argument.device for argument in site.arguments} == {"cuda:0"}
    assert all(argument.alignment >= 16 for argument in site.arguments)
    assert site.file == run.program.path and site.line
    assert site.kernel in diff.summary(run.diff)


def test_an_illegal_access_names_its_launch_where_each_is_waited_for(session: Session) -> None:
    check_launch(ran(session, PLANT + FORWARD, INDUCTOR, Comparison(sync=True)))
    runs_again(session)


def test_without_waiting_it_is_said_to_be_late_and_how_to_know(session: Session) -> None:
    run = ran(session, PLANT + FORWARD, INDUCTOR, Comparison())
    failure = run.diff.sides[1].failure
    assert failure is not None and failure.crash is not None and failure.crash.late
    assert "--sync" in "\n".join(faults.crash_lines(failure.crash))
    runs_again(session)


def test_a_plain_run_fails_by_it_too(session: Session) -> None:
    run = ran(session, PLANT + FORWARD, INDUCTOR)
    assert run.failure is not None and run.failure.crash is not None and run.failure.crash.late
    runs_again(session)


def test_an_index_out_of_bounds_in_eager_has_the_users_line(session: Session) -> None:
    run = ran(session, OUT_OF_BOUNDS, INDUCTOR, Comparison(sync=True))
    assert run.diff is not None and run.diff.verdict == "error"
    eager, inductor = run.diff.sides
    assert eager.failure is not None and eager.failure.crash is not None and not eager.failure.crash.late
    lines = OUT_OF_BOUNDS.splitlines()
    assert "# here" in lines[eager.failure.line - 1]
    assert inductor.failure is not None and "not run: the device failed" in inductor.failure.message
    runs_again(session)


def test_a_device_assert_of_a_compiled_kernel_fails_the_run(session: Session) -> None:
    run = ran(session, OUT_OF_BOUNDS, INDUCTOR)
    assert run.failure is not None and run.failure.crash is not None
    assert "device-side assert" in run.failure.message
    runs_again(session)


def test_a_division_by_zero_on_the_host_is_named_on_a_gpu_machine_too(session: Session) -> None:
    run = ran(session, planted(BY_ZERO, "sin", FORWARD), Target(backend="inductor", strict=False))
    assert at_fault(run).crash.cause == "SIGFPE"
    runs_again(session)
