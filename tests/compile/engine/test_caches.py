"""What the caches answer is told as torch counts it, with what is new in the key, and keys outlive their process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch._inductor.config
from torch._dynamo.utils import counters

from idbg.config import places
from idbg.engine.decisions import seen_keys
from idbg.render.text import text as text_of
from idbg.schema.runs import Run
from idbg.views import cache as report
from idbg.views.tree import Refs, referring
from tests.harness.fresh_caches import answers, outcomes, own_caches

PLAIN = """\
import torch

def f(x, w):
    return torch.relu(x @ w) + {number}

def program():
    return f, (torch.randn({rows}, 8), torch.randn(8, 8))
"""


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was compiled before, and nothing was seen."""
    own_caches(tmp_path, monkeypatch)


@pytest.fixture
def again(ran: Callable[..., Run]) -> Callable[..., Run]:
    """The program once more, as a fresh process would have it."""

    def run(text: str = PLAIN.format(number=1, rows=4), **target: Any) -> Run:
        torch._dynamo.reset()
        return ran(text, backend="inductor", **target)

    return run


def parts(run: Run) -> list[str]:
    return [differs.part for answer in answers(run) for differs in answer.differs]


@pytest.mark.slow
def test_cold_then_warm_then_one_thing_changed_is_told_as_torch_counts_it(again: Callable[..., Run]):
    cold, warm = again(), again()
    (first,), (second,) = answers(cold), answers(warm)
    assert (first.outcome, first.part, first.differs, first.nearest) == ("miss", "inference", (), "")
    assert (second.outcome, second.part, second.key) == ("hit", "inference", first.key)
    assert second.saved is not None and second.saved > 0

    graph = again(PLAIN.format(number=22, rows=4))  # of another length: Python tells bytecode by seconds and size
    assert outcomes(graph) == ["miss"] and parts(graph) == ["the graph's code"]
    shape = again(PLAIN.format(number=1, rows=5))
    (differs,) = answers(shape)[0].differs
    assert (differs.part, differs.now, differs.before) == ("the shape of argument 1 (arg0_1)", "[5, 8]", "[4, 8]")
    option = again(options={"epilogue_fusion": False})
    (differs,) = answers(option)[0].differs
    assert (differs.part, differs.now, differs.before) == ("inductor config: epilogue_fusion", "False", "True")

    counted = [name for run in (cold, warm, graph, shape, option) for name in outcomes(run)]
    assert counted.count("hit") == counters["inductor"]["fxgraph_cache_hit"] == 1
    assert counted.count("miss") == counters["inductor"]["fxgraph_cache_miss"] == 4

    assert outcomes(cold, "kernel") == ["miss"]
    assert outcomes(warm, "kernel") == ["hit"]
    assert {answer.what for answer in answers(cold, "kernel")} <= {kernel.name for kernel in cold.kernels}
    assert outcomes(cold, "aot_autograd") == ["off"] and "rule" in answers(cold, "aot_autograd")[0].reason

    told = text_of(report.view(option))
    assert "inductor config: epilogue_fusion is False, was True (against the nearest key, of run 1, frame 0/0)" in told
    assert "mark_dynamic" in text_of(report.view(shape))
    of_frame = [row.text for row in referring(report.view(warm)) if row.refs == Refs(frame=warm.kernels[0].frame)]
    assert any("hit" in text and "FX graph cache" in text for text in of_frame)


def test_a_pass_without_an_id_bypasses_the_cache(again: Callable[..., Run]):
    own = "import torch._inductor.config\ntorch._inductor.config.post_grad_custom_post_pass = lambda graph: None\n"
    bypassed = again(own + PLAIN.format(number=1, rows=4))
    (answer,) = answers(bypassed)
    assert answer.outcome == "bypass" and "custom pass" in answer.reason and answer.part == "inference"
    assert counters["inductor"]["fxgraph_cache_bypass"] == 1
    assert "uuid()" in text_of(report.view(bypassed))


@pytest.mark.parametrize(("setting", "value"), [("fx_graph_cache", False), ("force_disable_caches", True)])
def test_a_cache_that_is_off_is_said_to_be(again: Callable[..., Run], setting: str, value: bool):
    with torch._inductor.config.patch({setting: value}):
        (answer,) = answers(again())
    assert answer.outcome == "off" and setting in answer.reason
    assert not any(name.startswith("fxgraph_cache") for name in counters["inductor"])


