"""Is a program that goes another way where it is compiled compared with that way, and is what is wrong in it caught?"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.nn.functional import dropout

from idbg import KernelDiff
from idbg.reports.diff import summary
from idbg.schema.diff import DiffReport
from idbg.schema.remarks import Remark
from tests.harness.traced import is_traced

X = torch.linspace(-1, 1, 512).reshape(16, 32)
LIBRARY = """
import torch

def is_compiled():
    if torch.compiler.is_compiling():
        return True
    return False

def scaled(x):
    compiled = is_compiled()
    if compiled:  # parts
        return x * 1.25
    return x + 0.5
"""


def asking(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling():  # parts
        return x.sin() * 1.5
    return x.sin() + 1


def asking_by_an_older_name(x: Tensor) -> Tensor:
    if torch._dynamo.is_compiling():  # parts
        return x.sin() * 1.5
    return x.sin() + 1


def asking_in_passing(x: Tensor) -> Tensor:
    return x.sin() + 0.25 * torch.compiler.is_dynamo_compiling()  # parts


class Doubled(torch.autograd.Function):
    """Its backward asks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        if torch.compiler.is_compiling():  # parts
            gradient = gradient * 1.25
        return gradient * 2


def asking_in_backward(x: Tensor) -> Tensor:
    return Doubled.apply(x.sin()).cos()  # type: ignore[no-any-return, no-untyped-call]


@torch.compiler.disable
def uncompiled(x: Tensor) -> Tensor:
    return x * 3 if torch.compiler.is_compiling() else x * 2


def asking_here_and_in_plain_python(x: Tensor) -> Tensor:
    y = uncompiled(x.sin())
    if torch.compiler.is_compiling():  # parts
        y = y + 1
    return y


def drawing(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling():  # parts
        x = x * (torch.rand_like(x) > 0.1)
    return dropout(torch.tanh(x), 0.3)


def wrong_besides(x: Tensor) -> Tensor:
    """What Dynamo traces otherwise is not the program's choice."""
    y = asking(x)
    if is_traced():
        y = y * 1.1
    return y


def factor() -> float:
    raise RuntimeError("for compilers alone")


@torch._dynamo.substitute_in_graph(factor)
def _traced_factor() -> float:
    return 1.5


def only_compiled(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling():  # parts
        return x.sin() * factor()
    return x.sin()


def compared(model: Callable[..., Any], test: Any = "aot_eager", **settings: Any) -> DiffReport:
    torch.manual_seed(0)
    return KernelDiff(model, X, test=test, **settings).compare()


def place_of(function: Any, file: str = __file__) -> str:
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    begins = getattr(function, "__code__", None)
    first = begins.co_firstlineno if begins is not None else 1
    return f"{Path(file).name}:{next(at for at, line in enumerate(lines, 1) if at >= first and '# parts' in line)}"


def parted(report: DiffReport) -> Remark:
    (note,) = [each for each in report.notes if isinstance(each, Remark) and each.kind == "parted"]
    return note


@pytest.mark.parametrize(
    ("model", "where"),
    [
        (asking, asking),
        (asking_by_an_older_name, asking_by_an_older_name),
        (asking_in_passing, asking_in_passing),
        (asking_in_backward, Doubled.backward),
        (asking_here_and_in_plain_python, asking_here_and_in_plain_python),
    ],
)
def test_the_compiled_way_is_what_the_program_is_compared_with(model: Any, where: Any) -> None:
    asks = torch.compiler.is_compiling.__code__
    report = compared(model, backward=True)
    assert report.passed and report.mode == "float64", report
    assert parted(report).subject == place_of(where)
    assert f"eager and compiled part at {place_of(where)}" in summary(report).splitlines()[1]
    assert torch.compiler.is_compiling.__code__ is asks and not torch.compiler.is_compiling()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[ModuleType]:
    file = tmp_path / "site-packages" / "idbg_asks" / "ways.py"
    file.parent.mkdir(parents=True)
    file.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("idbg_asks_ways", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_a_library_that_asks_parts_where_its_answer_is_used(library: ModuleType) -> None:
    report = compared(lambda x: library.scaled(x.sin()))
    assert report.passed and parted(report).subject == f"idbg_asks/{place_of(None, str(library.__file__))}", report


def off(gm: GraphModule, _: object) -> Callable[..., Any]:
    """A backend whose results are 1 % too large."""
    return lambda *args: [each * 1.01 for each in gm(*args)]


def test_what_the_compiler_gets_wrong_of_the_compiled_way_is_its_own() -> None:
    report = compared(asking, off)
    assert report.verdict == "failed" and parted(report)
    report = compared(wrong_besides, per_kernel=True)
    stage = report.first_wrong_stage
    assert report.verdict == "failed" and parted(report).subject == place_of(asking)
    assert stage is not None and stage.made_by is not None and stage.made_by.kind == "dynamo"


def test_a_question_that_changes_nothing_excuses_nothing() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.sin() if torch.compiler.is_compiling() else torch.sin(x)
        return y * 1.1 if is_traced() else y

    report = compared(model)
    assert report.verdict == "failed"
    assert not any(isinstance(each, Remark) and each.kind == "parted" for each in report.notes)


@pytest.mark.parametrize("settings", [{}, {"backward": True}, {"per_kernel": True}], ids=str)
def test_random_numbers_that_differ_for_it_are_not_comparable(settings: dict[str, Any]) -> None:
    report = compared(drawing, **settings)
    assert report.verdict == "waiting" and isinstance(report.not_comparable, Remark), report
    assert report.not_comparable.kind == "parted draws" and report.not_comparable.subject == place_of(drawing)
    assert report.first_wrong_stage is None and report.culprit is None
    assert compared(drawing, off).verdict == "failed"


def test_a_compiled_way_that_only_a_compiler_can_go_is_not_judged() -> None:
    report = compared(only_compiled)
    assert report.verdict == "waiting" and isinstance(report.not_comparable, Remark), report
    assert report.not_comparable == Remark("parted, alone", place_of(only_compiled), "for compilers alone")


@pytest.mark.slow
def test_steps_of_training_go_the_compiled_way_too() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(32, 32)

        def forward(self, x: Tensor) -> Tensor:
            return asking(self.first(x))

    report = compared(Model(), steps=2, loss=lambda out: out.square().mean())
    assert report.passed and report.steps is not None and parted(report)
