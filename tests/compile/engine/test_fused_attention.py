"""Fused attention in float64: plain math that computes what the op does, and never its own kernel."""

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule
from torch.nn.functional import scaled_dot_product_attention

from idbg.engine.kerneldiff.float64.attention import in_plain_math, is_fused
from idbg.engine.kerneldiff.float64.draws import draws_inside, draws_outside
from idbg.engine.kerneldiff.float64.mode import Float64
from idbg.engine.kerneldiff.float64.wide_ops import in_float64
from idbg.engine.kerneldiff.kernels.values import ReferenceValue, computed

pytestmark = pytest.mark.usefixtures("seeded")
aten = torch.ops.aten
FOR_CPU = aten._scaled_dot_product_flash_attention_for_cpu
KINDS = ("flash", "efficient", "cudnn")


def drawn(
    rows: int, columns: int, heads: int, others: int, *, dtype: torch.dtype = torch.float32, device: str = "cpu"
) -> list[Tensor]:
    """Queries, keys and values that lie as a model's do: rows before heads."""
    sizes = ((rows, heads), (columns, others), (columns, others))
    return [torch.randn(2, length, count, 32, device=device, dtype=dtype).transpose(1, 2) for length, count in sizes]


def widened(values: Any) -> Any:
    return torch.utils._pytree.tree_map(
        lambda value: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value, values
    )


def near(given: Tensor, exact: Tensor, within: float) -> bool:
    exact = exact[..., : given.shape[-1]]
    return float((given.double() - exact).abs().max()) <= within * float(exact.abs().max())


