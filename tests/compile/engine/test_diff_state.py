"""What a program appends to, counts or optimizes is put back after each side, where torch does not do it."""

import functools
import time
import warnings
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.kerneldiff.sides import python_state
from idbg.engine.kerneldiff.sides.run import run_eager
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.program.load import Workload
from idbg.schema.remarks import Remark, RemarkKind
from idbg.views.diff import headline
from tests.harness.traced import is_traced

COUNT = torch.zeros(1)
CALLS: list[int] = []
SEEN: dict[str, int] = {"calls": 0}


def run(model: object, *args: object) -> None:
    side = run_eager(Subject(Workload(model, args, grad=True)))  # type: ignore[arg-type]
    assert side.error is None, side.error


class Trainer:
    def __init__(self) -> None:
        self.model = nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 0.1)
        self.steps = 0

    def step(self, x: Tensor) -> Tensor:
        self.steps += 1
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    __call__ = step


@pytest.mark.parametrize("how", ["method", "object"])
def test_a_training_step_leaves_its_optimizer_as_it_was(how: str) -> None:
    trainer = Trainer()
    trainer.step(torch.ones(2, 3))
    moments = [state["exp_avg"].clone() for state in trainer.optimizer.state.values()]
    weight = trainer.model.weight.detach().clone()
    run(trainer.step if how == "method" else trainer, torch.randn(2, 3))
    assert trainer.steps == 1 and torch.equal(trainer.model.weight, weight)
    for state, before in zip(trainer.optimizer.state.values(), moments, strict=True):
        assert torch.equal(state["exp_avg"], before) and state["step"] == 1


def test_an_optimizer_that_never_stepped_has_no_state_after() -> None:
    trainer = Trainer()
    run(trainer.step, torch.randn(2, 3))
    assert not trainer.optimizer.state


class Appending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = [1]
        self.last: deque[int] = deque([1, 2], maxlen=2)
        self.names: set[str] = set()
        self.by_name: dict[str, int] = {"a": 1, "b": 2}

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(2)
        self.last.append(3)
        self.names.add("x")
        self.by_name["a"] = 5
        return x + len(self.seen)


def test_what_a_module_appends_to_is_put_back_and_stays_the_same_object() -> None:
    model = Appending()
    seen = model.seen
    run(model, torch.ones(2))
    assert model.seen is seen and seen == [1] and list(model.last) == [1, 2]
    assert not model.names and model.by_name == {"a": 1, "b": 2}


def test_what_a_function_appends_to_outside_is_put_back() -> None:
    def model(x: Tensor) -> Tensor:
        CALLS.append(1)
        SEEN["calls"] += 1
        return x * SEEN["calls"]

    run(model, torch.ones(2))
    assert not CALLS and SEEN == {"calls": 0}


def note(x: Tensor) -> None:
    CALLS.append(1)
    COUNT.add_(x.numel())


