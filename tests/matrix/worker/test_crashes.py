"""A kernel that kills its process, or raises, is named with its nodes, the user's line and what it was given; the next
run works.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from idbg.reports import diff, text
from idbg.schema.diff import Comparison
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.session.session import Session
from idbg.views import faults
from tests.harness.crashing import (
    BACKWARD,
    BY_ZERO,
    FAR,
    FORWARD,
    IN_A_THREAD,
    NOWHERE,
    OUT_OF_BOUNDS,
    at_fault,
    planted,
    ran,
)

pytestmark = pytest.mark.slow

INDUCTOR = Target(backend="inductor", strict=False)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session for all: each crash must leave one in which the next program runs."""
    folder = tmp_path_factory.mktemp("crashes")
    with Session(Program(path="none.py"), INDUCTOR, output=folder, alone=True) as session:
        yield session


def check_site(run: Run, cause: str, *, nodes: set[str]) -> None:
    failure = at_fault(run)
    site = failure.crash
    assert site is not None and site.cause == cause
    kernel = next(kernel for kernel in run.kernels if kernel.name == site.kernel)
    call = next(call for call in kernel.calls if call.line == site.wrapper_line)
    assert (call.handle, call.nodes) == (site.handle, site.nodes) and nodes <= set(site.nodes)
    assert (kernel.frame, kernel.part) == (site.frame, site.part)
    given = {argument.name for argument in site.arguments}
    line = run.codes[site.frame, site.part].text.splitlines()[site.wrapper_line - 1]
    assert given and all(name in line for name in given)
    for argument in site.arguments:
        assert argument.alignment >= 16 and argument.alignment & (argument.alignment - 1) == 0
        assert len(argument.shape) == len(argument.stride) and argument.device == "cpu"
    said = "\n".join(text.run_report(run))
    for told in faults.crash_lines(site):
        assert told in said


@pytest.mark.parametrize(
    ("code", "cause"),
    [(FAR, "SIGSEGV"), (NOWHERE, "SIGSEGV"), (IN_A_THREAD, "SIGSEGV"), (BY_ZERO, "SIGFPE")],
    ids=["out of bounds", "null", "in a thread of OpenMP", "division by zero"],
)
def test_a_kernel_that_kills_the_process_is_named(session: Session, code: str, cause: str) -> None:
    run = ran(session, planted(code, "sin", FORWARD), INDUCTOR)
    check_site(run, cause, nodes={"sin", "mul"})
    assert run.failure.kind == "worker" and cause in run.failure.message
    assert run.failure.crash.arguments_of == "first launch"
    assert (128, 32) in {argument.shape for argument in run.failure.crash.arguments}


@pytest.mark.parametrize(("code", "cause"), [(FAR, "SIGSEGV"), (BY_ZERO, "SIGFPE")])
def test_a_kernel_of_the_backward_is_named(session: Session, code: str, cause: str) -> None:
    run = ran(session, planted(code, "cos()", BACKWARD), INDUCTOR)
    check_site(run, cause, nodes={"cos"})
    assert run.failure.crash.part == "backward"


@pytest.mark.parametrize("threads", [2, 8])
def test_an_index_out_of_bounds_in_threads_ends_the_process_and_is_named(session: Session, threads: int) -> None:
    """Of several threads that abort, one may end the process while another writes the stacks, or its message."""
    run = ran(session, OUT_OF_BOUNDS.format(threads=threads), INDUCTOR)
    check_site(run, "SIGABRT", nodes={"embedding"})


def test_an_index_out_of_bounds_in_one_thread_is_raised_and_is_named(session: Session) -> None:
    run = ran(session, OUT_OF_BOUNDS.format(threads=1), INDUCTOR)
    check_site(run, "RuntimeError", nodes={"embedding"})
    assert run.failure.kind == "user" and run.failure.crash.arguments_of == "crash"
    assert not run.failure.crash.late
    assert "idbg/engine" not in run.failure.traceback


def test_a_comparison_names_the_launch_that_took_its_process(session: Session) -> None:
    run = ran(session, planted(FAR, "sin", FORWARD), INDUCTOR, Comparison(per_kernel=True))
    check_site(run, "SIGSEGV", nodes={"sin"})
    assert run.diff is not None and run.diff.verdict == "error"
    side = run.diff.sides[-1]
    assert side.name == "inductor" and side.failure == run.diff.failure == run.failure
    assert side.failure.crash.kernel in diff.summary(run.diff)
    assert f'"kernel": "{side.failure.crash.kernel}"' in diff.to_json(run.diff)


def test_a_crash_in_eager_has_the_users_line_and_no_launch(session: Session) -> None:
    crashing = "import ctypes\nimport torch\n\n\ndef program():\n    ctypes.string_at(0)  # here\n"
    failure = at_fault(ran(session, crashing, INDUCTOR))
    assert failure.crash is not None and (failure.crash.cause, failure.crash.kernel) == ("SIGSEGV", "")
    assert list(faults.crash_lines(failure.crash)) == []


def test_after_all_of_them_a_program_runs(session: Session) -> None:
    run = ran(session, "import torch\n\n\n" + FORWARD, INDUCTOR)
    assert run.failure is None and run.verdict == "compiled"
    assert Path(session.folder).exists()
