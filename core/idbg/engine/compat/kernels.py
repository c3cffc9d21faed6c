"""Inductor's wrapper modules and their kernels: observe their loading, and read what a kernel was lowered to."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import cast

import torch

from idbg.engine.compat.hooks import hooked


def wrapper_modules() -> Iterator[ModuleType]:
    """The modules of Inductor's output code in this process, the latest first."""
    from torch._inductor.codecache import PyCodeCache

    yield from reversed(PyCodeCache.modules)


def observe_loads(loaded: Callable[[ModuleType], None]) -> AbstractContextManager[None]:
    """While it lasts, `loaded` gets each Python module that Inductor loads, cached ones too, before it is called."""

    def load_by_key_path(call: Callable[..., ModuleType], *args: object, **kwargs: object) -> ModuleType:
        module = call(*args, **kwargs)
        loaded(module)
        return module

    return hooked("loaded wrappers", {"PyCodeCache.load_by_key_path": load_by_key_path})


def users_line(wrapper: str, line: int) -> tuple[str, int]:
    """The user's file and line of a 1-based line of a wrapper; ("", 0) where torch does not know it."""
    from torch._inductor.codecache import PyCodeCache

    frames = PyCodeCache.stack_frames_for_code(wrapper, line)
    return (str(frames[-1]["filename"]), int(frames[-1]["line"])) if frames else ("", 0)


def shared_library(kernel: object) -> Path | None:
    """The library that a C++ kernel was compiled into: its function is a builtin of an extension module."""
    file = getattr(getattr(kernel, "__self__", None), "__file__", None)
    return Path(file) if file else None


class LaunchConfig:
    """The configuration of a Triton kernel that its launches use."""

    def __init__(self, launcher: object, device: int) -> None:
        self._launcher, self.device = launcher, device

    def _number(self, name: str) -> int | None:
        value = getattr(self._launcher, name, None)
        return value if isinstance(value, int) else None

    @property
    def registers(self) -> int | None:
        """Of a thread."""
        return self._number("n_regs")

    @property
    def spills(self) -> int | None:
        """Registers of a thread that went to memory."""
        return self._number("n_spills")

    @property
    def shared_bytes(self) -> int | None:
        """Shared memory of a block."""
        return self._number("shared")

    @property
    def warps(self) -> int | None:
        """Of a block."""
        return getattr(getattr(self._launcher, "config", None), "num_warps", None)

    @property
    def folder(self) -> Path | None:
        """Where Triton left the kernel's TTIR to cubin."""
        from torch._inductor.runtime.cache_dir_utils import triton_cache_dir

        key = getattr(self._launcher, "cache_hash", None)
        return Path(triton_cache_dir(self.device)) / key if key else None


def launched(kernel: object) -> LaunchConfig | None:
    """None for what is no Triton kernel of Inductor's, or was never launched."""
    launchers = getattr(kernel, "launchers", None)
    if not launchers:
        return None
    meta = getattr(kernel, "triton_meta", None) or {}
    return LaunchConfig(launchers[0], cast("int", getattr(meta.get("device"), "index", 0) or 0))


def limits(device: int) -> dict[str, int]:
    """What a multiprocessor of the GPU has: registers, threads, bytes of shared memory."""
    gpu = torch.cuda.get_device_properties(device)
    return {
        "of_registers": gpu.regs_per_multiprocessor,  # type: ignore[attr-defined, unused-ignore]  # not in the stubs of 2.14
        "of_threads": gpu.max_threads_per_multi_processor,
        "of_shared": gpu.shared_memory_per_multiprocessor,
    }
