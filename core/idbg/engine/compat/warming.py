"""Import and prepare what every compile needs, before processes are forked from this one.

Nothing here computes with tensors or uses a device: neither a CUDA driver nor GNU OpenMP's threads survive a fork.
"""

import contextlib
import ctypes
import functools
import importlib
import os
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idbg.engine.compat.names import find

if TYPE_CHECKING:
    from torch._C._dynamo.guards import RootGuardManager

IMPORTED = (
    "torch",
    "torch._dynamo",
    "torch._dynamo.dce_extra_outputs",
    "torch._dynamo.repro.after_dynamo",
    "torch._export.db.logging",
    "torch._export.passes.collect_tracepoints_pass",
    "torch._functorch.aot_autograd",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.compile_fx",
    "torch._inductor.async_compile",
    "torch._inductor.bounds",
    "torch._inductor.choices",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_cpu",
    "torch._inductor.codegen.memory_planning",
    "torch._inductor.codegen.segmented_tree",
    "torch._inductor.codegen.wrapper",
    "torch._inductor.extern_node_serializer",
    "torch._inductor.fx_passes.apply_gumbel_max_trick",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.fx_passes.mkldnn_fusion",
    "torch._inductor.fx_passes.split_cat",
    "torch._inductor.hooks",
    "torch._inductor.kernel_template_choice",
    "torch._inductor.lowering",
    "torch._subclasses.schema_check_mode",
    "torch.distributed.tensor.experimental",
    "torch.export._trace",
    "torch.export._unlift",
    "torch.fx.experimental.validator",
    "torch.utils.cpp_extension",
    "safetensors.torch",
    "sympy.tensor.tensor",
)
IMPORTED_WITH_A_GPU = ("torch._inductor.codegen.triton", "torch._inductor.runtime.triton_heuristics")
_BY_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"  # torch then looks for GPUs without waking CUDA's driver
_DRIVER = "libcuda.so"
_NOT_BEGUN = 3  # CUDA_ERROR_NOT_INITIALIZED


def warm_up() -> None:
    """Import torch and its compilers, and compute what is the same in every compile: compilers report the processor's
    instructions. Names that this torch lacks are left to each compile.
    """
    before = os.environ.get(_BY_NVML)
    os.environ[_BY_NVML] = "1"
    try:
        for name in IMPORTED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        import torch

        steps = [_backends, _keys, _operators, evaluate_guards_warm]
        if torch.cuda.device_count():
            steps.append(_triton)
        elif not torch.accelerator.is_available():
            steps += [_system, _patterns, _instructions]
        for step in steps:
            with contextlib.suppress(ImportError, AttributeError, TypeError):
                step()
    finally:
        os.environ.pop(_BY_NVML)
        os.environ |= {} if before is None else {_BY_NVML: before}


def import_backend(name: str) -> None:
    """Import the package that registers this backend with torch; "" is none. A failure is left to each compile."""
    from idbg.engine.compat import dynamo

    # Broad on purpose: the package is code of others, and may need a driver or a device that is not here.
    with contextlib.suppress(Exception):
        if name in dynamo.backend_names():
            dynamo.lookup_backend(name)


def has_a_driver() -> bool:
    """Whether CUDA's driver is initialized in this process: a process forked from it cannot use a GPU.

    The driver reports the number of devices only after that. NVML opens the same device files.
    """
    with contextlib.suppress(OSError, AttributeError):
        if _DRIVER in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"):
            count = ctypes.c_int()
            return bool(ctypes.CDLL(f"{_DRIVER}.1").cuDeviceGetCount(ctypes.byref(count)) != _NOT_BEGUN)
    return False


def _backends() -> None:
    """The backends of Dynamo, and of Inductor for each device."""
    find("torch._inductor.codegen.common.init_backend_registration")()
    find("torch._dynamo.backends.registry._lazy_import")()


def _keys() -> None:
    """Hashes of the sources of torch and Triton."""
    find("torch._inductor.codecache.torch_key")()
    find("torch._inductor.codecache.triton_key")()


def _operators() -> None:
    """Processes end without a word to torch's own libraries of operators: that was half of an empty script's time."""
    ends = find("torch.library._del_library")
    for each in [*weakref.finalize._registry]:  # type: ignore[attr-defined]
        if (called := each.peek()) is not None and called[1] is ends:
            each.atexit = False


def evaluate_guards_warm() -> None:
    """Torch evaluates the guards of each frame once more, for its log, and writes 64 MB before, so that the processor's
    caches are cold: 0.04 s, a third of what a process needs that compiles a small function.
    """
    guards: Any = importlib.import_module("torch._dynamo.guards")
    if hasattr(guards, "profile_guard_manager"):
        guards.profile_guard_manager = functools.partial(_evaluated)  # a function would be one that the program patched


def _evaluated(root: "RootGuardManager", values: dict[str, object], count: int) -> float:
    """The microseconds that the guards take."""
    began = time.perf_counter()
    root.check(values)
    return (time.perf_counter() - began) * 1e6


def _system() -> None:
    find("torch._inductor.codecache.CacheBase").get_system()


def _patterns() -> None:
    """The joint graph's patterns, which Inductor traces on tensors without values. They take 0.4 s, and may be
    registered twice, unlike those of other passes.
    """
    import torch

    find("torch._inductor.fx_passes.joint_graph.lazy_init")(torch.device("cpu"))
    # a table without the decompositions that a program registers
    find("torch._inductor.decomposition.fast_random_decomps").cache_clear()


def _instructions() -> None:
    """The processor's vector instructions, which Inductor finds by compiling, once for each of its caches."""
    find("torch._inductor.cpu_vec_isa.pick_vec_isa")()


def _triton() -> None:
    for name in IMPORTED_WITH_A_GPU:
        importlib.import_module(name)
