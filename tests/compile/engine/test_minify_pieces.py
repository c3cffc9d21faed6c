"""The pieces of a search, without compiling: recorded values, what is written where, and what a try comes to."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch.fx import symbolic_trace

from idbg.engine.capture.run import SavedGraph
from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.oracle import ALONE, Oracle, SharedTensors
from idbg.engine.minify.oracle import write_candidate as write
from idbg.engine.minify.problem import LEAST, died_of, ends_process, how_wrong
from idbg.engine.minify.running import TryRunner
from idbg.engine.repro.draft import Candidate, Dies, Draft, Hangs, Heading, Input, Raises
from idbg.engine.repro.files import TENSORS
from idbg.engine.repro.node_values import Recorder
from idbg.schema.errors import OutputError
from idbg.schema.programs import Failure

HEADING = Heading("a title", "versions")
DRAFT = Draft(Raises("ValueError", "no"), (Input("x", (3,), (1,), "cpu"),), ("y = x.sin()",), "(y,)", 'backend="eager"')


def candidate(tensor: torch.Tensor, **changes: Any) -> Candidate:
    return Candidate(dataclasses.replace(DRAFT, **changes), HEADING, lambda: {"x": tensor})


class Answers:
    """Stands in for the processes: gives these, and keeps what it was asked."""

    def __init__(self, *tried: TryResult) -> None:
        self.tried = list(tried)
        self.asked: list[Any] = []

    def run(
        self, script: Path, *, seconds: float, memory: int, arguments: Sequence[str] = (), eager: bool = False
    ) -> TryResult:
        self.asked.append((script, seconds, [*arguments, *(["eager"] if eager else [])]))
        return self.tried.pop(0)


def oracle(folder: Path, *tried: TryResult, tries: int = 1) -> Any:
    return Oracle(
        TryRunner(cast("Forks", Answers(*tried)), 1 << 30, times=tries), folder, folder / "repros", "minified"
    )


def test_a_value_is_what_its_reader_finds() -> None:
    def changed(x):
        y = x + 1
        z = y.sin()
        y.mul_(10)
        return z, y.cos()

    gm = symbolic_trace(changed)
    x = torch.ones(2)
    recorder: Any = Recorder(SavedGraph(gm, [x], False), weights=())
    sin, cos = (next(node.name for node in gm.graph.nodes if node.target == name) for name in ("sin", "cos"))
    assert recorder.values({"add": sin})["add"].tolist() == [2, 2]
    assert recorder.values({"add": cos})["add"].tolist() == [20, 20]
    assert x.tolist() == [1, 1]


def test_what_the_graph_begins_before_the_reader_is_ended() -> None:
    """As Dynamo writes them: the end stands behind the last reader, which is as far as the graph is run."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    mode = graph.call_function(torch.amp.autocast_mode._enter_autocast, ("cpu", torch.bfloat16, True, None))
    product = graph.call_function(torch.mm, (x, x), name="product")
    graph.call_function(torch.relu, (product,), name="reader")
    graph.call_function(torch.amp.autocast_mode._exit_autocast, (mode,))
    graph.call_function(torch._C._functorch._vmap_increment_nesting, (2, "error"))
    graph.call_function(torch.sin, (product,), name="inside")
    graph.output(product)
    recorder = Recorder(SavedGraph(torch.fx.GraphModule({}, graph), [torch.ones(2, 2)], False), weights=())
    value: Any = recorder.values({"product": "reader"})["product"]
    assert value.dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")
    recorder.values({"product": "inside"})
    assert torch.rand(2).shape == (2,), "no transform is left in force"


def test_what_never_ends_and_what_dies_is_tried_in_its_own_process(tmp_path: Path) -> None:
    hangs = oracle(tmp_path / "a", TryResult(None, hung=True), TryResult(0))
    assert hangs(candidate(torch.ones(3), check=Hangs(5.0))).outcome == "same"
    assert hangs(candidate(torch.ones(3), check=Hangs(5.0))).outcome == "passes"
    assert [(seconds, arguments) for _, seconds, arguments in hangs.runner.forks.asked] == [(5.0, [ALONE])] * 2
    dies = oracle(tmp_path / "b", TryResult(None, "SIGSEGV"), TryResult(None, "SIGABRT"), TryResult(0))
    assert dies(candidate(torch.ones(3), check=Dies("SIGSEGV"))).outcome == "same"
    other = dies(candidate(torch.ones(3), check=Dies("SIGSEGV")))
    assert (other.outcome, other.in_eager) == ("other", False)