@pytest.mark.parametrize("lengths", [(10, 10), (7, 12), (12, 7)], ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
@pytest.mark.parametrize("masked", [False, True], ids=["plain", "masked"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_the_cpus_fused_attention_and_its_backward(
    lengths: tuple[int, int], causal: bool, masked: bool, scale: float | None
) -> None:
    query, key, value = drawn(*lengths, 4, 4)
    named = {"attn_mask": torch.randn(2, 1, *lengths) if masked else None, "scale": scale}
    own = FOR_CPU(query, key, value, 0.0, causal, **named)
    exact = in_plain_math(FOR_CPU.default, widened([query, key, value, 0.0, causal]), widened(named))
    grad = torch.randn_like(own[0])
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
    own_grads = backward(grad, query, key, value, *own, 0.0, causal, **named)
    grads = in_plain_math(backward.default, [*widened([grad, query, key, value]), *exact, 0.0, causal], widened(named))
    for given, right in zip((*own, *own_grads), (*exact, *grads), strict=True):  # type: ignore[misc]
        assert right.dtype == torch.float64 and near(given, right, 1e-5)
        assert right.stride() == given.stride()


def called(kind: str, tensors: list[Tensor], bias: Tensor | None, causal: bool, p: float = 0.0) -> list[Any]:
    """The arguments of a forward."""
    return [*tensors, p, causal] if kind == "flash" else [*tensors, bias, True, p, causal]


def called_back(
    kind: str, grad: Tensor, tensors: list[Tensor], bias: Any, causal: bool, saved: Any, p: float = 0.0
) -> list[Any]:
    """The arguments of the backward of what a forward `saved`."""
    if kind == "efficient":
        return [grad, *tensors, bias, *saved[:4], p, [True, True, True, bias is not None], causal]
    if kind == "cudnn":
        return [grad, *tensors, *saved[:2], *saved[6:8], bias, *saved[2:6], p, causal]
    return [grad, *tensors, *saved[:6], p, causal, *saved[6:8]]


def op(kind: str, backward: bool = False) -> Any:
    return getattr(aten, f"_scaled_dot_product_{kind}_attention{'_backward' if backward else ''}").default


def cases() -> Iterator[Any]:
    for kind, causal, masked, others in itertools.product(KINDS, (False, True), (False, True), (4, 2)):
        if not (masked and (causal or kind == "flash")):
            words = (kind, "causal" if causal else "whole", "masked" if masked else "plain", f"{others} heads")
            yield pytest.param(kind, causal, masked, others, id="-".join(words))


@pytest.mark.parametrize(("kind", "causal", "masked", "others"), list(cases()))
def test_a_gpus_fused_attention_is_what_attention_is(kind: str, causal: bool, masked: bool, others: int) -> None:
    if kind == "efficient" and others == 2 and torch.__version__.startswith("2.11"):
        pytest.skip("torch 2.11's efficient attention has no shared heads: its meta function says so")
    tensors = [each.double().requires_grad_() for each in drawn(10, 10, 4, others)]
    bias = torch.randn(2, 4, 10, 10, dtype=torch.float64, requires_grad=True) if masked else None
    query, key, value = tensors
    wanted = scaled_dot_product_attention(query, key, value, bias, is_causal=causal, enable_gqa=others != 4)
    grad = torch.randn_like(wanted)
    wanted_grads = torch.autograd.grad(
        wanted, [*tensors, *([bias] if bias is not None and kind == "efficient" else [])], grad
    )
    tensors, held = [each.detach() for each in tensors], bias if bias is None else bias.detach()
    saved: Any = in_plain_math(op(kind), called(kind, tensors, held, causal), {})
    grads: Any = in_plain_math(op(kind, True), called_back(kind, grad, tensors, held, causal, saved), {})
    pairs = zip((wanted, *wanted_grads), (saved[0], *grads), strict=False)
    assert all(torch.allclose(one, other, rtol=0, atol=1e-13) for one, other in pairs)
    assert saved[0].transpose(1, 2).is_contiguous(), "it lies as the op's own does: what follows views it"


def test_fused_attention_is_never_called_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value = drawn(6, 6, 2, 2)
    calls: list[torch.dtype] = []

    def kernel(query: Tensor, *_: object, **__: object) -> object:
        calls.append(query.dtype)
        raise AssertionError("its own kernel")

    with torch.library._scoped_library("aten", "IMPL") as library, Float64():
        library.impl("_scaled_dot_product_cudnn_attention", kernel, "CPU")
        made = op("cudnn")(query, key, value, None, True)
    assert made[0].dtype == torch.float64 and calls == []


def test_attention_over_sequences_of_their_own_lengths_has_no_float64() -> None:
    flat = torch.randn(10, 2, 32, dtype=torch.float64)
    ends = torch.tensor([0, 4, 10], dtype=torch.int32)
    varying = aten._flash_attention_forward.default
    assert is_fused(varying) and not is_fused(aten.mm.default)
    with pytest.raises(RuntimeError, match="their own lengths"):
        in_float64(varying, (flat, flat, flat, ends, ends, 6, 6, 0.0, False, False), {})


def test_a_backward_of_dropout_draws_nothing_and_its_forward_does() -> None:
    for kind in KINDS:
        forward, backward = called(kind, drawn(4, 4, 2, 2), None, False, 0.1), [None] * 20
        assert draws_inside(op(kind), forward, {}) and not draws_inside(op(kind), forward[:3], {})
        assert not draws_inside(op(kind, True), backward, {"dropout_p": 0.1})
        assert not draws_outside(op(kind)) and not draws_outside(op(kind, True))


def test_a_member_of_what_an_op_gives_is_itself_where_the_op_gives_more_in_float64() -> None:
    graph = Graph()
    given = graph.placeholder("given")
    member = graph.call_function(operator.getitem, (given, 0))
    graph.output(member)
    own, exact = torch.ones(2), torch.full((2,), 1 + 2.0**-40, dtype=torch.float64)
    both = ReferenceValue((exact, exact), (own, None))
    made = computed(GraphModule(torch.nn.Module(), graph), member, {given: both})
    assert torch.equal(made.exact, exact) and torch.equal(made.own, own)


# The real ops: on a GPU


def on_a_gpu(kind: str) -> tuple[torch.dtype, float]:
    """The dtype that a kind is called in there, and how near it is to float64."""
    return (torch.float32, 1e-3) if kind == "efficient" else (torch.bfloat16, 4e-2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("p", [0.0, 0.2], ids=["all", "dropout"])
@pytest.mark.parametrize(("kind", "causal", "masked", "others"), [each for each in cases() if each.values[3] == 4])
def test_the_real_op_in_its_own_precision_is_near(kind: str, causal: bool, masked: bool, others: int, p: float) -> None:
    dtype, within = on_a_gpu(kind)
    tensors = drawn(48, 48, 4, others, dtype=dtype, device="cuda")
    bias = torch.randn(2, 4, 48, 48, device="cuda", dtype=dtype) if masked else None
    state = torch.cuda.get_rng_state()
    own = op(kind)(*called(kind, tensors, bias, causal, p))
    after = torch.cuda.get_rng_state()
    exacts: list[Any] = []
    for _ in range(2):  # memory that nobody wrote would be another's the second time
        torch.cuda.set_rng_state(state)
        exacts.append(in_plain_math(op(kind), widened(called(kind, tensors, bias, causal, p)), {}))
        assert torch.equal(torch.cuda.get_rng_state(), after), "it draws what the op draws"
    exact = exacts[0]
    assert torch.equal(exact[0], exacts[1][0])
    grad = torch.randn_like(own[0])
    own_grads = op(kind, True)(*called_back(kind, grad, tensors, bias, causal, own, p))
    saved = [exact[0], exact[1], *own[2:]]  # the generator's state is the op's own
    grads: Any = in_plain_math(op(kind, True), widened(called_back(kind, grad, tensors, bias, causal, saved, p)), {})
    for given, right in zip((own[0], *own_grads), (exact[0], *grads), strict=False):
        if given is not None and right is not None:
            assert near(given, right, within)
            assert right.stride() == given.stride()
    rows = own[1].reshape(2, 4, -1)[..., :48]
    assert near(rows, exact[1].reshape(2, 4, -1)[..., :48], 1e-2)