def test_what_a_module_changes_outside_of_it_is_put_back() -> None:
    class Counting(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return self.counted(x)

        def counted(self, x: Tensor) -> Tensor:
            SEEN["calls"] += 1
            note(x)
            return x * SEEN["calls"]

    run(nn.Sequential(nn.Tanh(), Counting()), torch.ones(2))
    assert not CALLS and SEEN == {"calls": 0} and COUNT.item() == 0


class Layer:
    def __init__(self) -> None:
        self.started = False

    def update(self, keys: Tensor) -> Tensor:
        """Tensors are replaced, as transformers' DynamicCache does."""
        self.keys = torch.cat([self.keys, keys]) if self.started else keys
        self.started = True
        return self.keys


class Cache:
    def __init__(self) -> None:
        self.layers: list[Layer] = []

    def update(self, keys: Tensor) -> Tensor:
        if not self.layers:
            self.layers.append(Layer())
        return self.layers[0].update(keys)


class Caching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = Cache()

    def forward(self, x: Tensor, cache: Cache) -> Tensor:
        return self.own.update(x).sum() + cache.update(x).sum()


@pytest.mark.parametrize("is_new", [False, True])
def test_a_cache_among_the_arguments_or_of_a_module_is_put_back(is_new: bool) -> None:
    model, cache = Caching(), Cache()
    if not is_new:
        model(torch.ones(2), cache)
    before = [vars(held.layers[0]).copy() if held.layers else None for held in (model.own, cache)]
    run(model, torch.ones(2), cache)
    after = [vars(held.layers[0]).copy() if held.layers else None for held in (model.own, cache)]
    assert [each and (each["started"], id(each["keys"])) for each in after] == [
        each and (each["started"], id(each["keys"])) for each in before
    ]


def test_the_sides_of_a_comparison_begin_with_the_same_cache() -> None:
    model, cache = Caching().eval(), Cache()
    model(torch.ones(2), cache)
    report = ModelDiff(model, (torch.ones(2), cache), test="aot_eager", per_kernel=True).begin().run()
    assert report.verdict == "passed", report
    assert cache.layers[0].keys.shape == (2,) and cache.layers[0].keys.dtype == torch.float32


def test_a_buffer_to_which_what_needs_a_gradient_was_added_is_put_back() -> None:
    class Totalling(nn.Module):
        total: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            hidden: Tensor = self.linear(x)
            self.total.add_(hidden.sum(0))
            return hidden

    model = Totalling()
    run(model, torch.ones(2, 3))
    assert model.total.is_leaf and not model.total.requires_grad and not model.total.any()


class Registry:
    """State of a class, and of an object without attributes of its own."""

    seen: ClassVar[list[int]] = []
    calls = 0
    __slots__ = ("last",)

    def note(self, value: int) -> None:
        Registry.seen.append(value)
        Registry.calls += 1
        self.last = value


REGISTRY = Registry()
LATEST: object = None


def test_state_of_classes_slots_globals_and_functions_is_put_back() -> None:
    def counted(x: Tensor) -> Tensor:
        vars(helper)["calls"] = vars(helper).get("calls", 0) + 1
        return x

    def helper(x: Tensor) -> Tensor:
        global LATEST
        LATEST = [x]
        REGISTRY.note(x.shape[0])
        return x

    vars(helper)["calls"] = 5
    log: list[int] = []

    class Probe:
        def note(self) -> None:
            log.append(1)

    def model(x: Tensor) -> Tensor:
        Probe().note()
        return counted(helper(x)) + 1

    run(model, torch.ones(2))
    assert not log and LATEST is None and not hasattr(REGISTRY, "last")
    assert Registry.seen == [] and Registry.calls == 0 and vars(helper)["calls"] == 5


def lost(x: Tensor) -> Tensor:
    if not is_traced():
        REGISTRY.note(x.shape[0])
    return x + 1


def added(x: Tensor) -> Tensor:
    if is_traced():
        CALLS.append(1)
    return x + 1


def another(x: Tensor) -> Tensor:
    SEEN["calls"] = 7 if is_traced() else 1
    return x + 1


@pytest.mark.parametrize(
    ("model", "left"),
    [
        (lost, {"Registry.seen": ("[]", "[2]"), "Registry.calls": ("0", "1"), "REGISTRY.last": ("absent", "2")}),
        (added, {"CALLS": ("[1]", "[]")}),
        (another, {"SEEN['calls']": ("7", "1")}),
    ],
)
def test_a_side_effect_that_one_side_lacks_is_a_finding_of_its_own(
    model: Callable[[Tensor], Tensor], left: dict[str, tuple[str, str]]
) -> None:
    report = ModelDiff(model, (torch.ones(2),), test="aot_eager", per_kernel=model is lost).compare()
    assert report.verdict == "failed" and report.only_effects_differ, report
    notes = {diff.name.removesuffix(" (after)"): diff.note for diff in report.outputs if diff.failed_by == ("effect",)}
    assert notes == {name: Remark("effect since", wanted, found, "Dynamo") for name, (found, wanted) in left.items()}
    assert f"{len(left)} side effect" in headline(report)
    stage = report.first_wrong_stage
    assert (stage is not None and stage.stage == "dynamo" and not report.culprit) is (model is lost)
    assert not CALLS and SEEN == {"calls": 0} and Registry.seen == [] and not hasattr(REGISTRY, "last")


def warning(x: Tensor) -> Tensor:
    if not is_traced():
        warnings.warn("no mask is used", stacklevel=1)
    return nn.functional.softmax(x) + 1  # type: ignore[call-overload]  # torch warns in the name of this line


def test_a_warning_of_the_program_that_one_side_lacks_is_a_finding_of_its_own() -> None:
    with warnings.catch_warnings(record=True) as shown:
        report = ModelDiff(warning, (torch.ones(2),), test="aot_eager").compare()
    (found,) = [diff for diff in report.outputs if diff.failed]
    assert found.name == "UserWarning: 'no mask is used'" and found.failed_by == ("warnings",)
    assert found.note == Remark("warnings since", "1", "0", "Dynamo")
    assert any("no mask" in str(each.message) for each in shown or ())


def by_request(x: Tensor) -> Tensor:
    if not torch.compiler.is_compiling():
        CALLS.append(1)
    return x + 1


STEPS = iter(range(10_000))


@torch.compiler.disable
def by_chance(x: Tensor) -> Tensor:
    CALLS.append(next(STEPS))
    return x + 1


@torch.library.custom_op("idbg_state::copied", mutates_args=())
def copied(x: Tensor) -> Tensor:
    return x.clone()


@copied.register_fake
def _(x: Tensor) -> Tensor:
    CALLS.append(1)
    return torch.empty_like(x)


@pytest.mark.parametrize(("model", "why"), [(by_request, "asks compiler"), (by_chance, "eager's effects vary")])
def test_a_side_effect_that_may_be_right_is_not_judged(model: Callable[[Tensor], Tensor], why: RemarkKind) -> None:
    report = ModelDiff(model, (torch.ones(2),), test="aot_eager").compare()
    assert report.passed and Remark("effects not judged", "CALLS", (Remark(why),)) in report.notes
    assert "some side effects not judged" in headline(report)
    assert not CALLS


def test_a_side_effect_of_compiling_is_not_judged() -> None:
    def model(x: Tensor) -> Tensor:
        if x.dim() > 1:
            CALLS.clear()  # it is never called: a guard on what compiling changes would compile again each time
        return copied(x) + 1

    report = ModelDiff(model, (torch.ones(2),), test="aot_eager").compare()
    assert report.passed and Remark("effects not judged", "CALLS", (Remark("only while compiling"),)) in report.notes


def test_state_beyond_the_limit_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_state, "_OBJECTS", 2)
    report = ModelDiff(added, (torch.ones(2),), test="aot_eager").compare()
    assert report.not_judged == "some side effects", report
    CALLS.clear()


