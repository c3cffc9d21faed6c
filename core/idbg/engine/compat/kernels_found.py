"""Which kernels does a wrapper find, and which are built for it?"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from idbg.engine.compat.patched import patched, when_lowering


class KernelFound(NamedTuple):
    """A kernel that was loaded: from which cache ("kernel" for C++, "triton", "autotune" for its configurations), and
    whether it was there. `key`: what it is kept under; `chosen`: the configuration that was found.
    """

    cache: Literal["kernel", "triton", "autotune"]
    name: str
    outcome: Literal["hit", "miss", "off"]
    key: str = ""
    reason: str = ""
    chosen: str = ""


@contextmanager
def kernels_told(tell: Callable[[KernelFound], None], since: Callable[[], float]) -> Iterator[None]:
    """Tell of each kernel of a wrapper, when all of them are loaded, whether it was found or built. `since`: when the
    compile in hand began, in seconds since the epoch.

    C++: torch's builder looks for the library by the source's hash; what it holds in memory it does not look for.
    Triton: its compile is another process's, so the age of what it left tells.
    """
    with when_lowering(lambda: _patched(tell, since)):
        yield


@contextmanager
def _patched(tell: Callable[[KernelFound], None], since: Callable[[], float]) -> Iterator[None]:
    from torch._inductor import async_compile, codecache

    loads = _Loads()

    def compile_cpp(original: Callable[..., object]) -> Callable[..., object]:
        def compiled(lock_path: str, builders: Any) -> object:
            loads.looked_for(Path(lock_path).stem, Path(builders[-1].get_target_file_path()).exists())
            return original(lock_path, builders)

        return compiled

    def cpp(original: Callable[..., object]) -> Callable[..., object]:
        def loaded(compiling: object, argtypes: list[str], source: str) -> object:
            cache = codecache.CppPythonBindingsCodeCache.cache
            before = len(cache)
            made = original(compiling, argtypes, source)
            loads.loading(made, next(reversed(cache)) if len(cache) > before else "")
            return made

        return loaded

    def wait(original: Callable[..., None]) -> Callable[..., None]:
        def waited(compiling: object, scope: dict[str, Any]) -> None:
            named = loads.named(scope)
            original(compiling, scope)
            for name, key in named.items():
                tell(loads.answer(name, key))
            for name, value in scope.items():
                if hasattr(value, "autotune_cache_info"):  # a kernel of Triton's
                    told_of_triton(name, value)

        return waited

    def told_of_triton(name: str, kernel: Any) -> None:
        with contextlib.suppress(AttributeError, KeyError, OSError):  # what only listens must not break a compile
            for found in _triton(name, kernel, since()):
                tell(found)

    with ExitStack() as stack:
        stack.enter_context(patched(codecache, "_worker_compile_cpp", compile_cpp))
        stack.enter_context(patched(async_compile.AsyncCompile, "cpp_pybinding", cpp))
        stack.enter_context(patched(async_compile.AsyncCompile, "wait", wait))
        yield


class _Loads:
    """The C++ kernels that are being loaded. Libraries are looked for in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, bool] = {}
        self._loading: list[tuple[object, str]] = []

    def looked_for(self, key: str, there: bool) -> None:
        """The library of this key is there, or not; what is said first counts, as it is built then."""
        with self._lock:
            self._found.setdefault(key, there)

    def loading(self, made: object, key: str) -> None:
        """A wrapper will have `made`, or what it is a promise of; `key` is "" where it was in memory."""
        self._loading.append((made, key))

    def named(self, scope: Mapping[str, object]) -> dict[str, str]:
        """The keys of what is being loaded, by the names that the wrapper gives it."""
        keys = {id(made): key for made, key in self._loading}
        self._loading.clear()
        return {name: keys[id(value)] for name, value in scope.items() if id(value) in keys}

    def answer(self, name: str, key: str) -> KernelFound:
        """Whether the kernel was there."""
        if not key:
            return KernelFound("kernel", name, "hit", reason="this process had it in memory")
        with self._lock:
            there = self._found.get(key)
        return KernelFound("kernel", name, "hit" if there else "miss", key)


def _triton(name: str, kernel: Any, since: float) -> Iterator[KernelFound]:
    """Whether Triton's cache had all that this kernel may launch, and the autotuner's which of it is the fastest."""
    from torch._inductor.runtime.cache_dir_utils import triton_cache_dir

    folder = Path(triton_cache_dir(kernel.device_props.index or 0))
    hashes = [launcher.cache_hash for launcher in kernel.launchers if getattr(launcher, "cache_hash", "")]
    ages = [path.stat().st_mtime for key in hashes if (path := folder / key).is_dir()]
    if ages and len(ages) == len(hashes):
        new = sum(age >= since for age in ages)
        reason = f"{new} of {len(ages)} configurations are new" if new > 0 and len(ages) > 1 else ""
        yield KernelFound("triton", name, "miss" if new else "hit", hashes[0], reason)
    info = kernel.autotune_cache_info or {}
    match info.get("autotune_cache_state"):
        case "hit":
            yield KernelFound("autotune", name, "hit", chosen=_config(info.get("best_config")))
        case "miss":
            yield KernelFound("autotune", name, "miss")
        case "force_disabled":
            yield KernelFound("autotune", name, "off", reason="force_disable_caches is set, for all of torch's caches")
        case _:
            pass  # there is but one configuration


def _config(config: Any) -> str:
    """A configuration as torch names it in a cache: (("XBLOCK", 128), ..., ("num_warps", 4))."""
    return ", ".join(f"{name}={value}" for name, value in config or ())
