"""What do comparisons say of programs on a device without float64? Run as a script with the folder to build it in."""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from idbg import KernelDiff
from idbg.engine.kerneldiff.sides.run import eager_draws, run_float64
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.program.load import Workload

DEVICE = "npu"  # as torch knows it once it is there


class _Module(types.ModuleType):
    """What torch asks a device's own module."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def manual_seed_all(self, seed: int) -> None:
        """It draws by the CPU's generator."""

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_rng_state(self, device: object = None) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: Tensor, device: object = None) -> None:
        torch.set_rng_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def device(self, index: object) -> Any:
        return nullcontext()


def build(folder: Path) -> None:
    """Load the device into this process; it is compiled once in this folder, which several tests may share."""
    source = Path(__file__).with_name("device.cpp")
    key = hashlib.sha256(source.read_bytes() + torch.__version__.encode()).hexdigest()[:16]
    library = folder / f"device-{key}.so"
    with library.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _compile(source, library)
    rename_privateuse1_backend(DEVICE)
    torch._register_device_module(DEVICE, _Module(f"torch.{DEVICE}"))
    generate_methods_for_privateuse1_backend(for_storage=False)
    torch.ops.load_library(str(library))


def _compile(source: Path, library: Path) -> None:
    unfinished = library.with_suffix(".part")
    root = Path(torch.__file__).parent
    include = [f"-I{root / 'include'}", f"-I{root / 'include/torch/csrc/api/include'}"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    command = ["g++", "-std=c++20", "-O0", abi, "-fPIC", "-shared", *include, str(source), "-o", str(unfinished)]
    subprocess.run([*command, f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10"], check=True)
    unfinished.replace(library)


class Layers(nn.Module):
    """With dropout where it is told to; `far` makes tensors on its device and draws there."""

    def __init__(self, chance: float = 0.0, far: bool = False) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(24, 48), nn.LayerNorm(48), nn.Linear(48, 8)
        self.chance, self.far = chance, far
        self.scale = nn.Buffer(torch.linspace(0.5, 2, 48))
        self.order = nn.Buffer(torch.arange(47, -1, -1))

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.functional.gelu(self.norm(self.first(x)) * self.scale)[:, self.order]
        if self.far:
            assert x.device.type != "cpu" or not _is_there(self)
            hidden = hidden + torch.rand(48, device=x.device) + torch.ones(48).to(x.device)
        hidden = nn.functional.dropout(hidden, self.chance)
        out: Tensor = self.last(hidden)
        return out


def _is_there(module: Layers) -> bool:
    return module.first.weight.device.type == DEVICE


def losing(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
    """A backend that is off by a hundredth in the last column."""

    def run(*args: Tensor) -> Any:
        first, *others = gm.forward(*args)
        return (first * torch.tensor([1.0] * 7 + [1.01]).to(first.device), *others)

    return run


def _compared(device: str, model: nn.Module, **asked: Any) -> Any:
    torch.manual_seed(1)
    x = torch.randn(32, 24).to(device)
    report = KernelDiff(model.to(device), (x,), **asked).compare()
    state = {str(each.device) for each in model.state_dict().values()} | {
        str(each.dtype) for each in model.parameters()
    }
    told = msgspec.to_builtins(report)
    return {**told, "summary": report.summary(), "state": sorted(state)}


def _draws(model: nn.Module) -> Any:
    x = torch.ones(4, 24).to(DEVICE)
    subject = Subject(Workload(model.to(DEVICE), (x,), {}), input_gradients=True)
    drawn = run_float64(subject, backward=True).draws, eager_draws(subject, backward=True)
    return [list(each or ()) for each in drawn]


def _layers(**how: Any) -> nn.Module:
    torch.manual_seed(0)
    return Layers(**how)


def main(folder: Path) -> None:
    """One comparison a case, as JSON on stdout."""
    build(folder)
    reports = {
        "here": _compared("cpu", _layers(), test="eager", backward=True),
        "there": _compared(DEVICE, _layers(), test="eager", backward=True),
        "drawn": _compared(DEVICE, _layers(chance=0.3, far=True), test="eager", backward=True),
        "lost": _compared(DEVICE, _layers(), test=losing),
        "by tolerance": _compared(DEVICE, _layers(), test="eager", mode="tolerance"),
        "true": _compared(DEVICE, _layers(), test="eager", reference="float64", atol=1e-4),
        "twice": _compared(DEVICE, _layers(), test="eager", runs=2),
    }
    reports["draws"] = _draws(_layers(chance=0.3, far=True))
    os.environ["IDBG_TEST_FLUSHES"] = "1"
    reports["flushed"] = _compared(DEVICE, _layers(), test="eager")
    print(json.dumps(reports))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