@functools.lru_cache
def table(size: int) -> Tensor:
    CALLS.append(size)
    return torch.ones(size)


LOSSES: list[float] = []


def right(x: Tensor) -> Tensor:
    """What each side may leave otherwise without an error: roundings, addresses, times, results of a cache."""
    LOSSES.append((x.sin() * 1e3).sum().item())
    SEEN["at"] = id(x)
    SEEN["time"] = time.time_ns()
    SEEN["text"] = f"loss {LOSSES[-1]}"  # type: ignore[assignment]
    Registry.calls += 1
    return x + table(x.shape[0])


def test_right_side_effects_are_not_accused_and_are_left_as_they_were() -> None:
    table(64)
    CALLS.clear()
    report = ModelDiff(right, (torch.randn(64),), test="aot_eager").compare()
    assert report.passed and not report.not_judged, report
    assert not LOSSES and SEEN == {"calls": 0} and Registry.calls == 0 and not CALLS


SWITCHES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "deterministic": (torch.are_deterministic_algorithms_enabled, lambda: torch.use_deterministic_algorithms(True)),
    "matmul precision": (torch.get_float32_matmul_precision, lambda: torch.set_float32_matmul_precision("medium")),
    "attention": (torch.backends.cuda.math_sdp_enabled, lambda: torch.backends.cuda.enable_math_sdp(False)),
    "one precision": (
        lambda: torch.backends.cuda.matmul.fp32_precision,
        lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    ),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_that_a_side_sets_is_before_each_side_as_it_was(name: str) -> None:
    get, put = SWITCHES[name]
    before: object = get()
    found: SimpleQueue[object] = SimpleQueue()  # no container whose state a comparison restores

    @torch.compiler.disable
    def switched(x: Tensor) -> Tensor:
        found.put(get())
        put()
        return x

    report = ModelDiff(lambda x: switched(x + 1) * 2, (torch.ones(2),), test="aot_eager").compare()
    values = [found.get() for _ in range(found.qsize())]
    assert report.passed and len(values) >= 3 and set(values) == {before} and get() == before