def test_another_failure_is_looked_at_in_eager_once(tmp_path: Path) -> None:
    other = TryResult(2, printed="OTHER RuntimeError: sizes")
    judge = oracle(tmp_path, other, other, other)
    assert [judge(candidate(torch.ones(3))).in_eager for _ in range(2)] == [True, True]
    assert [arguments for _, _, arguments in judge.runner.forks.asked] == [[], ["eager"], []]


def test_a_lost_nan_is_another_failure_than_a_new_one() -> None:
    right, odd = torch.ones(8), torch.ones(8)
    odd[3] = torch.nan
    assert how_wrong([compare_tensors(right, odd)]).wrong == "nan"
    assert how_wrong([compare_tensors(odd, right)]).wrong == "lost"


@pytest.mark.parametrize("three", [False, True], ids=["against eager", "against float64"])
def test_a_script_finds_a_small_error_beside_a_value_that_is_nearly_zero(three: bool) -> None:
    """The worst element is all wrong, and the buffer 4e-4."""
    torch.manual_seed(0)
    buffer = torch.randn(64)
    buffer[5] = 1e-9
    wrong = buffer.clone()
    wrong[5] += 3e-3
    diff = compare_sides(buffer, wrong, buffer.double()) if three else compare_tensors(buffer, wrong)
    error = float((wrong - buffer).norm() / buffer.norm())
    assert diff.failed and diff.relative_rmse == pytest.approx(error, rel=1e-3)
    assert 1e-5 < how_wrong([diff]).least < error < LEAST


def test_what_fails_at_times_is_tried_again_before_it_passes(tmp_path: Path) -> None:
    asked = oracle(tmp_path, TryResult(0), TryResult(0), TryResult(1, printed="REPRODUCED ValueError no"), tries=4)
    assert asked(candidate(torch.ones(3))).outcome == "same"
    assert len(asked.runner.forks.asked) == 3


def test_a_large_file_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idbg.engine.minify.oracle._LARGE_BYTES", 8)
    large, weights = SharedTensors(tmp_path), torch.ones(3)
    for number in range(2):
        write(candidate(weights), tmp_path / str(number), large)
    assert len({(tmp_path / str(number) / TENSORS).stat().st_ino for number in range(2)}) == 1
    write(candidate(torch.zeros(3)), tmp_path / "other", large)
    assert (tmp_path / "other" / TENSORS).stat().st_nlink == 1


def test_what_is_handed_over_takes_no_bytes_that_it_does_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idbg.engine.minify.oracle._LARGE_BYTES", 8)
    result = oracle(tmp_path)
    result.better(candidate(torch.ones(3)))
    assert (result.folder / TENSORS).stat().st_nlink == 2
    result.better(candidate(torch.ones(3), arguments=(Input("x", recipe="torch.ones(3)"),)))
    assert not (result.folder / TENSORS).exists()
    assert "torch.ones(3)" in result.script.read_text()


def test_no_room_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OutputError, match=r"no script can be written to .*taken"):
        write(candidate(torch.ones(3)), tmp_path / "taken")


@pytest.mark.parametrize(
    ("failure", "signal", "ends"),
    [
        (Failure(kind="worker", message="the worker was killed by SIGSEGV in cpp_fused_relu_0"), "SIGSEGV", True),
        (Failure(kind="torch", message="SIGSEGV is a word", type="RuntimeError"), "", False),
        (Failure(kind="torch", message="CUDA error: an illegal memory access", type="AcceleratorError"), "", True),
    ],
)
def test_what_takes_the_process_with_it(failure: Failure, signal: str, ends: bool) -> None:
    assert (died_of(failure), ends_process(failure)) == (signal, ends)
