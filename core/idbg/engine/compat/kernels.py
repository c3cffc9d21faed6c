"""Inductor's wrapper modules and their kernels: observe their loading, and read what a kernel was lowered to."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.names import internals
from idbg.schema.faults import MOST_ALIGNED, LaunchArgument


def wrapper_modules() -> Iterator[ModuleType]:
    """The modules of Inductor's output code in this process, the latest first."""
    yield from reversed(internals._inductor.codecache.PyCodeCache.modules)


def observe_loads(loaded: Callable[[ModuleType], None]) -> AbstractContextManager[None]:
    """While it lasts, `loaded` gets each Python module that Inductor loads, cached ones too, before it is called."""

    def load_by_key_path(call: Callable[..., ModuleType], *args: object, **kwargs: object) -> ModuleType:
        module = call(*args, **kwargs)
        loaded(module)
        return module

    return hooked("loaded wrappers", {"PyCodeCache.load_by_key_path": load_by_key_path})


def built(module: object, statement: str, name: str) -> object:
    """The kernel `name` as this statement defines it in a wrapper's module. Raises what its compiler raises."""
    namespace = dict(vars(module))
    exec(_compiler_of(namespace), namespace)
    exec(compile(statement, f"<edited {name}>", "exec"), namespace)
    kernel = {name: namespace[name]}
    compiler: Any = namespace["async_compile"]
    compiler.wait(kernel)
    return kernel[name]


def _compiler_of(namespace: Mapping[str, object]) -> str:
    """The last statement of a wrapper that creates its `async_compile`, which it deletes: a device may have its own."""
    lines = Path(str(namespace["__file__"])).read_text().splitlines()
    return [line for line in lines if line.startswith("async_compile = ")][-1]


@contextmanager
def in_place(module: object, name: str, kernel: object) -> Iterator[None]:
    """While it lasts, the wrapper launches this kernel in place of its own of this name."""
    namespace = vars(module)
    own = namespace[name]
    namespace[name] = kernel
    try:
        yield
    finally:
        namespace[name] = own


def users_line(wrapper: str, line: int) -> tuple[str, int]:
    """The user's file and line of a 1-based line of a wrapper; ("", 0) where torch does not know it."""
    frames = internals._inductor.codecache.PyCodeCache.stack_frames_for_code(wrapper, line)
    return (str(frames[-1]["filename"]), int(frames[-1]["line"])) if frames else ("", 0)


def shared_library(kernel: object) -> Path | None:
    """The library that a C++ kernel was compiled into: its function is a builtin of an extension module."""
    file = getattr(getattr(kernel, "__self__", None), "__file__", None)
    return Path(file) if file else None


class LaunchConfig(NamedTuple):
    """The configuration of a Triton kernel that its launches use; None where it is unknown.

    `registers` of a thread, `spills`: registers of a thread that are in memory, `shared_bytes` and `warps` of a block.
    `folder` has the kernel's TTIR to cubin.
    """

    device: int
    registers: int | None
    spills: int | None
    shared_bytes: int | None
    warps: int | None
    folder: Path | None


def launched(kernel: object) -> LaunchConfig | None:
    """None for an object that is no Triton kernel of Inductor's, or was never launched."""
    launchers = getattr(kernel, "launchers", None)
    if not launchers:
        return None
    launcher, meta = launchers[0], getattr(kernel, "triton_meta", None) or {}
    device = cast("int", getattr(meta.get("device"), "index", 0) or 0)
    found = (getattr(launcher, name, None) for name in ("n_regs", "n_spills", "shared"))
    registers, spills, shared = (value if isinstance(value, int) else None for value in found)
    warps = getattr(getattr(launcher, "config", None), "num_warps", None)
    key = getattr(launcher, "cache_hash", None)
    folder = Path(internals._inductor.runtime.cache_dir_utils.triton_cache_dir(device)) / key if key else None
    return LaunchConfig(device, registers, spills, shared, warps, folder)


def limits(device: int) -> dict[str, int]:
    """What a multiprocessor of the GPU has: registers, threads, bytes of shared memory."""
    gpu = torch.cuda.get_device_properties(device)
    return {
        "of_registers": gpu.regs_per_multiprocessor,  # type: ignore[attr-defined, unused-ignore]  # not in the stubs of 2.14
        "of_threads": gpu.max_threads_per_multi_processor,
        "of_shared": gpu.shared_memory_per_multiprocessor,
    }


def launch_arguments(names: Iterable[str], values: Mapping[str, object]) -> tuple[LaunchArgument, ...]:
    """The tensors among these names, each once, in order. Their values are not read: that raises on a lost device."""
    named = ((name, values.get(name)) for name in dict.fromkeys(names))
    return tuple(launch_argument(name, value) for name, value in named if isinstance(value, Tensor))


def launch_argument(name: str, value: Tensor) -> LaunchArgument:
    """One tensor under this name."""
    strides = value.stride() if value.layout == torch.strided else ()
    return LaunchArgument(
        name,
        str(value.dtype).removeprefix("torch."),
        tuple(map(int, value.shape)),
        tuple(map(int, strides)),
        str(value.device),
        alignment(value),
    )


def alignment(value: Tensor) -> int:
    """The largest power of two, up to MOST_ALIGNED, that divides its address; 0 where it has none."""
    try:
        address = value.data_ptr()
    except RuntimeError:  # it has no storage
        return 0
    return min(address & -address, MOST_ALIGNED)