def test_keys_are_known_to_a_later_process_and_a_cleared_cache_is_said(
    again: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    import shutil

    again()
    monkeypatch.setattr(seen_keys, "PROCESS", "another")
    shape = again(PLAIN.format(number=1, rows=6))
    assert parts(shape) == ["the shape of argument 1 (arg0_1)"]
    assert answers(shape)[0].nearest.startswith("frame 0/0 of an earlier process, ")

    shutil.rmtree(tmp_path / "inductor")
    cleared = again()
    (answer,) = answers(cleared)
    assert answer.outcome == "miss" and answer.differs == () and answer.nearest
    assert "no longer in the cache" in report.why(answer)


def test_a_spoilt_memory_of_keys_is_none(again: Callable[..., Run]):
    (places.cache()).mkdir(parents=True, exist_ok=True)
    (places.cache() / "keys.json").write_text("{")
    run = again()
    assert outcomes(run) == ["miss"] and answers(run)[0].nearest == ""
    assert msgspec.json.decode((places.cache() / "keys.json").read_bytes(), type=seen_keys.Kept).keys


def test_forward_and_backward_have_their_own_answers(again: Callable[..., Run]):
    text = PLAIN.replace("torch.randn(8, 8)", "torch.randn(8, 8, requires_grad=True)").format(number=1, rows=4)
    text = text.replace("return f, (", "return f, (").replace("))\n", ")), lambda out: out.sum()\n")
    run = again(text)
    assert [(answer.part, answer.outcome) for answer in answers(run)] == [("forward", "miss"), ("backward", "miss")]
    assert counters["inductor"]["fxgraph_cache_miss"] == 2


LOWERED = """\
import torch
from torch._inductor.lowering import lowerings, make_pointwise, register_lowering
from torch._inductor.virtualized import ops

def f(x):
    return torch.erfinv(x)

def program():
    @register_lowering(torch.ops.aten.erfinv.default, type_promotion_kind=None)
    def lowered(x):
        return make_pointwise(lambda value: ops.add(value, ops.constant({number}, torch.float32)))(x)
    return f, (torch.ones(8),)
"""
POINTWISE = (
    LOWERED.partition("def program")[0]
    + """\
def program():
    pointwise = make_pointwise(lambda value: ops.add(value, ops.constant({number}, torch.float32)))
    lowerings[torch.ops.aten.erfinv.default] = pointwise
    return f, (torch.ones(8),)
"""
)
PATTERN = """\
import torch
from torch._inductor.fx_passes.post_grad import pass_patterns
from torch._inductor.pattern_matcher import CallFunction, KeywordArg, register_graph_pattern

def f(x):
    return torch.erfinv(x)

def program():
    @register_graph_pattern(CallFunction(torch.ops.aten.erfinv.default, KeywordArg("x")), pass_dict=pass_patterns[1])
    def replaced(match, x):
        match.replace_by_example(lambda x: torch.ops.aten.mul.Tensor(x, {number}), [x])
    return f, (torch.ones(8),)
"""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (LOWERED, "lowering of aten.erfinv.default"),
        (POINTWISE, "lowering of aten.erfinv.default"),
        (PATTERN, "pattern"),
    ],
)
def test_a_graph_that_the_users_own_code_lowers_is_not_taken_from_the_cache(
    again: Callable[..., Run], text: str, what: str
):
    from torch._inductor.fx_passes import post_grad
    from torch._inductor.lowering import lowerings

    before, erfinv = dict(lowerings), torch.ops.aten.erfinv.default
    for number in ("3.0", "44.0"):
        try:
            run = again(text.format(number=number))
        finally:
            lowerings.clear()
            lowerings.update(before)
            for patterns in post_grad.pass_patterns:
                patterns.patterns.pop(("call_function", erfinv), None)
        (answer,) = answers(run)
        assert (answer.outcome, answer.part) == ("bypass", "inference")
        assert answer.reason.startswith(f"the program's own {what} (") and "subject.py:" in answer.reason
        (code,) = run.codes.values()
        assert number in code.text
