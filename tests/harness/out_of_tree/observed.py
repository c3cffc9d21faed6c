"""What does idbg show of programs on the device? Run as a script with the folder of the
device and one of its own; prints JSON."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from idbg import KernelDiff
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, EditKernel, LowerKernel
from tests.harness.out_of_tree import install, runtime

PROGRAM = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(24, 48), nn.Linear(48, 8)

    def forward(self, x):
        hidden = nn.functional.gelu(self.first(x))
        return self.last(hidden).softmax(-1)

def program():
    torch.manual_seed(0)
    return Net().to("npu").requires_grad_(False), (torch.randn(16, 24).to("npu"),)
"""
ERF, TANH = ".erf()", ".tanh()"


class WrongCompile(runtime.LoopCompile):
    """Builds another function in place of erf."""

    def loops(self, name: str, types: Any, loops: Any) -> runtime.LoopKernel:
        return super().loops(name, types, [runtime.Loop(loop.text.replace(ERF, TANH)) for loop in loops])


def main(device: Path, folder: Path) -> None:
    install(device)
    path = folder / "model.py"
    path.write_text(PROGRAM)
    history: list[events.SessionEvent] = []
    jobs = Jobs(history.append)
    request = Compile(1, Program(str(path)), Target("inductor"), str(folder))
    history.append(events.RunStarted(run=1, program=request.program, target=request.target))
    ended = jobs.compile(request)
    run = fold(history).runs[1]
    results = {"ended": ended, "kernels": run.kernels, **_of_kernels(jobs, request, run), "compared": _compared(path)}
    own, runtime.LoopCompile = runtime.LoopCompile, WrongCompile  # type: ignore[misc]
    results["wrong"] = _compared(path)
    runtime.LoopCompile = own  # type: ignore[misc]
    print(json.dumps(msgspec.to_builtins(results)))


def _of_kernels(jobs: Jobs, request: Compile, run: Run) -> dict[str, object]:
    kernel = next(each for each in run.kernels if "gelu" in each.name)
    lowered = [jobs.do(LowerKernel(1, kernel))]
    for offers in (lambda self: 1 / 0, lambda self: [("binary", "hex", "0" * 20_000_000)], lambda self: 3):
        own, runtime.LoopKernel.idbg_lowered = runtime.LoopKernel.idbg_lowered, offers  # type: ignore[method-assign, assignment]
        lowered.append(jobs.do(LowerKernel(1, kernel)))
        runtime.LoopKernel.idbg_lowered = own  # type: ignore[method-assign]
    edit = EditKernel(
        run=1,
        program=request.program,
        target=request.target,
        kernel=kernel,
        text=kernel.source.replace(ERF, TANH),
        version=1,
    )
    return {"lowered": lowered, "edited": jobs.do(edit)}


def _compared(path: Path) -> object:
    import torch

    torch.compiler.reset()
    torch._inductor.config.force_disable_caches = True
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    model, inputs = namespace["program"]()
    return KernelDiff(model, inputs, per_kernel=True).compare()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
