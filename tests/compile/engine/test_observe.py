"""Every launch of a compiled program compared with its nodes: clean runs have no bad kernel, a planted one is found."""

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import torch
import torch._functorch.aot_autograd
from torch import nn
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import CacheBase, PyCodeCache
from torch.nn import functional as F

from idbg.accelerators import registry
from idbg.engine.instrument.wrapper_lines import AFTER, ENTER
from idbg.engine.kerneldiff.kernels.observe import observing
from idbg.schema.diff import KernelError
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.views import remarks
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile
from tests.harness.fresh_caches import own_caches
from tests.harness.observed_launches import first_bad, observe, observe_model

Edit = Callable[[str], str]


def mean_square(output: torch.Tensor) -> torch.Tensor:
    return output.float().square().mean()


def assert_clean(kernels: tuple[KernelError, ...], unobserved: tuple[str, ...] = ()) -> None:
    assert kernels
    for kernel in kernels:
        assert not kernel.bad, kernel
        assert kernel.observed or any(reason in remarks.sentence(kernel.reason) for reason in unobserved), kernel
        if kernel.observed:
            assert kernel.error is not None and kernel.input_error is not None and kernel.buffer
            assert kernel.node and kernel.nodes
        assert kernel.wrapper_line > 0
        assert kernel.graph is not None and kernel.graph.stage == "post_grad"


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.LayerNorm(96), nn.Linear(96, 32))


def conv() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(32, 96), nn.Linear(32, 32), nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, 4, 8).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(mask, float("-inf")).softmax(-1)
        return x + self.out((F.dropout(weights, 0.1, True) @ v).transpose(1, 2).reshape(x.shape))


RANDOM, INSIDE = "random numbers", "steps inside of a node"
CASES = {"mlp": (mlp, (16, 64)), "conv": (conv, (2, 3, 16, 16)), "attention": (Attention, (2, 10, 32))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "dtype"), [("mlp", torch.bfloat16), ("conv", torch.float32), ("attention", torch.bfloat16)], ids=str
)
def test_no_kernel_of_a_clean_training_step_is_bad(case: str, dtype: torch.dtype):
    torch.manual_seed(0)
    make, shape = CASES[case]
    kernels = observe_model(make().to(dtype), (torch.randn(shape, dtype=dtype),), loss=mean_square)
    assert_clean(kernels, (RANDOM, INSIDE))
    assert {kernel.part for kernel in kernels} == {"forward", "backward"}
    assert any(kernel.name.startswith("cpp_fused") for kernel in kernels)


@pytest.mark.slow
def test_a_buffer_that_lives_inside_of_one_kernel_is_not_taken_for_its_output():
    """Its memory has a name in the wrapper, `buf12 = buf9; del buf9  # reuse`, and its value is never stored there."""
    torch.manual_seed(0)
    layers = nn.Linear(8, 8), nn.Softplus(), nn.BatchNorm1d(8), nn.Hardswish(), nn.Linear(8, 8), nn.LogSoftmax(-1)
    assert_clean(observe_model(nn.Sequential(*layers), (torch.randn(5, 8),), loss=mean_square), (INSIDE,))


