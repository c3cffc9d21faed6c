"""Record the answers of torch's caches of graphs and of kernels, and run with empty ones."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from idbg.engine.compat.builds.scratch import private
from idbg.engine.compat.hooks import Feature, RaisedForTorch, hooked, trace_records
from idbg.engine.compat.names import instead_of, internals
from idbg.schema.decisions.inductor import CacheAnswer
from idbg.schema.decisions.inductor import CacheOutcome as Outcome
from idbg.traces.cache_answers import GraphCacheAnswer, read_answer


def observe_graph_caches(
    feature: Feature, answered: Callable[[GraphCacheAnswer], None]
) -> AbstractContextManager[None]:
    """While it lasts, `answered` gets each answer of a graph cache, in the thread that compiles."""

    def read(record: logging.LogRecord) -> None:
        metadata, payload = getattr(record, "metadata", None), getattr(record, "payload", None)
        if metadata and isinstance(payload, str) and (found := read_answer(metadata, payload)) is not None:
            answered(found)

    return trace_records(feature, read)


def graph_cache_bypassed(reason: Callable[[], str]) -> AbstractContextManager[None]:
    """Inductor's FX graph cache is neither read nor written where `reason` returns a text."""

    def check(call: Callable[..., None], *args: object, **kwargs: object) -> None:
        if why := reason():
            raise RaisedForTorch(internals._inductor.codecache.BypassFxGraphCache(why))
        call(*args, **kwargs)

    return hooked("cache bypass", {"FxGraphCache._check_can_cache": check})


Loaded = Callable[[CacheAnswer, str], None]
"""Gets what a cache answered of a loaded kernel, and the configuration that was found with it ("" without one)."""


def observe_kernel_caches(feature: Feature, loaded: Loaded, since: Callable[[], float]) -> AbstractContextManager[None]:
    """While it lasts, `loaded` gets each kernel of a wrapper once all are loaded, and whether it was found or built.

    C++: torch's builder looks for the library by the source's hash; a kernel in memory is not looked for. Triton:
    another process compiles, so the age of its files decides; `since` is when the current compile began, in seconds
    since the epoch.
    """
    loads = _Loads()

    def compile_cpp(call: Callable[..., object], lock_path: str, builders: Any) -> object:
        loads.looked_for(Path(lock_path).stem, Path(builders[-1].get_target_file_path()).exists())
        return call(lock_path, builders)

    def cpp(call: Callable[..., object], compiling: object, argtypes: list[str], source: str) -> object:
        cache = internals._inductor.codecache.CppPythonBindingsCodeCache.cache
        before = len(cache)
        kernel = call(compiling, argtypes, source)
        loads.loading(kernel, next(reversed(cache)) if len(cache) > before else "")
        return kernel

    def wait(call: Callable[..., None], compiling: object, scope: dict[str, Any]) -> None:
        keys = loads.keys(scope)
        call(compiling, scope)
        for name, key in keys.items():
            loaded(loads.answer(name, key), "")
        for name, value in scope.items():
            if hasattr(value, "autotune_cache_info"):  # a Triton kernel
                with contextlib.suppress(AttributeError, KeyError, OSError):
                    for found, chosen in _triton(name, value, since()):
                        loaded(found, chosen)

    wrappers = {"_worker_compile_cpp": compile_cpp, "AsyncCompile.cpp_pybinding": cpp, "AsyncCompile.wait": wait}
    return hooked(feature, wrappers)


