"""Every side starts from the same state and leaves it as it was; float64 draws the same random numbers."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.nn import functional as F

from idbg import KernelDiff
from idbg.engine.kerneldiff.float64.copies import float64_copies
from idbg.engine.kerneldiff.float64.mode import Float64, NotInFloat64, float64_failure
from idbg.engine.kerneldiff.sides.run import Side, eager_draws, run_compiled, run_eager, run_float64
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.float64_device import usual_dtype
from idbg.engine.program.load import Workload

Run = Callable[..., Side]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def through_dynamo(subject: Subject, *, backward: bool = False) -> Side:
    return run_compiled("eager", subject, partial(torch.compile, backend="eager"), backward=backward)


SIDES = pytest.mark.parametrize("run", [run_eager, through_dynamo, run_float64], ids=["eager", "dynamo", "float64"])


def subject(model: Callable[..., Any], *args: object, **options: Any) -> Subject:
    return Subject(Workload(model, args), **options)


def out(side: Side) -> Tensor:
    assert side.error is None and side.values is not None, side.error
    value = side.values.outputs["out"]
    assert isinstance(value, Tensor)
    return value


# State


@pytest.mark.parametrize("run", [run_eager, through_dynamo], ids=["eager", "dynamo"])
def test_gradients_of_a_nested_input_are_those_of_its_components_and_leave_it_as_it_was(run: Run) -> None:
    linear = nn.Linear(3, 3)
    x = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged, requires_grad=True)
    tried = subject(lambda x: linear(x).sin(), x)
    for _ in range(2):
        side = run(tried, backward=True)
        assert side.error is None and side.values is not None
        assert {"grad(args[0][0])", "grad(args[0][1])", "grad(linear.weight)"} <= {*side.values.gradients}
        assert x.grad is None


@SIDES
def test_verdict_38_batch_norms_statistics_and_the_random_state_are_restored(run: Run) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x, generators = torch.randn(8, 4), (torch.get_rng_state(), random.getstate())
    side = run(subject(model, x))
    assert side.values is not None and "1.running_mean (after)" in side.values.outputs
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]) and value.dtype == before[name].dtype, name
    assert torch.equal(torch.get_rng_state(), generators[0]) and random.getstate() == generators[1]


@SIDES
def test_inputs_that_are_changed_in_place_are_compared_and_put_back(run: Run) -> None:
    x = torch.ones(4)
    side = run(subject(lambda x: x.mul_(3), x))
    assert torch.equal(x, torch.ones(4)) and x.dtype == torch.float32
    assert side.values is not None
    assert torch.equal(side.values.outputs["args[0] (after)"], torch.full_like(out(side), 3))  # type: ignore[arg-type]


@SIDES
def test_views_of_one_memory_stay_so(run: Run) -> None:
    base = torch.zeros(4)

    def model(whole: Tensor, part: Tensor) -> Tensor:
        part.add_(1)
        return whole * 2

    assert out(run(subject(model, base, base[:2]))).tolist() == [2, 2, 0, 0]
    assert base.tolist() == [0, 0, 0, 0]


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.cache: Tensor | None = None
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.total = self.total + x
        self.cache = x if self.cache is None else torch.cat([self.cache, x])
        return self.total + self.calls + len(self.cache)


@SIDES
def test_attributes_and_replaced_buffers_are_put_back(run: Run) -> None:
    model = Counting()
    first = out(run(subject(model, torch.ones(3))))
    assert torch.equal(first, out(run(subject(model, torch.ones(3)))))
    assert model.calls == 0 and model.cache is None and not model.total.any()


def test_modes_gradients_and_defaults_are_put_back() -> None:
    class Rude(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            self.eval()
            torch.set_default_dtype(torch.float64)
            return super().forward(x)

    model = Rude(2, 2)
    model.weight.grad = kept = torch.ones(2, 2)
    x = torch.ones(1, 2)
    run_eager(subject(model, x, input_gradients=True), backward=True)
    assert model.training and model.weight.grad is kept and torch.get_default_dtype() == torch.float32
    assert not x.requires_grad and x.grad is None


@SIDES
def test_a_function_is_asked_for_the_model_that_it_closes_over(run: Run) -> None:
    net, table = nn.BatchNorm1d(2), [torch.zeros(2)]

    def model(x: Tensor) -> Tensor:
        table[0].add_(1)
        return net(x) + table[0]  # type: ignore[no-any-return]

    side = run(subject(model, torch.randn(4, 2)))
    assert side.values is not None
    assert {"net.running_mean (after)", "table[0] (after)"} <= set(side.values.outputs)
    assert not net.running_mean.any() and not table[0].any()  # type: ignore[union-attr, operator]


def test_what_the_program_compiled_itself_runs_eagerly_on_the_eager_side() -> None:
    seen = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        seen.append(gm)
        return gm.forward

    inner = torch.compile(lambda x: x + 1, backend=backend)
    assert out(run_eager(subject(lambda x: inner(x) * 2, torch.ones(2)))).tolist() == [4, 4] and not seen
    run_compiled(
        "ours", subject(torch.compile(nn.Linear(2, 2)), torch.ones(2)), partial(torch.compile, backend=backend)
    )
    assert len(seen) == 1


def test_expanded_inputs_are_no_trouble() -> None:
    assert out(run_eager(subject(lambda x: x + 1, torch.ones(1).expand(4)))).tolist() == [2, 2, 2, 2]


# Gradients


@SIDES
def test_gradients_go_by_the_names_of_parameters_and_inputs(run: Run) -> None:
    x = torch.randn(3, 4, requires_grad=True)
    workload = Workload(nn.Linear(4, 2), (x,), {}, lambda output: output.square().mean())
    side = run(Subject(workload), backward=True)
    assert side.values is not None, side.error
    assert set(side.values.gradients) == {"grad(weight)", "grad(bias)", "grad(args[0])"}
    assert "loss" in side.values.outputs and x.grad is None


@SIDES
def test_without_a_loss_all_outputs_are_differentiated_by_the_same_numbers(run: Run) -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x * 2, x.to(torch.complex64) * 1j, x > 0

    side = run(subject(model, torch.randn(40), input_gradients=True), backward=True)
    assert side.values is not None, side.error
    gradient = side.values.gradients["grad(args[0])"]
    assert isinstance(gradient, Tensor) and (gradient * 8 % 1 == 0).all() and len(gradient.unique()) > 4
    again = run(subject(model, torch.randn(40), input_gradients=True), backward=True)
    assert again.values is not None and torch.equal(gradient, again.values.gradients["grad(args[0])"])  # type: ignore[arg-type]


def test_an_input_that_was_computed_is_walked_back_once_a_side() -> None:
    leaf = torch.ones(2, requires_grad=True)
    held = subject(lambda x: x * 3, leaf * 2)
    for _ in range(2):
        side = run_eager(held, backward=True)
        assert side.values is not None and "grad(args[0])" in side.values.gradients
    assert leaf.grad is None


def test_nothing_to_differentiate_is_the_sides_failure() -> None:
    side = run_eager(subject(lambda x: x > 0, torch.ones(2)), backward=True)
    assert side.result.failure is not None and "nothing to differentiate" in side.result.failure.message


# Failure and runs


def test_a_side_that_raises_keeps_its_reason_and_the_state() -> None:
    def model(x: Tensor) -> Tensor:
        x.zero_()
        raise ValueError("not today")

    x = torch.ones(2)
    side = run_eager(subject(model, x))
    assert side.values is None and side.result.failure is not None and side.result.seconds is not None
    assert (side.result.failure.kind, side.result.failure.message) == ("user", "not today")
    assert side.result.failure.file == __file__ and torch.equal(x, torch.ones(2))


def test_what_a_compiled_program_alone_raises_as_it_runs_is_not_the_programs_own() -> None:
    def backend(gm: GraphModule, inputs: object) -> Callable[..., object]:
        return lambda *given: torch.ops.aten.mm(given[0], torch.ones(2, 2))

    def fails(x: Tensor) -> Tensor:
        return x.view(int(x.sum().isfinite()) + 7)

    report = KernelDiff(torch.sin, torch.randn(3, 4), test=backend).compare()
    failure = report.sides[1].failure
    assert failure is not None and failure.kind == "backend"
    assert failure.hint == "the compiled program alone raises this: eager runs to its end"
    both = [side.failure for side in KernelDiff(fails, torch.randn(3, 4), test="eager").compare().sides]
    assert [failure and failure.kind for failure in both] == ["user", "user"]


def test_runs_of_a_side_that_differ_are_counted() -> None:
    noise = iter(torch.arange(3.0))

    def compile(model: Callable[..., Any]) -> Callable[..., Any]:
        def run(x: Tensor) -> tuple[Tensor, Tensor]:
            once: Tensor = model(x)
            return once, torch.cat([once[:-1], once[-1:] + next(noise)])

        return run

    side = run_compiled("noisy", subject(lambda x: x / 0, torch.tensor([0.0, 1.0])), compile, runs=2)
    first, second = side.variance
    assert first.deterministic and first.runs == 2, "NaN in every run is no difference"
    assert (second.name, second.differing, second.deterministic) == ("out[1]", 0, True), "inf + 1 is inf"
    noise = iter(torch.arange(3.0))
    side = run_compiled("noisy", subject(lambda x: x * 1, torch.zeros(4)), compile, runs=3)
    assert (side.variance[1].differing, side.variance[1].max_abs) == (1, 2.0)


# float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_float64_draws_the_numbers_that_eager_draws(dtype: torch.dtype) -> None:
    def model(x: Tensor) -> Tensor:
        noise = torch.rand(50, dtype=dtype) + torch.randn(50).to(dtype) + torch.empty_like(x).uniform_()
        return F.dropout(x + noise, 0.5) + torch.bernoulli(torch.full_like(x, 0.5)) + torch.randn_like(x)

    held = subject(model, torch.randn(50).to(dtype))
    eager, float64 = run_eager(held), run_float64(held)
    assert out(float64).dtype == torch.float64 and float64.draws
    torch.testing.assert_close(out(eager).double(), out(float64), atol=16 * torch.finfo(dtype).eps, rtol=0)


def normed(x: Tensor, weight: Tensor) -> Tensor:
    """As the transformers' RMS norms: converted back where the weight has fewer bits."""
    wide = x.to(torch.float32) * torch.rsqrt(x.to(torch.float32).pow(2).mean(-1, keepdim=True) + 1e-6)
    return weight * (wide.to(weight.dtype) if weight.dtype in (torch.float16, torch.bfloat16) else wide)


