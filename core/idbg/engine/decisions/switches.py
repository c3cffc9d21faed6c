"""List the settings of torch that are useful for debugging, with torch's own description of each.

The names are our choice; types, defaults, choices and descriptions come from the installed torch. A name that it lacks
is left out.
"""

from collections.abc import Iterator

from idbg.engine.compat import settings
from idbg.engine.compat.config_comments import argument_comment, option_comment, setting_comment
from idbg.schema.programs import Switch

OPTIONS: dict[str, str] = {
    "autotuning": """max_autotune max_autotune_gemm max_autotune_pointwise max_autotune_gemm_backends
        max_autotune_conv_backends max_autotune_gemm_search_space coordinate_descent_tuning autotune_in_subproc
        autotune_fallback_to_aten triton.autotune_pointwise triton.multi_kernel""",
    "fusion": """epilogue_fusion prologue_fusion epilogue_fusion_first aggressive_fusion benchmark_fusion
        benchmark_epilogue_fusion loop_ordering_after_fusion max_fusion_size combo_kernels group_fusion batch_fusion
        triton.mix_order_reduction triton.tiling_prevents_pointwise_fusion
        triton.tiling_prevents_reduction_fusion cpp.max_horizontal_fusion_size""",
    "passes": """pattern_matcher use_pre_grad_passes use_joint_graph_passes use_post_grad_passes use_dce
        fallback_by_default selective_decompose joint_graph_constant_folding split_cat_fx_passes b2b_gemm_pass
        decompose_mem_bound_mm reorder_for_locality reorder_for_peak_memory disabled_passes freezing
        freezing_discard_parameters""",
    "memory and layout": """layout_optimization force_layout_optimization keep_output_stride shape_padding
        comprehensive_padding permute_fusion allow_buffer_reuse inplace_buffers memory_planning realize_reads_threshold
        realize_opcount_threshold""",
    "numbers": """fallback_random align_random_eager emulate_precision_casts emulate_precision_casts_on_saved_tensors
        use_fast_math deterministic batch_invariant split_reductions online_softmax
        triton.codegen_upcast_to_fp32 cpp.enable_unsafe_math_opt_flag cpp.enable_floating_point_contract_flag
        cpp.use_decompose_tanh""",
    "generated code": """cpp_wrapper fx_wrapper size_asserts nan_asserts scalar_asserts alignment_asserts
        assert_indirect_indexing graph_partition triton.persistent_reductions triton.cooperative_reductions
        triton.max_tiles triton.prefer_nd_tiling triton.use_block_ptr triton.use_tensor_descriptor
        triton.native_matmul triton.unique_kernel_names cpp.simdlen cpp.threads cpp.dynamic_threads
        cpp.weight_prepack cpp.enable_tiling_heuristics cpp.enable_loop_tail_vec cpp.enable_kernel_profile""",
    "CUDA graphs": """triton.cudagraphs triton.cudagraph_trees triton.cudagraph_skip_dynamic_graphs
        triton.cudagraph_support_input_mutation triton.cudagraph_or_error triton.cudagraph_dynamic_shape_warn_limit""",
    "caches and compiling": """fx_graph_cache autotune_local_cache force_disable_caches compile_threads
        cpp_cache_precompile_headers debug generate_intermediate_hooks""",
}
"""Inductor's, by what they are about."""

SETTINGS: dict[str, str] = {
    "Dynamo": """dynamo.recompile_limit dynamo.accumulated_recompile_limit dynamo.fail_on_recompile_limit_hit
        dynamo.error_on_recompile dynamo.suppress_errors dynamo.capture_scalar_outputs
        dynamo.capture_dynamic_output_shape_ops dynamo.inline_inbuilt_nn_modules dynamo.guard_nn_modules
        dynamo.skip_nnmodule_hook_guards dynamo.use_recursive_dict_tags_for_guards dynamo.nested_graph_breaks
        dynamo.allow_rnn dynamo.trace_numpy dynamo.optimize_ddp dynamo.compiled_autograd
        dynamo.rewrite_assert_with_torch_assert dynamo.skip_fwd_side_effects_in_bwd_under_checkpoint
        dynamo.debug_force_nested_calls""",
    "shapes": """dynamo.assume_static_by_default dynamo.automatic_dynamic_shapes dynamo.automatic_dynamic_shapes_mark_as
        dynamo.specialize_int dynamo.specialize_float dynamo.force_parameter_static_shapes
        dynamo.force_nn_module_property_static_shapes dynamo.allow_unspec_int_on_nn_module
        dynamo.allow_ignore_mark_dynamic dynamo.prefer_deferred_runtime_asserts_over_guards
        dynamo.do_not_emit_runtime_asserts fx.backed_size_oblivious fx.use_duck_shape
        fx.no_data_dependent_graph_break compiler.dynamic_values compiler.unbacked_sources""",
    "AOTAutograd": """functorch.activation_memory_budget functorch.aggressive_recomputation functorch.recompute_views
        functorch.ban_recompute_reductions functorch.ban_recompute_used_far_apart
        functorch.ban_recompute_long_fusible_chains functorch.functionalize_rng_ops functorch.cse
        functorch.donated_buffer functorch.backward_pass_autocast functorch.view_replay_for_aliased_outputs
        functorch.treat_parameters_as_free_to_save functorch.fake_tensor_propagate_real_tensors
        functorch.debug_assert""",
}
"""The others, by what they are about."""


def switches() -> Iterator[Switch]:
    """Every one that this torch has, by group. Reads torch's source: some 0.1 s, once."""
    yield from _of_target()
    known = settings.options()
    for group, names in OPTIONS.items():
        for name in filter(known.__contains__, names.split()):
            kind = settings.option_type(name)
            yield Switch(
                name=name,
                group=group,
                type=settings.kind_in_words(kind),
                default=settings.plain(settings.option_default(name)),
                meaning=option_comment(name),
                choices=settings.choices_of(kind),
            )
    there = settings.names()
    for group, names in SETTINGS.items():
        for name in filter(there.__contains__, names.split()):
            kind = settings.kind_of(name)
            yield Switch(
                name=name,
                place="setting",
                group=group,
                type=settings.kind_in_words(kind),
                default=settings.plain(settings.default_of(name)),
                meaning=setting_comment(name),
                choices=settings.choices_of(kind),
            )


def _of_target() -> Iterator[Switch]:
    """What torch.compile and its stance take, and the caches."""
    yield _target("mode", "str", "", argument_comment("mode"), ("", *settings.modes()))
    yield _target("dynamic", "bool | None", None, argument_comment("dynamic"), (None, True, False))
    yield _target("stance", "str", "", argument_comment("stance"), ("", *settings.stances()))
    yield _target("dynamic_sources", "list", [], setting_comment("compiler.dynamic_sources"))
    cold = (
        "Nothing is found in any cache of torch's or Triton's, on disk or in memory, and nothing is left there, "
        "but for C++'s precompiled headers, which torch keeps in one place for all."
    )
    yield _target("cold", "bool", False, cold, (True, False))


def _target(name: str, kind: str, default: object, meaning: str, choices: tuple[str | bool | None, ...] = ()) -> Switch:
    return Switch(
        name=name,
        place="target",
        group="torch.compile",
        type=kind,
        default=settings.plain(default),
        meaning=meaning,
        choices=choices,
    )