class _Loads:
    """The C++ kernels that are being loaded. Threads look for the libraries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, bool] = {}
        self._loading: list[tuple[object, str]] = []

    def looked_for(self, key: str, there: bool) -> None:
        """Note whether the library of this key exists; the first note counts, as it is built afterwards."""
        with self._lock:
            self._found.setdefault(key, there)

    def loading(self, kernel: object, key: str) -> None:
        """A wrapper loads `kernel`, which may be a future; `key` is "" where it was in memory."""
        self._loading.append((kernel, key))

    def keys(self, scope: Mapping[str, object]) -> dict[str, str]:
        """The keys of the kernels that are being loaded, by their names in the wrapper."""
        keys = {id(kernel): key for kernel, key in self._loading}
        self._loading.clear()
        return {name: keys[id(value)] for name, value in scope.items() if id(value) in keys}

    def answer(self, name: str, key: str) -> CacheAnswer:
        """Whether the kernel was found."""
        if not key:
            return CacheAnswer(cache="kernel", what=name, outcome="hit", reason="this process had it in memory")
        with self._lock:
            there = self._found.get(key)
        return CacheAnswer(cache="kernel", what=name, outcome="hit" if there else "miss", key=key)


def _triton(name: str, kernel: Any, since: float) -> Iterator[tuple[CacheAnswer, str]]:
    """Whether Triton's cache had all configurations of this kernel, and the autotuner's cache the fastest of them."""
    folder = Path(internals._inductor.runtime.cache_dir_utils.triton_cache_dir(kernel.device_props.index or 0))
    hashes = [launcher.cache_hash for launcher in kernel.launchers if getattr(launcher, "cache_hash", "")]
    ages = [path.stat().st_mtime for key in hashes if (path := folder / key).is_dir()]
    if ages and len(ages) == len(hashes):
        new = sum(age >= since for age in ages)
        reason = f"{new} of {len(ages)} configurations are new" if new > 0 and len(ages) > 1 else ""
        outcome: Outcome = "miss" if new else "hit"
        yield CacheAnswer(cache="triton", what=name, outcome=outcome, key=hashes[0], reason=reason), ""
    info = kernel.autotune_cache_info or {}
    outcomes: dict[object, Outcome] = {"hit": "hit", "miss": "miss", "force_disabled": "off"}
    if (found := outcomes.get(info.get("autotune_cache_state"))) is not None:  # else it has only one configuration
        why = "force_disable_caches is set, for all of torch's caches" if found == "off" else ""
        chosen = _config(info.get("best_config")) if found == "hit" else ""
        yield CacheAnswer(cache="autotune", what=name, outcome=found, reason=why), chosen


def _config(config: Any) -> str:
    """A configuration as it is in torch's cache: (("XBLOCK", 128), ..., ("num_warps", 4))."""
    return ", ".join(f"{name}={value}" for name, value in config or ())


@instead_of("torch names no reason")
def why_off() -> str:
    """Why Inductor does not use its FX graph cache now."""
    if internals._inductor.config.force_disable_caches:
        return "force_disable_caches is set, for all of torch's caches"
    if not internals._inductor.config.fx_graph_cache:
        return "fx_graph_cache is off"
    if internals._functorch.config.bundled_autograd_cache:
        return "bundled_autograd_cache stores the graphs in AOTAutograd's cache"
    return "torch does not cache this way of compiling, or this backend"


@instead_of(False)
def aot_cache_on() -> bool:
    """Whether AOTAutograd uses its cache now."""
    return bool(internals._functorch.config.enable_autograd_cache)


@instead_of("")
def cache_folder() -> str:
    """The folder of Inductor's cache, now. Torch makes it each time, and writes its name into the environment."""
    return os.environ.get(_VARIABLES[0]) or str(internals._inductor.runtime.cache_dir_utils.cache_dir())


def is_generated(file: str) -> bool:
    """Whether Inductor wrote the file: its folder in the cache is named by two letters of its name, a hash, or Triton.
    The cache itself may be a folder of the program.
    """
    cache = cache_folder()
    if not cache or not file.startswith(cache.rstrip("/") + "/"):
        return False
    folder, _, inside = file[len(cache.rstrip("/")) + 1 :].partition("/")
    return bool(inside) and (inside[1:3] == folder or len(folder) > 40 or folder == "triton")


_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


@dataclass
class _Folder:
    """The caches of the last cold run: its kernels are read after its end."""

    last: TemporaryDirectory[str] | None = None


_folder = _Folder()


@contextmanager
def fresh_caches() -> Iterator[None]:
    """While it lasts, torch's and Triton's caches on disk are an empty folder, and those in memory begin empty.

    Precompiled C++ headers stay in torch's common folder (as with its `fresh_cache`), and a process finds its vector
    instructions only once. `forget_last` removes the folder; the host removes what a process leaves of it.
    """
    forget_last()
    place = private.there() if private.folder is not None else None
    _folder.last = TemporaryDirectory(prefix="cold-", dir=place, ignore_cleanup_errors=True)
    folder = _folder.last.name
    before = {name: os.environ.get(name) for name in _VARIABLES}
    internals._inductor.utils.clear_caches()
    os.environ.update(zip(_VARIABLES, (folder, os.path.join(folder, "triton")), strict=True))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def forget_last() -> None:
    """Remove the caches of the last cold run."""
    if _folder.last is not None:
        internals._inductor.utils.clear_caches()
        _folder.last.cleanup()
        _folder.last = None