def attended(x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x, mask, 0.3, causal)


DROPPING: dict[str, Callable[[Tensor], Tensor]] = {
    "norm": lambda x: F.dropout(normed(x, torch.ones(8, dtype=x.dtype)), 0.5),
    "type_as": lambda x: F.dropout(x.float().softmax(-1).type_as(x), 0.5),
    "same dtype": lambda x: F.dropout(x.to(x.dtype).mul_(2), 0.5) + x,
    "mask of a scalar": lambda x: F.dropout(torch.where(x > 0, x, torch.finfo(x.dtype).tiny), 0.5),
    "attention": lambda x: attended(x, None, False),
    "causal attention": lambda x: attended(x, None, True),
    "masked attention": lambda x: attended(x, torch.ones(6, 6, dtype=torch.bool).tril(), False),
    "double": lambda x: F.dropout(x.double(), 0.5).to(x.dtype) * 2,
}


@pytest.mark.parametrize("autocast", [False, True], ids=["", "autocast"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", DROPPING)
def test_dropout_is_of_the_programs_dtypes_whatever_leads_there(name: str, dtype: torch.dtype, autocast: bool) -> None:
    def model(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return DROPPING[name](F.linear(x, torch.eye(8, dtype=dtype)))

    held = subject(model, torch.randn(2, 3, 6, 8).to(dtype))
    float64 = run_float64(held)
    assert float64.draws and float64.draws == eager_draws(held)
    low = torch.bfloat16 if autocast else dtype
    torch.testing.assert_close(out(run_eager(held)).double(), out(float64), atol=64 * torch.finfo(low).eps, rtol=0.1)


def test_float64_is_kept_whatever_dtype_is_asked_for() -> None:
    third = torch.tensor(1 / 3)  # closed over: comes in as float32

    def model(x: Tensor, count: Tensor) -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            low = (x.float().bfloat16() @ x.half().to(torch.float32)).type(torch.bfloat16)
        made = [torch.zeros(2), torch.ones(2, dtype=torch.float16), torch.full((2,), 0.1), torch.arange(0, 1, 0.1)]
        return [low, third * 3, count / 3, count.float() / 3, x.to(torch.complex64) * 1j, *made]

    x, count = torch.randn(3, 3), torch.arange(3)
    side = run_float64(subject(model, x, count))
    assert side.values is not None, side.error
    found = [value for value in side.values.outputs.values() if isinstance(value, Tensor)]
    assert {value.dtype for value in found} == {torch.float64, torch.complex128}
    assert torch.equal(found[0], x.double() @ x.double()) and torch.equal(found[3], count.double() / 3)
    assert found[7][0] == 0.1 and third.dtype == torch.float32


def test_what_is_written_to_a_tensor_from_outside_is_found_again() -> None:
    state = {"sum": {"of": torch.zeros(3)}}  # too deep to be found beforehand

    def model(x: Tensor) -> Tensor:
        state["sum"]["of"][1] = 5
        state["sum"]["of"].add_(x)
        return state["sum"]["of"] * 1

    assert out(run_float64(subject(model, torch.ones(3)))).tolist() == [1, 6, 1]
    assert state["sum"]["of"].tolist() == [0, 0, 0]


def test_gradients_in_float64_are_float64s() -> None:
    model = nn.Linear(3, 3).bfloat16()
    side = run_float64(subject(model, torch.randn(2, 3).bfloat16()), backward=True)
    assert side.values is not None and side.values.gradients["grad(weight)"].dtype == torch.float64  # type: ignore[attr-defined]
    assert model.weight.dtype == torch.bfloat16 and model.weight.grad is None


def test_a_branch_that_torch_cond_takes_runs_in_float64() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))  # type: ignore[no-any-return]

    x = torch.ones(3)
    assert torch.equal(out(run_float64(subject(model, x))), x.double().sin())


def test_attention_without_dropout_runs_in_float64_and_with_it_draws_eagers_mask() -> None:
    q = torch.randn(1, 2, 8, 4)
    for dropout in (0.0, 0.5):
        held = subject(lambda q, p=dropout: F.scaled_dot_product_attention(q, q, q, dropout_p=p), q)
        torch.testing.assert_close(out(run_eager(held)).double(), out(run_float64(held)), atol=1e-5, rtol=0)


def test_reading_bits_has_no_meaning_in_float64() -> None:
    side = run_float64(subject(lambda x: x.view(torch.int32), torch.ones(2)))
    assert isinstance(side.error, NotInFloat64) and "bits" in float64_failure(side.error)


def test_an_op_without_a_float64_kernel_is_told() -> None:
    def model(x: Tensor) -> Tensor:
        scale = torch.ones(())
        return torch._scaled_mm(x, x.t(), scale, scale, out_dtype=torch.float32)

    side = run_float64(subject(model, torch.randn(16, 16).to(torch.float8_e4m3fn)))
    assert side.error is not None and float64_failure(side.error).startswith("the program cannot run in float64: ")
    assert "\n" not in float64_failure(side.error)


def test_lent_values_come_back_also_after_an_error() -> None:
    base = torch.arange(4.0)
    part = base[1:3]

    def fail() -> None:
        with float64_copies([base, part]):
            assert base.dtype == part.dtype == torch.float64
            part.zero_()
            assert base.tolist() == [0, 0, 0, 3], "views of one memory are views of one copy"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert base.dtype == part.dtype == torch.float32 and base.tolist() == [0, 1, 2, 3]
    base[1] = 7
    assert part[0] == 7


def test_the_mode_leaves_torchs_settings_as_they_were() -> None:
    with Float64() as mode:
        held = torch.ones(1)
        assert held.dtype == torch.float32 and not mode.draws
    assert held.dtype == torch.float64
    assert torch.ones(1).dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


def test_the_usual_dtype_is_that_of_most_tensors() -> None:
    low = torch.ones(1).bfloat16()
    assert usual_dtype([low, low, torch.ones(1), torch.ones(1, dtype=torch.int64)]) == torch.bfloat16
    assert usual_dtype([]) == torch.float32
