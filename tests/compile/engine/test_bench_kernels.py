"""Every launch of a compiled program is timed, with the work that it does; what the sum misses is told too."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from msgspec.structs import replace
from torch import nn

from idbg.engine.bench import latency
from idbg.engine.bench import launches as launches_module
from idbg.engine.bench.kernels import time_kernels
from idbg.engine.bench.launches import AROUND, launches
from idbg.engine.bench.peaks import BUSY, peaks, place, unmeasured
from idbg.engine.compat import comparing
from idbg.engine.instrument.wrapper_code import output_code
from idbg.schema.code import OutputCode
from idbg.schema.errors import BadInput
from idbg.schema.kernel_times import KernelTimes, Peaks

CPU = torch.device("cpu")
NAP = 2e-3  # seconds


class Clock:
    """Time that passes only where somebody sleeps, so that no other process takes any of it."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def perf_counter(self) -> float:
        return self.now

    def perf_counter_ns(self) -> int:
        return round(1e9 * self.now)


@torch.library.custom_op("idbg_kernel_times::nap", mutates_args=())
def nap(x: torch.Tensor) -> torch.Tensor:
    time.sleep(NAP)
    return x.clone()


@nap.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """More than one wait for each other where other processes use the machine."""
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where the machine's peaks are known, so that no test waits for them."""
    known = replace(
        unmeasured(CPU),
        copy_bytes_per_s=1e10,
        matmul_flops_per_s={"float32": 1e11},
        launch_us={"cpp": 1e-3, "extern": 1e-3},
    )
    place(known, tmp_path).write_bytes(msgspec.json.encode(known))
    return tmp_path


def dense(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).sin()


def mean_square(output: torch.Tensor) -> torch.Tensor:
    return output.square().mean()


def times_of(model: Callable[..., Any], *args: object, cache: Path, runs: int = 8, **more: object) -> KernelTimes:
    return time_kernels(model, args, runs=runs, cache=cache, **more)  # type: ignore[arg-type]


def test_each_launch_is_timed_with_its_bytes_and_flops(cache: Path):
    found = times_of(dense, torch.randn(96, 128), torch.randn(128, 64), cache=cache)
    product, sine = found.kernels
    assert (product.kind, sine.kind) == ("extern", "cpp")
    assert product.bytes == 4 * (96 * 128 + 128 * 64 + 96 * 64)
    assert product.flops == 2 * 96 * 128 * 64
    assert sine.bytes == 2 * 4 * 96 * 64  # in place: read and written
    assert sine.flops is None
    assert {kernel.frame for kernel in found.kernels} == {"0/0"}
    assert {kernel.part for kernel in found.kernels} == {"inference"}
    for kernel in found.kernels:
        assert kernel.launches == 1 and len(kernel.samples_us) == found.runs == 8
        assert kernel.dtype == "float32" and kernel.device == "cpu"
        assert 0 < kernel.median_us <= kernel.p95_us
        assert kernel.share == pytest.approx(kernel.median_us / found.total_us)
        assert kernel.peak_bytes_per_s == 1e10 and kernel.peak_flops_per_s == 1e11
    assert found.sum_us + found.missed_us == pytest.approx(found.total_us)
    assert found.untimed == () and found.kind == "forward"


def test_handles_and_nodes_are_those_of_the_output_code(cache: Path):
    codes: list[OutputCode] = []
    with comparing.observe_uncached_graphs(lambda graph: codes.append(output_code(graph)), pytest.fail):
        found = times_of(dense, torch.randn(8, 8), torch.randn(8, 8), cache=cache)
    listed = {(kernel.name, call.handle, call.line, call.nodes) for kernel in codes[0].kernels for call in kernel.calls}
    assert {(kernel.name, kernel.handle, kernel.line, kernel.nodes) for kernel in found.kernels} == listed


