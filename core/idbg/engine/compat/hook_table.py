"""Table of the functions of torch that idbg wraps, with the features that need each.

`hooks` wraps them. tests/compile/engine/test_hooks.py resolves the table in the installed torch, and runs a program
with each entry missing and with each wrapper failing. `python -m tools.hooks` writes it to docs/versions.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

TESTED = ("2.11", "2.14", "2.15")
"""Versions of torch on which the tests of this table ran."""


def is_untried(torch: str) -> bool:
    """Whether this version of torch is newer than all of TESTED."""
    return [int(each) for each in re.findall(r"\d+", torch)[:2]] > [int(each) for each in TESTED[-1].split(".")]


FEATURES = {
    "AOTAutograd parts": "ATen graphs of other backends",
    "autotuning": "autotuning choices",
    "backend calls": "calls of backends",
    "backend partitions": "partitions of other backends",
    "bisected passes": "graphs before and after a bisected pass",
    "cache answers": "answers of the graph caches",
    "cache bypass": "reasons to bypass the FX graph cache",
    "compile trace": "records of torch's trace",
    "compiled frames": "compiled frames",
    "cuda graphs": "decisions about CUDA graphs",
    "cuda graph recordings": "recordings of CUDA graphs",
    "fusion": "fusion decisions",
    "guard costs": "guards and their costs",
    "guard failures": "failed guards of recompiles",
    "IREE dispatches": "dispatches of IREE",
    "IREE stages": "stages of IREE",
    "inner compile": "ATen graphs of backends that call Inductor",
    "kernel builds": "kernels of single builds",
    "kernel caches": "answers of the kernel caches",
    "kernel launches": "launches of Inductor's kernels",
    "loaded wrappers": "modules that Inductor loads",
    "OpenVINO layers": "layers of OpenVINO",
    "OpenVINO stages": "stages of OpenVINO",
    "pass graphs": "graphs before and after each phase of passes",
    "pass phases": "phases of passes",
    "patterns": "patterns of the pattern matcher",
    "repeated compiles": "compiles that repeat a compared one",
    "retraced nodes": "nodes of graphs that a backend traces again",
    "skipped frames": "skipped frames",
    "skipped frames by result": "skipped frames",
    "suppressed errors": "suppressed errors of compiles",
    "times": "times of the compile",
    "traced passes": "single passes",
    "visited code": "code objects compiled by an inspector",
    # what needs names of torch, and wraps no function
    "AOTInductor": "libraries of AOTInductor",
    "bisection": "bisections of the compiler",
    "comparison": "comparisons with eager and float64",
    "collectives": "collectives and replicas",
    "failures": "kinds of failures",
    "graphs": "graphs and their operators",
    "inspection": "states restored after an inspection",
    "lowering": "graphs that backends lower",
    "ops": "custom operators and Triton kernels",
    "repros": "repros and settings",
    "torch": "parts of torch",
}
"""What a run lacks while a feature is off, in the plural."""

NOT_IN_EACH = {
    "torch._dynamo.eval_frame.StanceStr": ("2.14", "2.15"),
    "torch._inductor.codecache.triton_key": ("2.14", "2.15"),
}
"""The versions of torch that have a name which some of TESTED lack."""

_CORE = (
    "_dynamo.backends.common.aot_autograd _dynamo.backends.registry.lookup_backend _dynamo.config.patch "
    "_dynamo.list_backends _functorch._aot_autograd.utils.make_boxed_func _functorch.config.patch "
    "_guards.CompileContext _inductor.compile_fx.compile_fx _inductor.compile_fx.compile_fx_inner "
    "_inductor.config.patch _logging._internal.trace_log _ops.HigherOrderOperator _ops.OpOverload "
    "utils._pytree.tree_leaves utils._pytree.tree_map"
)
CORE = tuple(f"torch.{name}" for name in _CORE.split())
"""Names of torch without which no run is captured: then its trace alone is read (worker.traced)."""

# feature -> modules of this room that use other names of torch for it
_USERS = {
    "AOTInductor": "aoti",
    "autotuning": "autotuning",
    "backend calls": "backend_calls",
    "bisection": "bisector",
    "cache answers": "caches",
    "comparison": "comparing gpu",
    "kernel builds": "compilers kernel_builds pool",
    "repros": "config_comments registrations repros settings",
    "cuda graphs": "cuda_graphs",
    "collectives": "distributed",
    "compiled frames": "dynamo",
    "failures": "exceptions",
    "graphs": "fx torch_types",
    "guard costs": "guards",
    "inspection": "inspecting",
    "kernel launches": "kernels",
    "lowering": "lowering",
    "ops": "mutations",
    "fusion": "scheduling",
    "pass graphs": "stages",
    "compile trace": "tracing",
}
USED_FOR = {module: feature for feature, modules in _USERS.items() for module in modules.split()}
"""A module of this room -> the feature that lacks what a name that is missing there is for."""


@dataclass(frozen=True)
class Hook:
    """A function of `module`: `path` is its name there, "Scheduler.can_fuse". `features` wrap it.

    `versions` of torch have it. `hide_frames`: torch searches its caller above the frames of the function's own file,
    so frames of the wrapper carry that file's name.
    """

    module: str
    path: str
    features: tuple[str, ...]
    versions: tuple[str, ...] = TESTED
    hide_frames: bool = False

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{self.module}.{self.path}"


_PHASES = "_recursive_pre_grad_passes _recursive_joint_graph_passes _recursive_post_grad_passes"

# module -> names of functions -> features that wrap them
_TABLE: dict[str, dict[str, str]] = {
    "torch._dynamo": {"reset": "repeated compiles"},
    "torch._dynamo.output_graph": {"OutputGraph.call_user_compiler": "backend calls"},
    "torch._dynamo.convert_frame": {
        "CatchErrorsWrapper._handle_skip": "skipped frames",
        "CatchErrorsWrapper.__call__": "skipped frames by result, visited code, repeated compiles",
        "format_error_msg": "suppressed errors",
    },
    "torch._dynamo.guards": {
        "strip_local_scope get_guard_fail_reason": "guard failures",
        "CheckFunctionManager.compile_check_fn profile_guard_manager": "guard costs",
    },
    "torch._dynamo.backends.common": {"aot_module_simplified": "AOTAutograd parts"},
    "torch._inductor.compile_fx": {
        "compile_fx": "inner compile",
        _PHASES: "pass phases, pass graphs",
        "log_cudagraph_skip_and_bump_counter": "cuda graphs",
    },
    "torch.fx.experimental.proxy_tensor": {"PythonKeyTracer.create_node": "retraced nodes"},
    "torch.fx.passes.graph_transform_observer": {
        "GraphTransformObserver.apply_gm_pass .apply_graph_pass .__enter__": "traced passes",
        "GraphTransformObserver.__exit__": "traced passes, bisected passes",
        "GraphTransformObserver._check_disable_pass": "bisected passes",
    },
    "torch.fx.passes.infra.partitioner": {"CapabilityBasedPartitioner.fuse_partitions": "backend partitions"},
    "torch._inductor.pattern_matcher": {
        "GraphPatternEntry.apply LoweringPatternEntry.apply ReplacementPatternEntry.apply": "patterns"
    },
    "torch._inductor.graph": {"GraphLowering.compile_to_module": "kernel launches"},
    "torch._inductor.scheduler": {
        "Scheduler._init .can_fuse .speedup_by_fusion WhyNoFuse.__init__ .__call__": "fusion",
        "Scheduler.graph_partition": "cuda graphs",
    },
    "torch._inductor.freezing": {"freeze": "pass graphs"},
    "torch._inductor.output_code": {"CompiledFxGraph.post_compile": "cuda graphs"},
    "torch._inductor.cudagraph_trees": {
        "CUDAGraphTreeManager.record_function log_cudagraph_skip_and_bump_counter": "cuda graph recordings"
    },
    "torch._inductor.select_algorithm": {
        "AlgorithmSelectorCache.__call__ .do_autotuning .autotune .benchmark_choice": "autotuning"
    },
    "torch._inductor.ir": {"ChoiceCaller.mark_failed": "autotuning"},
    "torch._inductor.runtime.triton_heuristics": {
        "CachingAutotuner.benchmark_all_configs ._coordinate_descent_tuning": "autotuning"
    },
    "torch._inductor.async_compile": {
        "AsyncCompile.cpp .triton .submit": "kernel builds",
        "AsyncCompile.cpp_pybinding": "kernel builds, kernel caches",
        "AsyncCompile.wait": "kernel caches",
    },
    "torch._inductor.codecache": {
        "_worker_compile_cpp": "kernel caches",
        "_precompile_header FxGraphCache.prepare_key ._lookup_graph ._save_graph": "kernel builds",
        "FxGraphCache._check_can_cache": "cache bypass",
        "PyCodeCache.load_by_key_path": "loaded wrappers",
    },
    "torch._inductor.cpu_vec_isa": {"VecISA.check_build": "kernel builds"},
}
# the same, of other compilers; none is imported for it
_OTHERS: dict[str, dict[str, str]] = {
    "iree.turbine.dynamo.backends.base": {
        "turbine_cpu_pass_pipeline": "IREE dispatches",
        "make_boxed_func": "IREE dispatches",
    },
    "iree.compiler.api.ctypes_dl": {
        "Invocation.execute": "IREE stages",
        "Source.wrap_buffer": "IREE dispatches",
        "Session.set_flags": "IREE dispatches",
    },
    "iree.compiler.api": {"_initializeGlobalCL": "IREE stages"},
    "iree.compiler.extras.fx_importer": {
        "FxImporter.import_graph_module": "IREE dispatches",
        "ContextCache.get_node_location": "IREE dispatches, IREE stages",
    },
    "openvino.frontend.pytorch.torchdynamo.backend": {"fx_openvino": "OpenVINO layers"},
    "openvino.frontend.pytorch.torchdynamo.execute": {"openvino_compile": "OpenVINO layers, OpenVINO stages"},
    "openvino._ov_api": {"Core.compile_model": "OpenVINO stages"},
    "openvino._pyopenvino": {
        "FrontEnd.convert": "OpenVINO layers",
        "Core.compile_model": "OpenVINO layers",
        "passes.Manager.run_passes": "OpenVINO layers",
    },
}
_NOT_IN_EACH = {"CatchErrorsWrapper._handle_skip": ("2.14", "2.15")}
_HIDES_FRAMES = ("CatchErrorsWrapper.__call__",)


def _hooks(table: dict[str, dict[str, str]]) -> Iterator[Hook]:
    for module, functions in table.items():
        for names, features in functions.items():
            owner = ""
            for name in names.split():
                path = f"{owner}{name}" if name.startswith(".") else name  # ".can_fuse" is of the class named before it
                owner = path.rpartition(".")[0]
                versions = _NOT_IN_EACH.get(path, TESTED)
                yield Hook(module, path, tuple(features.split(", ")), versions, path in _HIDES_FRAMES)


HOOKS: tuple[Hook, ...] = tuple(_hooks(_TABLE))
OTHER_COMPILERS: tuple[Hook, ...] = tuple(_hooks(_OTHERS))
"""Functions of other compilers, which may not be installed."""
