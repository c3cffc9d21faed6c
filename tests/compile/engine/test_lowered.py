"""What the compilers made of a kernel is told from what they left in their caches."""

import pytest
import torch

from idbg.engine.lowered import lowered, occupied
from idbg.schema import events
from idbg.schema.code import Kernel
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, LowerKernel

PROGRAM = """
import torch
def program():
    x = torch.randn(64, 64{device})
    return lambda x: (x.sin() + 1).softmax(-1), (x,)
"""
H100 = {"of_registers": 65536, "of_threads": 2048, "of_shared": 233_472}


def kernel_of(tmp_path, device: str) -> tuple[Jobs, Kernel]:
    path = tmp_path / "model.py"
    path.write_text(PROGRAM.replace("{device}", f", device='{device}'"))
    told: list[events.SessionEvent] = []
    jobs = Jobs(told.append)
    request = Compile(1, Program(str(path)), Target("inductor"), str(tmp_path))
    told.insert(0, events.RunStarted(run=1, program=request.program, target=request.target))
    ended = jobs.compile(request)
    assert ended.failure is None, ended.failure
    return jobs, next(kernel for kernel in fold(told).runs[1].kernels if kernel.source)


@pytest.mark.slow
def test_a_cpp_kernel_has_its_assembly(tmp_path):
    jobs, kernel = kernel_of(tmp_path, "cpu")
    event = jobs.do(LowerKernel(1, kernel))
    assert isinstance(event, events.KernelLowered) and event.lowered is not None and event.failure is None
    (text,) = event.lowered.texts
    assert text.name == "assembly" and "<kernel" in text.text and "ret" in text.text
    assert "PyInit" not in text.text  # what binds it to Python is not the kernel
    assert event.lowered.resources is None
    gone = jobs.do(LowerKernel(2, kernel))
    assert isinstance(gone, events.KernelLowered) and gone.failure is not None and "run 2" in gone.failure.message


def test_what_is_not_in_this_process_is_said_so():
    with pytest.raises(BadInput, match="no longer holds nosuch"):
        lowered(Kernel(frame="0/0", part="forward", name="nosuch", language="cpp", source="void f();"))


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "expected"),
    [
        (32, 0, 8, 1.0),  # 8 blocks of 256 threads fill it
        (255, 0, 8, 0.125),  # 8,192 registers a warp: one block
        (64, 0, 4, 0.5),
        (32, 100_000, 4, 0.125),  # two blocks' shared memory
        (16, 0, 1, 0.5),  # 32 blocks at most
    ],
)
def test_occupancy_is_that_of_nvidias_calculator(registers: int, shared: int, warps: int, expected: float):
    """The limits of compute capability 9.0: CUDA C++ Programming Guide, table "Technical Specifications"."""
    assert occupied(registers, shared, warps, **H100) == expected


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_triton_kernel_has_its_stages_and_resources(tmp_path):
    jobs, kernel = kernel_of(tmp_path, "cuda")
    event = jobs.do(LowerKernel(1, kernel))
    assert isinstance(event, events.KernelLowered) and event.lowered is not None, event
    texts = {text.name: text.text for text in event.lowered.texts}
    assert {"TTIR", "TTGIR", "LLVM IR", "PTX", "SASS"} <= texts.keys(), texts.keys()
    assert "tt.func" in texts["TTIR"] and ".visible .entry" in texts["PTX"] and "EXIT" in texts["SASS"]
    resources = event.lowered.resources
    assert resources is not None and resources.registers and resources.warps
    assert resources.spills is not None and resources.shared_bytes is not None
    assert resources.occupancy is not None and 0 < resources.occupancy <= 1
