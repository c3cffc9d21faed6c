"""Translate torch's names of the parts of a compile that it times to ours."""

from functools import cache

NAMES = {
    "dynamo": "frame",
    "entire_frame_compile": "frame compile",
    "bytecode_tracing": "dynamo",
    "insert_deferred_runtime_asserts": "runtime asserts",
    "build_guards": "guards",
    "gc": "garbage collection",
    "backend_compile": "backend",
    "inductor_codecache_torch_key": "hash of torch",
    "CacheBase.get_system.triton_key": "hash of triton",
    "_recursive_pre_grad_passes": "pre-grad passes",
    "create_aot_dispatcher_function": "aot autograd",
    "aot_collect_metadata": "aot metadata",
    "aot_trace_joint_graph": "joint trace",
    "_recursive_joint_graph_passes": "joint passes",
    "min_cut_rematerialization_partition": "partitioner",
    "compile_fx.<locals>.fw_compiler_base": "forward",
    "compile_fx.<locals>.bw_compiler": "backward graph",
    "entire_backward_compile": "backward",
    "inductor_compile": "inductor",
    "fx_codegen_and_compile": "graph compile",
    "additional_fake_tensor_prop": "shapes",
    "_recursive_post_grad_passes": "post-grad passes",
    "GraphLowering.run": "lowering",
    "GraphLowering.compile_to_fn": "to a function",
    "code_gen": "to a module",
    "GraphLowering.codegen": "codegen",
    "Scheduler.__init__": "scheduling",
    "Scheduler.fused_nodes": "fusion",
    "Scheduler.codegen": "kernel code",
    "PythonWrapperCodegen.generate": "wrapper code",
    "PyCodeCache.load_by_key_path": "load",
    "compile_file": "c++ compile",
    "async_compile.wait": "kernel build",
    "async_compile.precompile": "triton compile",
    "CachingAutotuner.benchmark_all_configs": "autotuning",
    "TritonBundler.collect": "triton bundle",
    "AOTAutogradCache.inductor_load": "from the aot cache",
}
"""torch's names -> ours, of the parts of most compiles; others keep torch's names."""

PASS, ATTEMPT = "pass", "attempt"
_OF = {"pre_grad_passes": "pre-grad", "joint_graph_passes": "joint", "post_grad_passes": "post-grad"}
_ATTEMPT = "compile_attempt_"


@cache
def words(name: str) -> tuple[str, str]:
    """Our name of a part that torch times, and its subject: the name of a pass, the number of an attempt."""
    if name.startswith("pass."):
        phase, _, own = name[len("pass.") :].rpartition(".")
        return PASS, f"{_OF.get(phase, phase)}: {own}" if phase else own
    if name.startswith(_ATTEMPT):
        number = name[len(_ATTEMPT) :]
        return ATTEMPT, str(int(number) + 1) if number.isdigit() else number
    for suffix, ours in (("_template_precompiling", "template compile"), ("_template_autotuning", "autotuning")):
        if name.endswith(suffix):
            return ours, name[: -len(suffix)]
    return NAMES.get(name, name), ""


def pass_named(what: str, name: str) -> str:
    """The subject of a pass, with another name for it than torch's."""
    phase, colon, _ = what.rpartition(": ")
    return f"{phase}{colon}{name}"
