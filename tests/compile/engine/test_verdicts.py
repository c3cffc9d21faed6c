"""The verdicts that the earlier system has and that torch has to be asked for, through the Python API."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

import idbg
from idbg.constraints import Constraint
from idbg.constraints.alignment import Alignment
from idbg.constraints.dtype import Dtype
from idbg.constraints.layout import Layout
from idbg.constraints.memory import Memory
from idbg.constraints.peak_memory import PeakMemory
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.runs import fold
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile

Function = Callable[..., torch.Tensor]


def run(function: Function, *inputs: torch.Tensor, backend: Any, dynamic: bool | None = None) -> torch.Tensor:
    return torch.compile(function, backend=backend, dynamic=dynamic)(*inputs)


def refusal(function: Function, *inputs: torch.Tensor, backend: Any) -> str:
    """What strict mode says; the test fails if it accepts."""
    with pytest.raises(Exception, match="violation") as caught:
        run(function, *inputs, backend=backend)
    chain: list[BaseException] = [caught.value]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(inner)
    assert any(isinstance(link, idbg.ConstraintViolation) for link in chain)
    return str(caught.value)


@pytest.fixture
def mock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The mock backend as the environment configures it."""

    def configured(**environment: object) -> object:
        for name, value in environment.items():
            monkeypatch.setenv(f"MOCK_{name}", str(value))
        return idbg.mock_backend

    return configured


def aot(*constraints: Constraint, strict: bool) -> Any:
    return idbg.aot_mock_backend(strict=strict, constraints=constraints)


def test_01_a_misaligned_size_is_refused_by_dimension(mock):
    text = refusal(lambda x: x * 2, torch.randn(10), backend=mock(ALIGNMENT=16))
    assert "alignment" in text
    assert "dim 0 is 10" in text


def test_02_a_warning_lets_it_run(mock):
    assert run(lambda x: x * 2, torch.randn(10), backend=mock(ALIGNMENT=16, STRICT=0)).shape == (10,)


def test_03_alignment_8_refuses_10_and_accepts_16(mock):
    backend = mock(ALIGNMENT=8)
    refusal(lambda x: x + 1, torch.randn(10, 10), backend=backend)
    torch._dynamo.reset()
    assert run(lambda x: x + 1, torch.randn(16, 16), backend=backend).shape == (16, 16)


def test_04_a_transposed_view_is_not_contiguous(mock):
    assert "contiguous" in refusal(lambda x: x.transpose(0, 1) + 1, torch.randn(10, 10), backend=mock())


def test_05_float64_is_refused_by_dtype(mock):
    text = refusal(lambda x: x + 1, torch.randn(8, 8, dtype=torch.float64), backend=mock())
    assert "dtype" in text
    assert "float64" in text


def test_06_a_tensor_over_the_limit_is_refused_with_both_sizes(mock):
    text = refusal(lambda x: x + 1, torch.randn(100, 100), backend=mock(MAX_MEMORY=1024))
    assert re.search(r"40,?000 bytes", text)
    assert re.search(r"1,?024 bytes", text)


def test_07_the_defaults_accept_an_add(mock):
    x = torch.randn(10, 10)
    torch.testing.assert_close(run(lambda x: x + x, x, backend=mock(ALIGNMENT=1)), x + x)


def test_08_aot_refuses_float64_where_only_float32_is_allowed():
    backend = aot(Dtype(allowed=("float32",)), strict=True)
    assert "float64" in refusal(lambda x: x.sin().cos(), torch.randn(4, 4, dtype=torch.float64), backend=backend)


@pytest.mark.slow
def test_09_aot_warns_and_runs_it():
    x = torch.randn(4, 4, dtype=torch.float64)
    backend = aot(Dtype(allowed=("float32",)), strict=False)
    torch.testing.assert_close(run(lambda x: x.sin().cos(), x, backend=backend), x.sin().cos())
    assert {violation.rule for violation in backend.violations} == {"dtype"}


def test_10_aot_refuses_a_misaligned_size():
    assert "alignment" in refusal(lambda x: x + 1, torch.randn(3, 3), backend=aot(Alignment(multiple=8), strict=True))


@pytest.mark.slow
def test_11_aot_warns_and_runs_a_dynamic_size():
    backend = aot(Alignment(multiple=8), strict=False)
    assert run(lambda x: x + 1, torch.randn(5, 5), backend=backend, dynamic=True).shape == (5, 5)


def test_12_aot_refuses_a_denied_overload():
    backend = aot(UnsupportedOps(deny=("aten.sin.default",)), strict=True)
    assert "sin" in refusal(torch.sin, torch.randn(4), backend=backend)


def test_13_aot_refuses_a_tensor_over_the_limit():
    text = refusal(lambda x: x + 1, torch.randn(128, 128), backend=aot(Memory(max_bytes=1024), strict=True))
    assert "memory" in text


