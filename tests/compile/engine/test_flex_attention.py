"""`flex_attention` and its backward, op by op: a few ops over all scores, and no loop over elements."""

import math
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from idbg.engine.compat.torch_types import OpOverload
from idbg.engine.kerneldiff.float64.op_mode import OpMode
from idbg.engine.kerneldiff.float64.rounding import SAMPLES, PerturbedRounding, TooManyOps
from idbg.engine.kerneldiff.kernels.interpreter import NodeState, OrderedGraph
from idbg.engine.kerneldiff.kernels.launch_references import LaunchReferences
from idbg.engine.kerneldiff.kernels.values import NotComputable, ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import judge_launch
from idbg.engine.kerneldiff.stages.evaluate import computed

pytestmark = pytest.mark.usefixtures("seeded")
ROWS, MOST = 32, 400  # of 4,096 scores; ops of one run


class Counted(OpMode):
    """Counts the ops that run, also inside of higher-order ops."""

    def __init__(self) -> None:
        super().__init__()
        self.ops = 0

    def run(self, func: OpOverload, args: Any, kwargs: Any) -> object:
        self.ops += 1
        return func(*args, **kwargs)


def relative(score: Tensor, batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return torch.where(row >= column, score + (column - row) * 0.1, -math.inf)


def attention(*inputs: Tensor) -> Tensor:
    from torch.nn.attention.flex_attention import _create_empty_block_mask

    query, key, value = inputs
    mask = _create_empty_block_mask(query, key).as_tuple()
    return torch.ops.higher_order.flex_attention(query, key, value, relative, mask, 0.25, {})[0]


@pytest.fixture
def backward() -> tuple[GraphModule, list[Any]]:
    """The backward's graph, as Inductor has it traced in bfloat16, and what it is called with."""
    from functorch.compile import aot_function, make_boxed_func  # type: ignore[import-untyped]
    from torch._inductor.decomposition import select_decomp_table

    made: list[Any] = []

    def compiled(gm: GraphModule, examples: Any) -> Any:
        def run(*args: Any) -> Any:
            made[:] = [gm, [each.detach() for each in args]]
            return gm(*args)

        return make_boxed_func(run)

    function = aot_function(attention, compiled, decompositions=select_decomp_table())
    inputs = [torch.randn(2, 2, ROWS, 16).bfloat16().requires_grad_() for _ in range(3)]
    out = function(*inputs)
    with warnings.catch_warnings(action="ignore"):  # of the loop
        out.backward(torch.randn_like(out))
    return made[0], made[1]


def gradients(backward: tuple[GraphModule, list[Any]]) -> tuple[LaunchReferences, list[NodeState]]:
    gm, inputs = backward
    states = [NodeState(node) for node in gm.graph.output_node().all_input_nodes]
    return LaunchReferences(OrderedGraph(gm), inputs, [states]), states


def test_a_stage_runs_it_over_all_scores_at_once(backward: tuple[GraphModule, list[Any]]) -> None:
    gm, inputs = backward
    assert "torch.ops.prims.convert_element_type" in gm.joint_graph0.code, "an op that vmap runs for each score"  # type: ignore[operator,union-attr]
    with Counted() as counted:
        own = computed(gm, inputs, exact=False).outputs
    assert counted.ops < MOST
    with warnings.catch_warnings(action="ignore"), torch.no_grad():  # of the loop
        assert all(map(torch.equal, own, gm(*inputs)))  # type: ignore[arg-type]


def test_a_launch_is_judged_by_float64_and_by_other_roundings(backward: tuple[GraphModule, list[Any]]) -> None:
    references, states = gradients(backward)
    for state in states:
        with Counted() as counted:
            reference = references.value(state)
            resampled = [references.resampled(state, seed, 1.0) for seed in range(SAMPLES)]
        assert counted.ops < (2 + SAMPLES) * MOST
        errors = [float((value - reference.exact).abs().max()) for value in (reference.own, *resampled)]
        assert all(0 < error < 0.05 * float(reference.exact.abs().max()) for error in errors)
        assert reference.exact.dtype == torch.float64
        verdicts = [
            judge_launch(value, reference, lambda _, others=resampled: others)  # type: ignore[misc]
            for value in (reference.own * 1.02, reference.exact.bfloat16())
        ]
        assert verdicts[0].excess > 1 >= verdicts[1].excess


def test_a_run_that_takes_too_many_ops_ends(
    backward: tuple[GraphModule, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TooManyOps), PerturbedRounding(0, most_ops=5):
        [torch.ones(3) * 2 for _ in range(5)]
    monkeypatch.setattr("idbg.engine.kerneldiff.kernels.launch_references.MOST_OPS", 5)
    references, states = gradients(backward)
    assert isinstance(references.value(states[0]), ReferenceValue)
    with pytest.raises(NotComputable, match="too many ops"):
        references.resampled(states[0], 0, 1.0)