class Scores(nn.Module):
    """Sizes of its own in a product, a softmax, a mask that is drawn, and a view."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        weights = F.dropout((x @ x.transpose(1, 2) / length).softmax(-1), 0.1, True)
        return self.out((weights @ x).reshape(batch * length, -1))


@pytest.mark.slow
def test_dynamic_shapes_are_observed():
    torch.manual_seed(0)
    kernels = observe_model(Scores(), (torch.randn(3, 7, 32),), loss=mean_square, dynamic=True)
    assert_clean(kernels, (RANDOM,))
    assert {kernel.part for kernel in kernels} == {"forward", "backward"}


def test_extern_calls_and_both_graphs_of_a_break_are_observed():
    def program(x: torch.Tensor) -> torch.Tensor:
        y = (x @ x).relu()
        torch._dynamo.graph_break()
        return (y @ x).sin()

    torch.manual_seed(0)
    kernels = observe_model(program, (torch.randn(24, 24),))
    assert_clean(kernels)
    assert [kernel.frame for kernel in kernels] == ["0/0", "0/0", "1/0", "1/0"]  # in the order of the run
    externs = [kernel for kernel in kernels if kernel.name == "extern_kernels.mm"]
    assert [kernel.node for kernel in externs] == ["mm", "mm"]
    assert all(kernel.file == __file__ and kernel.line for kernel in kernels)


def test_a_gradient_of_stride_zero_between_two_graphs_is_no_end_of_the_observation():
    def program(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        y = w * x.sin()
        torch._dynamo.graph_break()
        return y.sum()

    inputs = (torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True))
    kernels = observe_model(program, inputs, loss=lambda out: out)
    assert_clean(kernels)
    assert {kernel.part for kernel in kernels} >= {"forward", "backward"}


def test_writes_to_inputs_and_parts_of_a_concatenation_are_observed():
    def program(cache: torch.Tensor, x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cache[:, at] = x[:, None] * 2
        joined = torch.cat([x.sin(), (x @ x).cos()], 1)
        return cache.sum(1) @ x, joined @ joined.t()

    torch.manual_seed(0)
    cache, x = torch.randn(8, 5, 8), torch.randn(8, 8)
    before = cache.clone()
    kernels = observe_model(program, (cache, x, torch.tensor([2])))
    assert_clean(kernels)
    expected = before.clone()
    expected[:, 2] = x * 2
    torch.testing.assert_close(cache, expected)  # the program's own write, once


@pytest.mark.usefixtures("two_threads")
def test_a_sum_in_parts_says_why_a_kernel_is_not_observed_or_observes_it():
    torch.manual_seed(0)
    assert_clean(observe_model(lambda x: (x.sum(), x.var(), x.argmax()), (torch.randn(700, 900),)), (INSIDE,))


def test_random_numbers_are_reproduced_from_the_kernels_own_seeds():
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.rand(3, 5) + x, torch.randn(333) * 2, F.dropout(x, 0.5, True) + 1

    kernels = observe_model(program, (torch.zeros(3, 5),))
    assert_clean(kernels, (RANDOM,))
    fused = [kernel for kernel in kernels if kernel.observed]
    assert fused and all(kernel.error is not None and kernel.error < 1e-6 for kernel in fused)


# A kernel that is wrong


def planted(monkeypatch: pytest.MonkeyPatch, edit: Edit) -> None:
    """Every C++ kernel's source is edited on its way to the compiler."""
    original = AsyncCompile.cpp_pybinding

    def cpp_pybinding(self: AsyncCompile, argtypes: list[str], source_code: str, **kwargs: object) -> object:
        return original(self, argtypes, edit(source_code), **kwargs)

    PyCodeCache.cache_clear()
    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", cpp_pybinding)


