"""Whose an exception is: what eager would raise as well is the program's, with its line; the stack tells the rest."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from idbg.engine.failures import owners
from idbg.engine.failures.describe import failure_of, with_partitioned_node
from idbg.engine.failures.owners import BackendHome
from idbg.schema.programs import Failure, Program
from idbg.schema.runs import Run

HERE = str(Path(__file__))


def raised(compiled: Callable[..., object], *args: object, home: BackendHome | None = None) -> Failure:
    torch._dynamo.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("idbg.engine.failures.describe.home_of", lambda backend: home or BackendHome())
        try:
            compiled(*args)
        except Exception as error:
            return failure_of(error, Program("subject.py"), home.backend if home else "inductor")
    raise AssertionError("it did not fail")


def eager(function: Callable[..., object], **how: Any) -> Callable[..., object]:
    return torch.compile(function, backend="eager", **how)


def wrong_shape(x: torch.Tensor) -> torch.Tensor:
    return x @ torch.ones(7, 7)


def raises(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] == 3:
        raise ValueError("of mine")
    return x


def prints(x: torch.Tensor) -> torch.Tensor:
    print("a graph break")
    return x + 1


def branches(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x.cos()
    return x


class OwnError(Exception):
    pass


def line_of(function: Callable[..., object], of: int) -> int:
    return function.__code__.co_firstlineno + of


def test_a_shape_that_eager_refuses_as_well_is_the_programs() -> None:
    failure = raised(eager(wrong_shape), torch.ones(3, 5))
    assert (failure.kind, failure.type) == ("user", "RuntimeError")
    assert failure.message.startswith("a and b must have same reduction dim")
    assert (failure.file, failure.line) == (HERE, line_of(wrong_shape, 1))
    assert "in wrong_shape" in failure.traceback
    assert "_dynamo" not in failure.traceback


def test_a_wrong_shape_in_a_library_module_shows_at_the_programs_line() -> None:
    layer = torch.nn.Linear(4, 4)

    def model(x: torch.Tensor) -> torch.Tensor:
        return layer(x) + 1

    failure = raised(eager(model), torch.ones(3, 5))
    assert (failure.kind, failure.file, failure.line) == ("user", HERE, line_of(model, 1))


@pytest.mark.parametrize("fullgraph", [False, True])
def test_what_the_program_raises_is_its_own_traced_or_run(fullgraph: bool) -> None:
    failure = raised(eager(raises, fullgraph=fullgraph), torch.ones(3, 5))
    assert (failure.kind, failure.type, failure.message) == ("user", "ValueError", "of mine")
    assert (failure.file, failure.line) == (HERE, line_of(raises, 2))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("it's (of) [mine]"), "it's (of) [mine]"),
        (RuntimeError("of mine", 3), "('of mine', 3)"),
        (ValueError(), "ValueError"),
        (KeyError("mine"), "'mine'"),
        (OwnError("of mine"), "of mine"),
    ],
)
def test_what_the_program_raises_as_it_is_traced_has_the_message_that_eager_gives(
    error: Exception, message: str
) -> None:
    kind, args = type(error), error.args

    def model(x: torch.Tensor) -> torch.Tensor:
        raise kind(*args)

    failure = raised(eager(model, fullgraph=True), torch.ones(3))
    assert (failure.kind, failure.type, failure.message) == ("user", kind.__name__, message)
    assert failure.line == line_of(model, 1)


@pytest.mark.parametrize("function", [prints, branches])
def test_what_torch_cannot_trace_is_torchs_at_the_line_that_it_refused(function: Callable[..., object]) -> None:
    failure = raised(eager(function, fullgraph=True), torch.ones(3))
    assert (failure.kind, failure.type) == ("torch", "Unsupported")
    assert (failure.file, failure.line) == (HERE, line_of(function, 1))


def test_a_fake_that_refuses_what_the_op_takes_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.library._scoped_library("idbg_owners", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")

        def model(x: torch.Tensor) -> torch.Tensor:
            return torch.ops.idbg_owners.twice(x)

        def refuses(file: str, home: BackendHome) -> tuple[str, str]:
            return "torch", ""  # as if this file were torch's

        library._register_fake("twice", _refusing)
        own = raised(eager(model), torch.ones(3))
        assert own.kind == "user" and own.called_back, "a fake of the program's own"
        monkeypatch.setattr(owners, "_room", refuses)
        assert raised(eager(model), torch.ones(3)).kind == "torch"


def _refusing(x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("this fake is wrong")


def turned(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t()


def _lying(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _lying_of_dtype(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x, dtype=torch.float64)


@pytest.mark.parametrize("by", ["a library", "custom_op"])
def test_a_fake_kernel_with_other_strides_than_its_op_is_where_it_fails(by: str) -> None:
    with torch.library._scoped_library("idbg_owners", "DEF") as library:
        if by == "custom_op":
            torch.library.custom_op("idbg_owners::turned", turned, mutates_args=()).register_fake(_lying)
        else:
            library.define("turned(Tensor x) -> Tensor")
            library.impl("turned", turned, "CPU")
            torch.library.register_fake("idbg_owners::turned", _lying, lib=library)
        failure = raised(torch.compile(lambda x: torch.ops.idbg_owners.turned(x)), torch.ones(3, 5))
    assert (failure.kind, failure.type, failure.called_back) == ("user", "AssertionError", True)
    assert (failure.file, failure.line) == (HERE, line_of(_lying, 0))
    assert failure.hint.startswith("the fake kernel of idbg_owners::turned describes another result")


@pytest.mark.skipif(torch.__version__ < "2.15", reason="compiled code looked at sizes and strides alone")
def test_a_fake_kernel_with_another_dtype_than_its_op_is_where_it_fails() -> None:
    with torch.library._scoped_library("idbg_owners", "FRAGMENT"):
        torch.library.custom_op(
            "idbg_owners::same", torch.clone, mutates_args=(), schema="(Tensor x) -> Tensor"
        ).register_fake(_lying_of_dtype)
        failure = raised(torch.compile(lambda x: torch.ops.idbg_owners.same(x)), torch.ones(3, 5))
    assert (failure.kind, failure.type, failure.called_back) == ("user", "RuntimeError", True)
    assert (failure.file, failure.line) == (HERE, line_of(_lying_of_dtype, 0))
    assert failure.hint.startswith("the fake kernel of idbg_owners::same describes another result")


def test_a_backend_of_the_programs_own_is_the_programs() -> None:
    def backend(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        raise KeyError("mine")

    failure = raised(torch.compile(lambda x: x + 1, backend=backend), torch.ones(3))
    assert (failure.kind, failure.type, failure.line) == ("user", "KeyError", line_of(backend, 1))
    assert failure.called_back and not raised(eager(raises), torch.ones(3)).called_back


PACKAGE = """
def compile(gm, inputs):
    raise AssertionError("sources must not be empty for symbol s75")

