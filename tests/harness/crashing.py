"""Programs whose compiled kernels crash: what is planted goes into the kernel's own code, as it is compiled."""

from pathlib import Path

from idbg.schema.diff import Comparison
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import Run
from idbg.session.session import Session

PLANT = """\
import re
import torch
from torch._inductor.async_compile import AsyncCompile

_own = AsyncCompile.cpp_pybinding


def planted(self, argtypes, source):
    if {mark!r} in source:
        at = source.index("{{", source.index('extern "C"')) + 1
        pointer = re.search(r"\\w*out_ptr0", source)[0]
        source = source[:at] + "\\n" + {code!r}.replace("POINTER", pointer) + "\\n" + source[at:]
    return _own(self, argtypes, source)


AsyncCompile.cpp_pybinding = planted


"""
FAR = "*(volatile char*)((char*)POINTER + (1LL << 44)) = 1;"
NOWHERE = "*(volatile int*)8 = 1;"
BY_ZERO = "{ volatile int zero = 0; volatile int one = 1; one = one / zero; }"
IN_A_THREAD = "#pragma omp parallel num_threads(2)\n{ if (omp_get_thread_num() == 1) *(volatile int*)8 = 1; }"

FORWARD = """\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(64, 32)

    def forward(self, x):
        x = self.fc(x.cos() + 1)
        return x.sin() * 2  # here


def program():
    return Model(), (torch.randn(128, 64),)
"""
BACKWARD = """\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(64, 32)

    def forward(self, x):
        x = self.fc(x + 1)
        return x.sin() * 2  # here


def program():
    return Model(), (torch.randn(128, 64),), lambda out: out.sum()
"""
OUT_OF_BOUNDS = """\
import torch


def model(table, index, x):
    y = x.sin() + 1
    return torch.embedding(table, index) * y  # here


def program():
    torch.set_num_threads({threads})
    return model, (torch.randn(10, 64), torch.tensor([1, 2, 30] * 700), torch.randn(2100, 64))
"""


def planted(code: str, mark: str, program: str) -> str:
    """The program, in whose kernels with this mark in their source the code runs first."""
    return PLANT.format(mark=mark, code=code) + program


def ran(session: Session, text: str, target: Target, comparison: Comparison | None = None) -> Run:
    """The run of a program of this text, in the folder of the session."""
    path = Path(session.folder) / "subject.py"
    path.write_text(text)
    session.program = Program(path=str(path), cwd=str(path.parent))
    number = session.run(target, comparison)
    assert session.wait(240)
    return session.history.runs[number]


def at_fault(run: Run) -> Failure:
    """The failure of a run that crashed, its place the line that says "here"."""
    assert run.failure is not None, run.verdict
    lines = Path(run.program.path).read_text().splitlines()
    here = next(number for number, line in enumerate(lines, 1) if "# here" in line)
    assert (run.failure.file, run.failure.line) == (run.program.path, here), run.failure
    return run.failure