def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Reductions and products between pointwise kernels, so that memory is used again."""
    first = ((x @ w) * 1.25).softmax(-1)
    second = ((first @ w) * 1.0372 + first).softmax(-1)
    third = ((second @ w) * 1.5).softmax(-1)
    return (third @ w) * 1.75


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_edited_kernel_is_found_in_one_run_and_later_ones_are_not_blamed(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
):
    torch.manual_seed(0)
    inputs = torch.randn(48, 48, dtype=dtype), torch.randn(48, 48, dtype=dtype)
    wrong = "1.5372"
    planted(monkeypatch, lambda source: source.replace("1.0372", wrong).replace("1.03710", "1.53710"))
    kernels = observe_model(chain, inputs)
    place = first_bad(kernels)
    assert place is not None
    bad = kernels[place]
    assert "softmax" in bad.name and bad.nodes
    assert [kernel.bad for kernel in kernels].count(True) == 1, [kernel.name for kernel in kernels if kernel.bad]
    assert bad.error is not None and bad.input_error is not None and bad.error > 10 * bad.input_error
    after = [kernel.error for kernel in kernels[place + 1 :]]
    assert after and all(error is not None and error > 10 * bad.input_error for error in after)
    assert bad.diff is not None and not bad.diff.passed
    assert (bad.file, bad.line) != ("", 0)
    reused = [line for module in PyCodeCache.modules for line in Path(str(module.__file__)).read_text().splitlines()]
    assert any("# reuse" in line for line in reused)  # what this test is about


@pytest.mark.slow
def test_one_wrong_element_of_many_is_found(monkeypatch: pytest.MonkeyPatch):
    def edit(source: str) -> str:
        return re.sub(r"\}\s*$", "    out_ptr0[70001] += 0.01f;\n}\n", source) if "1.0373" in source else source

    torch.manual_seed(0)
    x = torch.randn(400, 400)
    planted(monkeypatch, edit)
    kernels = observe_model(lambda x: (x * 1.0373 + x.cos()) @ x, (x,))
    place = first_bad(kernels)
    assert place == 0
    assert kernels[0].diff is not None and kernels[0].diff.worst is not None
    assert kernels[0].diff.worst.index == (175, 1)


def test_a_wrong_write_to_a_buffer_of_the_module_is_found(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    model = nn.BatchNorm2d(4, momentum=0.0713)
    planted(monkeypatch, lambda source: source.replace("0.0713", "0.0813"))
    kernels = observe_model(model, (torch.randn(4, 4, 8, 8),), loss=mean_square)
    place = first_bad(kernels)
    assert place is not None and kernels[place].node.startswith("copy_")


def edited_by_hand(
    own: pytest.MonkeyPatch, program: Callable[..., object], x: torch.Tensor, edit: Edit
) -> tuple[KernelError, ...]:
    """What is observed once the file of the wrapper that the program's compile left in its cache has been edited."""

    def observed() -> tuple[KernelError, ...]:
        own.setattr(torch._functorch.aot_autograd, "AOT_COUNTER", count(7000))  # as in a fresh process
        PyCodeCache.cache_clear()
        return observe_model(program, (x,))

    assert_clean(observed())
    path = Path(PyCodeCache.modules[-1].__file__)  # type: ignore[arg-type]
    text = path.read_text()
    assert edit(text) != text
    path.write_text(edit(text))
    return observed()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Caches whose files nobody else reads."""
    own_caches(tmp_path, monkeypatch)
    yield monkeypatch
    PyCodeCache.cache_clear()
    CacheBase.get_local_cache_path.cache_clear()


def test_a_wrapper_edited_by_hand_is_found(own: pytest.MonkeyPatch):
    def program(x: torch.Tensor) -> torch.Tensor:
        return ((x @ x) * 1.0374).sin() @ x

    def edit(text: str) -> str:
        return re.sub(r"^( +)(extern_kernels\.mm\(.*out=(\w+)\))$", r"\1\2\n\1\3.mul_(1.01)", text, count=1, flags=re.M)

    torch.manual_seed(0)
    kernels = edited_by_hand(own, program, torch.randn(16, 16), edit)
    assert first_bad(kernels) == 1  # the launch was right, and the next one reads something else


def test_an_edited_argument_of_an_extern_call_is_found_at_that_call(own: pytest.MonkeyPatch):
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(x, x, x, alpha=0.5173).sin()

    torch.manual_seed(0)
    kernels = edited_by_hand(own, program, torch.randn(16, 16), lambda text: text.replace("0.5173", "0.5174"))
    assert first_bad(kernels) == 0 and kernels[0].name == "extern_kernels.addmm"


def test_an_edited_source_of_a_kernel_is_found(own: pytest.MonkeyPatch):
    torch.manual_seed(0)
    x = torch.randn(16, 16)
    kernels = edited_by_hand(
        own, lambda x: (x @ x * 1.0378).cos() @ x, x, lambda text: text.replace("1.0378", "1.0379")
    )
    assert first_bad(kernels) == 1 and kernels[1].name.startswith("cpp_fused")


# What it leaves, and what it refuses


def test_nothing_is_left_behind():
    compiled = torch.compile(lambda x: (x * 1.0375).relu())
    x = torch.randn(8)
    with observing() as observation:
        first = compiled(x)
    watch = observation.watches[0]
    call = getattr(watch.graph.module.call, "__func__", watch.graph.module.call)
    assert not {ENTER, AFTER} & {*call.__code__.co_names}
    assert not {ENTER, AFTER} & vars(watch.graph.module).keys()
    assert watch.references is None
    torch.testing.assert_close(compiled(x), first)


def test_a_program_that_raises_keeps_what_was_seen():
    observed = []

    def run() -> None:
        with observing() as observation:
            observed.append(observation)
            torch.compile(lambda x: x * 1.0376)(torch.randn(8))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert_clean(observed[0].kernels)


def test_a_run_that_compiles_nothing_and_a_cpp_wrapper_are_refused():
    with pytest.raises(BadInput, match="compiled nothing"):
        observe(lambda: None)


@pytest.mark.slow
def test_a_cpp_wrapper_is_refused():
    with pytest.raises(BadInput, match=r"C\+\+ wrapper"):
        observe_model(lambda x: x * 1.0377, (torch.randn(8),), options={"cpp_wrapper": True})


@pytest.mark.slow
def test_in_a_session_kernels_are_those_of_the_captured_code(tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\n"
        "def program():\n"
        "    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))\n"
        "    return model, (torch.randn(4, 16),), lambda out: out.square().sum()\n"
    )
    told = []
    rules, _ = registry.find("mock")
    program, target = Program(str(path), cwd=str(tmp_path)), Target(backend="inductor", rules=rules)
    from idbg.schema import events

    told.append(events.RunStarted(run=1, program=program, target=target))
    jobs = Jobs(told.append)  # type: ignore[arg-type]
    with observing() as observation:
        told.append(jobs.compile(Compile(1, program, target, str(tmp_path))))  # type: ignore[arg-type]
    run = fold(told).runs[1]
    assert run.failure is None
    kernels = observation.kernels
    assert_clean(kernels)
    for kernel in kernels:
        code = run.codes[kernel.frame, kernel.part]
        known = [(k.name, call) for k in code.kernels for call in k.calls]
        assert (kernel.name, kernel.handle, kernel.wrapper_line) in [(n, c.handle, c.line) for n, c in known]
        graph = run.graphs[kernel.graph]  # type: ignore[index]
        assert set(kernel.nodes) <= graph.by_name.keys() and kernel.node in graph.by_name