def run(gm, inputs):
    def call(*args):
        raise RuntimeError("the device is lost")
    return call

def through_torch(gm, inputs):
    import torch
    return torch.fx.GraphModule(3, None)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    folder = tmp_path / "src" / "idbg_far_backend"  # installed as a developer has it, and not in site-packages
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from .compiler import *\n")
    (folder / "compiler.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder.parent))
    yield importlib.import_module("idbg_far_backend")
    for name in [name for name in sys.modules if name.startswith("idbg_far_backend")]:
        del sys.modules[name]


@pytest.mark.parametrize("entry", ["compile", "run", "through_torch"])
def test_what_a_backends_package_raises_is_the_backends(package: Any, entry: str) -> None:
    home = BackendHome("far", (f"{Path(package.__file__).parent}/",))
    failure = raised(torch.compile(lambda x: x + 1, backend=getattr(package, entry)), torch.ones(3), home=home)
    assert failure.kind == "backend", failure
    assert "idbg_far_backend, the package of the backend far" in failure.hint
    assert failure.file == HERE


def test_an_error_of_torch_that_it_does_not_wrap_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `sources must not be empty for symbol s75`, which guards raise after a backend changed the shapes."""

    def broken(*_: object, **__: object) -> object:
        return {}["no such source"]  # type: ignore[index]

    broken.__code__ = broken.__code__.replace(co_filename=f"{owners._TORCH}/fx/experimental/symbolic_shapes.py")
    monkeypatch.setattr(torch._dynamo.guards.CheckFunctionManager, "__init__", broken)
    failure = raised(eager(prints), torch.ones(3))
    assert failure.kind == "torch", failure


def test_what_goes_wrong_as_a_graph_runs_is_the_programs() -> None:
    failure = raised(eager(lambda table, at: table[at] + 1), torch.ones(3), torch.tensor([7]))
    assert (failure.kind, failure.type) == ("user", "IndexError")


@pytest.mark.filterwarnings("ignore")  # what OpenVINO does as it is imported
def test_homes_are_those_of_foreign_backends_alone() -> None:
    assert owners.home_of("inductor") == owners.home_of("aot") == owners.home_of("aot_eager") == BackendHome()
    openvino = pytest.importorskip("openvino")
    assert owners.home_of("openvino") == BackendHome("openvino", (f"{Path(openvino.__file__).parent}/",), "openvino")


def test_a_devices_error_has_the_users_line_though_putting_back_raises_it_again() -> None:
    def fails() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    def puts_back() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered, again")

    def restored() -> None:
        try:
            fails()
        finally:
            puts_back()

    ours = f"{owners.OURS}/engine/ours.py"
    for each in (puts_back, restored):
        each.__code__ = each.__code__.replace(co_filename=ours)
    with pytest.raises(RuntimeError) as raising:
        restored()
    trace = raising.value.__traceback__
    assert trace is not None  # whose first frame is this test's own
    failure = failure_of(raising.value.with_traceback(trace.tb_next), Program("subject.py"))
    assert (failure.file, failure.line) == (HERE, line_of(fails, 1)) and failure.crash is not None


SAVED_AND_CHANGED = """\
import torch
class Bump(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, counter):
        ctx.save_for_backward(counter)
        return x * 3
    @staticmethod
    def backward(ctx, g):
        (counter,) = ctx.saved_tensors
        counter.add_(g)
        return g * 3, None
@torch.compile(fullgraph=True)
def fn(x):
    counter = x.detach() * 1.5
    return Bump.apply(x, counter).clone(), counter
fn(torch.randn(16, requires_grad=True))
"""


def test_a_partitioners_failure_names_the_users_line_of_its_node_and_not_torchs_lines(ran: Callable[..., Run]) -> None:
    """pytorch/pytorch#172956: a backward changes a tensor that the forward made, saved and returned."""
    failure = ran(SAVED_AND_CHANGED, backend="aot").failure
    assert failure is not None and Path(failure.file).name == "subject.py" and failure.line == 10
    first, torchs = failure.message.splitlines()
    assert first.startswith(
        "the joint graph cannot be partitioned: `add` is `counter.add_(g)` in `backward` (subject.py:10)"
    )
    assert torchs == "AssertionError: Node add was invalid, but is output"
    assert "lines of torch" in failure.traceback and len(failure.traceback.splitlines()) < 12
    other = Failure("torch", "Node no_such was invalid, but is output")
    assert with_partitioned_node(other, None) is other
