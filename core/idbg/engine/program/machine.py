"""Describe the machine and the checkout that a program is compiled on and in."""

import contextlib
import os
import platform
import re
import shlex
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import torch

from idbg.schema.programs import Machine

_SECONDS = 2.0  # for a command: a checkout may lie on a slow disk
_READ_BY_TORCH = re.compile(
    r"TORCH|PYTORCH_|TRITON_|CUDA_|CUBLAS_|CUDNN_|NVIDIA_TF32|OMP_|MKL_|KMP_|GOMP_|(CC|CXX|CXXFLAGS|CPPFLAGS|LDFLAGS)$"
)
_SECRET = re.compile("TOKEN|SECRET|PASSW|CREDENTIAL|KEY|URL|REDIS")  # reports are mailed
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")  # a stranger's checkout names no command


@cache
def machine() -> Machine:
    """This machine, and the checkout of the working folder. Takes some tens of milliseconds."""
    described = _first_line(
        "git", "--no-optional-locks", *_SAFE, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"
    )
    revision = re.fullmatch(r"([0-9a-f]{40,64})(-dirty)?", described)
    return Machine(
        system=_system(),
        cpu=processor_name(),
        processors=os.cpu_count() or 0,
        compilers=_compilers(),
        revision=revision[1] if revision else "",
        modified=bool(revision and revision[2]),
        torch_build=torch.__config__.show().strip(),
        environment={
            name: "(set, not recorded)" if _SECRET.search(name) else value
            for name, value in sorted(os.environ.items())
            if _READ_BY_TORCH.match(name)
        },
    )


def _system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        name = ""
    return ", ".join(filter(None, (name, f"{platform.system()} {platform.release()} {platform.machine()}".strip())))


def processor_name() -> str:
    """The CPU's name as Linux reports it; elsewhere the architecture's."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _compilers() -> dict[str, str]:
    cxx = (shlex.split(os.environ.get("CXX", "")) or ["g++"])[0]
    found = {Path(cxx).name: _first_line(cxx, "--version"), "cuda": torch.version.cuda or ""}
    with contextlib.suppress(metadata.PackageNotFoundError):
        found["triton"] = metadata.version("triton")
    return {name: version for name, version in found.items() if version}


def _first_line(*command: str) -> str:
    """The first line that the command prints; "" if it cannot be run, or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=_SECONDS
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""