@pytest.mark.slow
def test_a_training_step_times_forward_and_backward(cache: Path):
    model = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 16))
    found = times_of(model, torch.randn(24, 64), loss=mean_square, cache=cache)
    assert found.kind == "training"
    parts = [kernel.part for kernel in found.kernels]
    assert parts == sorted(parts, reverse=True) and set(parts) == {"forward", "backward"}
    # forward: two products; backward: of each the weight's gradient, of the second its input's too
    first, second = 2 * 24 * 64 * 32, 2 * 24 * 32 * 16
    assert sum(kernel.flops or 0 for kernel in found.kernels) == 2 * first + 3 * second
    (bias,) = {kernel.bytes for kernel in found.kernels if kernel.flops == first and kernel.part == "forward"}
    assert bias == 4 * (24 * 64 + 64 * 32 + 32 + 24 * 32)  # expanded, and counted once
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_slow_kernel_takes_its_time_and_what_is_in_none_is_missed(cache: Path, monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    for module in (latency, launches_module, sys.modules[__name__]):
        monkeypatch.setattr(module, "time", clock)

    @torch.compiler.disable
    def in_python(x: torch.Tensor) -> torch.Tensor:
        time.sleep(NAP)
        return x

    found = times_of(lambda x: nap(in_python(nap(x))), torch.randn(4, 4), cache=cache)
    naps = [kernel for kernel in found.kernels if "nap" in kernel.name]
    assert len(naps) == 2
    assert [kernel.median_us for kernel in naps] == pytest.approx([1e6 * NAP] * 2)
    assert found.sum_us == pytest.approx(2e6 * NAP)
    assert found.missed_us == pytest.approx(1e6 * NAP)
    assert found.total_us == pytest.approx(3e6 * NAP)


def test_launches_of_one_place_are_counted(cache: Path):
    def thrice(model: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        compiled = torch.compile(model)
        return lambda x, w: compiled(compiled(compiled(x, w), w), w)

    found = times_of(dense, torch.randn(16, 16), torch.randn(16, 16), compile=thrice, cache=cache)
    assert [kernel.launches for kernel in found.kernels] == [3, 3]
    assert found.kernels[0].flops == 2 * 16**3  # of one launch
    assert found.kernels[0].share == pytest.approx(3 * found.kernels[0].median_us / found.total_us)


@pytest.mark.slow
def test_the_branch_that_is_taken_is_timed_and_the_other_is_told(cache: Path):
    def program(x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        return torch.cond(choice.sum() > 0, lambda x: x.sin() @ x, lambda x: (x.cos() @ x @ x).tanh(), (x,)) + 1

    found = times_of(program, torch.randn(16, 16), torch.ones(3), cache=cache)
    assert sum("extern_kernels.mm" in kernel.name for kernel in found.kernels) == 1
    assert sum("extern_kernels.mm" in name for name in found.untimed) == 2


def test_an_attention_is_counted_and_what_is_computed_op_by_op_is_not(cache: Path):
    def attention(q: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, q, q).sort(-1).values

    found = times_of(attention, torch.randn(1, 2, 32, 16), cache=cache)
    flops = {kernel.name: kernel.flops for kernel in found.kernels}
    assert [count for name, count in flops.items() if "attention" in name] == [2 * 2 * 2 * 32 * 32 * 16]
    assert [count for name, count in flops.items() if "sort" in name] == [None]


@pytest.mark.slow
def test_packed_weights_are_counted_as_the_layers_that_they_were(cache: Path):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 14 * 14, 64), nn.ReLU()).eval()
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        found = times_of(model, torch.randn(32, 3, 16, 16), cache=cache)
    flops = [kernel.flops for kernel in found.kernels if kernel.kind == "extern"]
    assert flops == [2 * 32 * 8 * 14 * 14 * 3 * 9, 2 * 32 * 8 * 14 * 14 * 64]
    assert any("mkl" in kernel.name for kernel in found.kernels)


def test_dynamic_shapes_are_counted_as_they_are(cache: Path):
    compile = torch.compile(dense, dynamic=True)
    found = times_of(dense, torch.randn(24, 8), torch.randn(8, 40), compile=lambda _: compile, cache=cache)
    assert [kernel.flops for kernel in found.kernels] == [2 * 24 * 8 * 40, None]


def test_afterwards_nothing_is_hooked_and_nothing_is_set(cache: Path):
    compiled = torch.compile(dense)
    args = torch.randn(8, 8), torch.randn(8, 8)
    settings = torch._inductor.config.save_config_portable()
    graphs: list[comparing.InductorGraph] = []
    with comparing.observe_uncached_graphs(graphs.append, pytest.fail):
        times_of(dense, *args, compile=lambda _: compiled, cache=cache)
    (graph,) = graphs
    assert torch._inductor.config.save_config_portable() == settings
    assert AROUND not in vars(graph.module)
    function = getattr(graph.module.call, "__func__", graph.module.call)
    assert AROUND not in function.__code__.co_names
    torch.testing.assert_close(compiled(*args), dense(*args))


def test_each_launch_goes_through_what_is_given_and_its_errors_come_out():
    compiled = torch.compile(dense)
    args = torch.randn(8, 8), torch.randn(8, 8)
    numbers: list[int] = []

    def around(number: int, call: Callable[..., object], *given: object, **named: object) -> object:
        numbers.append(number)
        if len(numbers) > 2:
            raise ArithmeticError("the third")
        return call(*given, **named)

    with launches() as found:
        compiled(*args)
        with found.through(around):
            torch.testing.assert_close(compiled(*args), dense(*args))
            with pytest.raises(ArithmeticError, match="the third"):
                compiled(*args)
        compiled(*args)
    assert numbers == [0, 1, 0]


@pytest.mark.parametrize(
    ("compile", "said"),
    [
        (lambda model: torch.compile(model, backend="aot_eager"), "no kernel of Inductor's ran"),
        (lambda model: torch.compile(model, options={"cpp_wrapper": True}), "C\\+\\+ wrapper"),
    ],
)
@pytest.mark.slow
def test_where_no_launch_can_be_timed_it_says_why(compile: Callable[..., object], said: str, cache: Path):
    with pytest.raises(BadInput, match=said):
        times_of(dense, torch.randn(8, 8), torch.randn(8, 8), compile=compile, cache=cache)


def test_no_runs_are_refused(cache: Path):
    with pytest.raises(BadInput, match="in 0 runs"):
        times_of(dense, torch.randn(8, 8), torch.randn(8, 8), runs=0, cache=cache)


# The machine's peaks


def test_peaks_are_read_where_they_were_kept(cache: Path):
    assert peaks(CPU, cache).copy_bytes_per_s == 1e10


def test_a_broken_file_of_peaks_is_measured_anew(cache: Path):
    path = place(unmeasured(CPU), cache)
    path.write_bytes(broken := b'{"device": 1}')
    found = peaks(CPU, cache)
    assert found.copy_bytes_per_s is not None and 1e8 < found.copy_bytes_per_s < 1e12
    assert found.matmul_flops_per_s["float32"] > 1e8
    assert all(0 < found.launch_us[kind] < 1e4 for kind in ("cpp", "extern"))
    if (found.others or 0) <= BUSY:
        assert msgspec.json.decode(path.read_bytes(), type=Peaks) == found
    else:  # a busy machine's are not kept
        assert path.read_bytes() == broken


def test_peaks_are_those_of_a_number_of_threads(tmp_path: Path):
    one = place(unmeasured(CPU), tmp_path)
    torch.set_num_threads(2)
    assert place(unmeasured(CPU), tmp_path) != one


# On a GPU


@pytest.fixture
def gpu() -> str:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    return "cuda"


@pytest.mark.gpu
def test_on_a_gpu_kernels_take_the_gpus_time_and_not_the_processors(gpu: str, tmp_path: Path):
    x, w = torch.randn(2048, 1024, device=gpu), torch.randn(1024, 2048, device=gpu)
    found = times_of(dense, x, w, cache=tmp_path, runs=20)
    product, sine = found.kernels
    assert (product.kind, sine.kind) == ("extern", "triton")
    assert product.device == sine.device == "cuda:0"
    assert product.flops == 2 * 2048 * 1024 * 2048
    assert sine.bytes == 2 * 4 * 2048 * 2048
    assert found.peaks.copy_bytes_per_s and set(found.peaks.matmul_flops_per_s) == {"float32", "bfloat16", "float16"}
    assert product.of_compute is not None and 0.2 < product.of_compute < 1.2
    assert sine.of_memory is not None and sine.of_memory > 0.2
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(100):
        torch.mm(x, w)
    end.record()
    torch.cuda.synchronize()
    assert product.median_us == pytest.approx(10 * begin.elapsed_time(end), rel=0.5)  # of one, in microseconds
    assert found.sum_us < 1.2 * found.total_us


@pytest.mark.gpu
def test_on_a_gpu_a_small_kernel_is_launch_bound_and_what_python_takes_is_missed(gpu: str, tmp_path: Path):
    @torch.compiler.disable
    def in_python(x: torch.Tensor) -> torch.Tensor:
        time.sleep(NAP)
        return x

    found = times_of(lambda x: in_python((x @ x).sin()).cos(), torch.randn(8, 8, device=gpu), cache=tmp_path, runs=20)
    assert {kernel.bound for kernel in found.kernels} == {"launch"}
    assert found.sum_us < 100
    assert found.missed_us > 0.9e6 * NAP


@pytest.mark.gpu
def test_on_a_gpu_a_training_step_is_timed(gpu: str, tmp_path: Path):
    model = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 16)).to(gpu)
    found = times_of(model, torch.randn(24, 64, device=gpu), loss=mean_square, cache=tmp_path)
    assert {kernel.part for kernel in found.kernels} == {"forward", "backward"}
    assert {kernel.kind for kernel in found.kernels} == {"extern", "triton"}
    assert all(kernel.median_us > 0 and kernel.empty_us for kernel in found.kernels)


@pytest.mark.gpu
def test_on_a_gpu_kernels_of_the_processor_are_timed_by_its_clock(gpu: str, tmp_path: Path):
    found = times_of(
        lambda x, y: (nap(x), (y @ y).sin()), torch.randn(4, 4), torch.randn(8, 8, device=gpu), cache=tmp_path
    )
    (slow,) = (kernel for kernel in found.kernels if "nap" in kernel.name)
    assert slow.device == "cpu" and slow.median_us >= 1e6 * NAP
    assert slow.peak_bytes_per_s is None