def test_14_every_broken_rule_is_named_at_once():
    rules = (Dtype(allowed=("float32",)), Alignment(multiple=4), UnsupportedOps(deny=("cos",)))
    text = refusal(lambda x: torch.cos(x + 1), torch.randn(3, 3, dtype=torch.float64), backend=aot(*rules, strict=True))
    assert all(rule in text for rule in ("dtype", "alignment", "unsupported_ops"))


@pytest.mark.slow
def test_15_forward_and_backward_have_kernels(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n"
        "def program():\n"
        "    layers = [torch.randn(512, 512, requires_grad=True) for _ in range(3)]\n"
        "    def model(x):\n"
        "        for layer in layers:\n"
        "            x = torch.relu(x @ layer)\n"
        "        return x.sum()\n"
        "    return model, (torch.randn(512, 512),), lambda out: out\n"
    )
    told: list[events.SessionEvent] = []
    request = Compile(1, Program(str(tmp_path / "model.py")), Target("aot"), str(tmp_path))
    told.append(events.RunStarted(run=1, program=request.program, target=request.target))
    assert Jobs(told.append).compile(request).failure is None
    found = {kernel.part for kernel in fold(told).runs[1].kernels if kernel.source}
    assert found == {"forward", "backward"}


def test_21_a_refusal_names_a_repro_that_is_new(mock):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()).double()
    text = refusal(model, torch.randn(4, 16, dtype=torch.float64), backend=mock())
    found = re.search(r"repro: (\S+\.py)", text)
    assert found
    assert Path(found[1]).is_file()


def test_31_a_denied_convolution_is_refused_through_torch_compile(mock):
    assert "convolution" in refusal(torch.nn.Conv2d(3, 4, 3), torch.randn(1, 3, 8, 8), backend=mock())


def test_40_a_repro_shows_the_same_violation_in_a_fresh_process(mock):
    text = refusal(torch.nn.Conv2d(3, 4, 3), torch.randn(1, 3, 8, 8), backend=mock())
    script = Path(re.search(r"repro: (\S+\.py)", text)[1])  # type: ignore[index]
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "REPRODUCED unsupported_ops" in done.stdout
    assert (script.parent / "tensors.safetensors").stat().st_size > 3 * 4 * 9 * 4, "the weights are beside it"
    assert len(script.read_text()) < 4_000, "and not in it"


def test_41_three_refusals_in_one_second_are_three_repros(mock):
    backend = mock(ALIGNMENT=16)
    for _ in range(3):
        torch._dynamo.reset()
        refusal(lambda x: x * 2, torch.randn(10), backend=backend)
    assert len(list(Path("debug_artifacts/repros").glob("*/repro.py"))) == 3


def test_43_no_constraints_are_no_checks():
    x = torch.randn(3, 3, dtype=torch.float64)
    backend = idbg.backend("mock", strict=True, constraints=[])
    torch.testing.assert_close(run(torch.nn.Identity(), x, backend=backend), x)
    torch.testing.assert_close(run(lambda x: x.cos().t() + 1, x, backend=backend), x.cos().t() + 1)


def test_44_a_symbolic_size_is_checked_at_its_hint_and_says_so():
    backend = idbg.backend("mock", strict=False, constraints=[Alignment(multiple=16)])
    run(lambda x: x * 2, torch.randn(10), backend=backend, dynamic=True)
    assert any("hint 10" in violation.found for violation in backend.violations)


def test_45_channels_last_is_accepted_where_the_accelerator_takes_it():
    image = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    refusal(lambda x: x * 2, image, backend=aot(Layout(formats=("contiguous",)), strict=True))
    torch._dynamo.reset()
    takes_it = idbg.backend("mock", strict=True, constraints=[Layout(formats=("contiguous", "channels_last"))])
    assert run(lambda x: x * 2, image, backend=takes_it).is_contiguous(memory_format=torch.channels_last)


def test_46_forty_live_tensors_break_a_limit_that_none_of_them_breaks_alone():
    def forty(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x + number for number in range(40)]).sum(0)

    limits = [Memory(max_bytes=200_000_000), PeakMemory(max_bytes=5_000_000)]
    text = refusal(forty, torch.zeros(1024, 1024), backend=idbg.backend("mock", strict=True, constraints=limits))
    assert "peak_memory" in text and "memory:" not in text.replace("peak_memory:", "")


@pytest.mark.parametrize("allowed", [("float32",), ("f32",), ("torch.float32",), (torch.float32,)])
def test_48_a_dtype_is_named_by_string_or_object(allowed: Iterable[Any]):
    backend = idbg.backend("mock", strict=True, constraints=[Dtype(allowed=tuple(allowed))])
    run(lambda x: x + 1, torch.randn(4), backend=backend)
    torch._dynamo.reset()
    refusal(lambda x: x + 1, torch.randn(4, dtype=torch.float64), backend=backend)


def test_torch_finds_the_mock_backend_by_name(monkeypatch):
    pytest.importorskip("importlib.metadata").version("idbg")
    monkeypatch.setenv("MOCK_ALIGNMENT", "16")
    refusal(lambda x: x * 2, torch.randn(10), backend="idbg_mock")
