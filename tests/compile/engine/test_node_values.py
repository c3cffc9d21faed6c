"""Values of nodes: equal checksums mean equal bits; and ranks that run a graph together."""

import threading
import time

import pytest
import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch._C._distributed_c10d import HashStore, Store

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.in_program import lockstep, node_values
from idbg.engine.kerneldiff.in_program.lockstep import Lockstep, RanksApart
from idbg.engine.kerneldiff.in_program.node_values import inputs_measured, measured, nodes_measured
from idbg.schema.node_values import NodeValue

DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.bool, torch.complex64]


def record(value: object) -> NodeValue:
    found = measured("x", value)
    assert found is not None
    return found


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float8_e4m3fn])
def test_equal_bits_have_equal_checksums_and_others_do_not(dtype: torch.dtype) -> None:
    value = torch.arange(12).remainder(2).to(dtype).reshape(3, 4)
    assert record(value).checksum == record(value.clone()).checksum
    assert record(value).checksum != record(value[:, [1, 0, 3, 2]]).checksum, "elements in another order"
    other = value.clone()
    other[2, 3] = other[2, 2]
    assert record(value).checksum != record(other).checksum


def test_a_view_has_the_checksum_of_its_copy() -> None:
    value = torch.randn(6, 5)
    assert record(value.t()).checksum == record(value.t().contiguous()).checksum != record(value).checksum


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    value = torch.randn(1000)
    whole = record(value)
    monkeypatch.setattr(node_values, "_PIECE", 7)
    pieces = record(value)
    assert pieces.checksum == whole.checksum
    assert pieces.mean == pytest.approx(whole.mean) and pieces.std == pytest.approx(whole.std)


def test_figures_are_of_finite_elements() -> None:
    value = torch.tensor([1.0, -3.0, float("nan"), float("inf"), 2.0])
    found = record(value)
    finite = torch.tensor([1.0, -3.0, 2.0], dtype=torch.float64)
    assert (found.nonfinite, found.elements, found.max_abs) == (2, 5, 3.0)
    assert found.mean == pytest.approx(finite.mean().item())
    assert found.std == pytest.approx(finite.std(correction=0).item())
    nothing = record(torch.empty(0))
    assert (nothing.mean, nothing.std, nothing.max_abs, nothing.nonfinite) == (None, None, None, 0)


def test_what_cannot_be_read_has_no_checksum() -> None:
    assert measured("x", 3) is None and measured("x", (1, None)) is None
    assert record(torch.empty(3, device="meta")).checksum == ""
    assert record(torch.eye(3).to_sparse()).checksum == ""
    assert record([torch.ones(2), torch.ones(3)]).checksum != record([torch.ones(2), torch.zeros(3)]).checksum


def test_nodes_of_a_graph_and_what_draws() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor, weight: Tensor) -> Tensor:
            return torch.nn.functional.dropout(x @ weight, 0.5).relu()

    gm = torch.fx.symbolic_trace(Model())
    args = torch.randn(2, 3), torch.randn(3, 2)
    values = {each.node: each for each in nodes_measured(gm, args)}
    assert [name for name, value in values.items() if value.random] == ["dropout"]
    assert values["matmul"].checksum == record(args[0] @ args[1]).checksum
    inputs = inputs_measured(gm, args, {id(args[1]): (0, 1)})
    assert [(each.node, each.equal_in) for each in inputs] == [("x", ()), ("weight", (0, 1))]


def in_threads(count: int, store: Store, pause: float = 0.0) -> list[object]:
    """What each of these ranks gets: whether any wants more, or the sentence of why it runs nothing."""
    found: list[object] = [None] * count

    def run(rank: int) -> None:
        time.sleep(pause * rank)
        step = Lockstep(store, 2)
        try:
            step.begin()
            found[rank] = (step.any(rank == 1), step.any(False))
        except RanksApart as error:
            found[rank] = error.message

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_what_one_rank_wants_all_do() -> None:
    assert in_threads(2, HashStore()) == [(True, False), (True, False)]


def test_a_rank_that_comes_too_late_runs_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "SECONDS", 0.2)
    one, other = in_threads(2, HashStore(), pause=0.6)
    assert one == other == "not all of the 2 ranks came to this graph within 0.2 s"


def test_a_checkpointed_dropout_is_eagers_own() -> None:
    """Dynamo's checkpoint draws other numbers when it computes again: the copy that is compared does not."""
    weight = torch.randn(8, 8, requires_grad=True)
    held: list[torch.fx.GraphModule] = []

    def inner(x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(torch.relu(x @ weight), 0.5)

    def model(x: Tensor) -> Tensor:
        return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False) * 2  # type: ignore[no-any-return]

    def backend(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        held.append(comparing.without_checkpoints(gm))
        return gm.forward

    x = torch.randn(4, 8)
    torch.compile(model, backend=backend)(x)  # type: ignore[arg-type]
    (gm,) = held
    assert "checkpoint" not in gm.code or "_call_checkpointed" in gm.code
    names = {node.name: x if node.name.startswith("l_x") else weight for node in gm.graph.find_nodes(op="placeholder")}
    gradients: list[Tensor] = []
    for call in (lambda: model(x), lambda: gm(*names.values())[0]):
        torch.manual_seed(0)
        weight.grad = None
        call().sum().backward()
        assert weight.grad is not None
        gradients.append(weight.grad.clone())
    assert torch.equal(*gradients)
