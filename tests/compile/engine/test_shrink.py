"""What is left of a candidate once shapes, values, dtypes, constants and settings are as small as they can be."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from idbg.engine.minify.shrink import shrunk
from idbg.engine.minify.shrink.parts import taken_apart
from idbg.engine.repro.draft import Breaks, Candidate
from idbg.reduce.tries import Stopped
from tests.harness.shrinking import HEADING, candidate, shrink, values, where


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))  # not the seed that scripts use


def matmul(**draft: Any) -> Candidate:
    lines = ["# model.py:12: y = x @ w", "y = torch.matmul(x, w)"]
    return candidate(lines, "(y,)", {"x": random(32, 64), "w": random(64, 128)}, **draft)


def attention() -> Candidate:
    lines = [
        "q = x.view(8, 16, 4, 16)",
        "k = q.transpose(1, 2)",
        "o = torch.nn.functional.scaled_dot_product_attention(k, k, k, attn_mask=None, dropout_p=0.0)",
        "p = o.transpose(1, 2).reshape(8, 16, 64)",
        "r = torch.nn.functional.linear(p, w, b)",
    ]
    return candidate(lines, "(r,)", {"x": random(8, 16, 64), "w": random(64, 64), "b": random(64)})


def texts(found: Candidate) -> list[str]:
    return [each.text for each in found.draft.arguments]


def test_what_always_fails_comes_down_to_ones_in_three_tries_and_a_few_for_each_line():
    found, told = shrink(attention(), where(lambda named: True, 5))
    assert texts(found) == ["torch.ones(1, 1, 1)", "torch.ones(1, 1)", "torch.ones(1)"]
    assert found.draft.statements[0] == "q = x.view(1, 1, 1, 1)"
    assert found.draft.statements[2] == "o = torch.nn.functional.scaled_dot_product_attention(k, k, k)"
    assert len(told.asked) <= 3 + 5 + 2, "a try for each line, and for an operand of the same form"
    assert found.tensors() == {}


def test_a_size_stops_at_the_least_that_fails_and_the_others_go_on():
    found, told = shrink(matmul(), where(lambda named: named["x"].shape[1] >= 3))
    assert texts(found) == ["torch.ones(1, 3)", "torch.ones(3, 1)"]
    assert found.draft.statements == ("# model.py:12: y = x @ w", "y = torch.matmul(x, w)")
    assert len(told.asked) < 12


def test_a_size_that_is_spelled_out_alone_shrinks_with_what_it_is_a_factor_of():
    found, _ = shrink(attention(), where(lambda named: named["q"].shape[2] >= 2, 5))
    assert texts(found) == ["torch.ones(1, 1, 2)", "torch.ones(1, 2)", "torch.ones(1)"]
    assert found.draft.statements[0] == "q = x.view(1, 1, 2, 1)"


def test_where_statements_cannot_be_tried_without_memory_sizes_shrink_by_their_value():
    lines = ["s = float(x.sum())", "y = x.view(8, 64) * s"]
    found, _ = shrink(candidate(lines, "(y,)", {"x": random(8, 8, 8)}), where(lambda named: named["y"].shape[0] > 1))
    assert texts(found) == ["torch.ones(2, 2, 2)"]
    assert found.draft.statements[1] == "y = x.view(2, 4) * s"


def test_a_nan_alone_is_kept_and_no_file():
    x = random(8, 16)
    x[3, 4] = torch.nan
    found, _ = shrink(
        candidate(["y = x + b"], "(y,)", {"x": x, "b": random(16)}), where(lambda named: named["x"].isnan().any())
    )
    assert texts(found) == ["torch.full((1, 1), torch.nan)", "torch.ones(1)"]
    assert found.tensors() == {}
    assert found.draft.values == "made here; it fails with these as with the program's own"


def test_values_that_nothing_can_stand_for_are_cut_and_written_out():
    x = random(8, 16)
    exact = float(x[0, 0])
    found, _ = shrink(
        candidate(["y = x + b"], "(y,)", {"x": x, "b": random(16)}),
        where(lambda named: float(named["x"][0, 0]) == exact),
    )
    assert texts(found) == [f"torch.tensor([[{exact!r}]])", "torch.ones(1)"]


def test_many_values_stay_in_the_file_and_the_draft_says_which():
    x = random(64)
    found, _ = shrink(
        candidate(["y = x + b"], "(y,)", {"x": x, "b": random(64)}), where(lambda named: torch.equal(named["x"], x))
    )
    assert found.tensors().keys() == {"x"}
    assert torch.equal(found.tensors()["x"], x)
    assert found.draft.values == "x: the program's own; the others are made here"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_dtype_stays_where_it_matters_and_nowhere_else(dtype: torch.dtype):
    lines = [f"y = x.to({dtype}) * 2", f"z = w.to({dtype}) * 3.14159"]
    first = candidate(lines, "(y, z)", {"x": random(8).to(dtype), "w": random(8).to(dtype)})
    found, _ = shrink(first, where(lambda named: named["y"].dtype == dtype, 2))
    assert found.draft.statements[0] == f"y = x.to({dtype}) * 2"
    assert texts(found) == ["torch.ones(1)", "torch.ones(1)"]
    everywhere, _ = shrink(first, where(lambda named: True, 2))
    assert everywhere.draft.statements == ("y = x.to(torch.float32) * 2", "z = w.to(torch.float32) * 1.0")


def test_stored_values_of_another_dtype_are_another_try():
    first = candidate(["y = x + 1"], "(y,)", {"x": random(64).bfloat16()})
    parts = taken_apart(first)
    recorded = values(first)["x"]
    found, told = shrink(first, where(lambda named: torch.equal(named["x"].float(), recorded.float())))
    assert parts.candidate().key == first.key
    assert found.tensors()["x"].dtype == torch.float32
    assert found.key not in {first.key, found.draft.key}
    assert len({tried.key for tried in told.asked}) == len(told.asked)


def test_strides_stay_where_they_matter():
    first = candidate(["y = x.relu()"], "(y,)", {"x": random(16, 8).t()})
    assert texts(shrink(first, where(lambda named: not named["x"].is_contiguous()))[0]) == ["torch.ones(2, 2).t()"]
    assert texts(shrink(first, lambda tried: True)[0]) == ["torch.ones(1, 1)"]


def test_indices_stay_within_what_they_index():
    lines = ["e = torch.nn.functional.embedding(i, w, 0, None, 2.0, False, False)"]
    index = torch.randint(0, 1000, (4, 32), generator=torch.Generator().manual_seed(0))
    first = candidate(lines, "(e,)", {"i": index, "w": random(1000, 64)})
    found, _ = shrink(first, where(lambda named: named["i"].numel() > 1))
    assert texts(found)[0] in ("torch.zeros(1, 2, dtype=torch.int64)", "torch.zeros(2, 1, dtype=torch.int64)")
    assert texts(found)[1] == "torch.ones(1, 1)"
    found, _ = shrink(first, where(lambda named: named["i"].max() > 1))
    named = values(found)
    assert named["i"].numel() == 1
    assert named["w"].shape[0] <= 8


def test_numbers_and_arguments_that_do_not_matter_go():
    lines = ["y = torch.repeat_interleave(x, 5, dim=0)", "z = y[:, :17] * 0.12345", "a = torch.zeros(512, 512)"]
    first = candidate(lines, "(z, a)", {"x": random(16, 20)})
    found, _ = shrink(first, where(lambda named: named["a"].shape[0] > 100, 3))
    assert found.draft.statements == (
        "y = torch.repeat_interleave(x, 1, dim=0)",
        "z = y[:, :1] * 1.0",
        "a = torch.zeros(128, 1)",
    )


def test_an_argument_without_which_torch_would_warn_or_give_something_else_stays():
    lines = ["y = torch.nn.functional.softmax(x, dim=-1, dtype=torch.float32)", "z = y.sum(dim=1)"]
    found, _ = shrink(candidate(lines, "(z,)", {"x": random(4, 4)}), where(lambda named: True, 2))
    assert found.draft.statements == ("y = torch.nn.functional.softmax(x, dim=-1)", "z = y.sum(dim=1)")


def test_settings_modes_options_and_marks_go_where_they_do_not_matter():
    extras: dict[str, Any] = {
        "settings": ("torch._dynamo.config.cache_size_limit = 1", "torch.set_grad_enabled(False)"),
        "modes": ("torch.no_grad()",),
        "how": "backend=\"inductor\", options={'max_autotune': True, 'epilogue_fusion': False}, dynamic=True",
        "imports": frozenset({"collections", "operator"}),
    }
    first = matmul(**extras)
    found, told = shrink(first, lambda tried: "'max_autotune': True" in tried.draft.how and bool(tried.draft.modes))
    draft = found.draft
    assert draft.how == "backend=\"inductor\", options={'max_autotune': True}"
    assert (draft.settings, draft.modes, draft.imports) == ((), ("torch.no_grad()",), frozenset())
    assert len(told.asked) < 16


def test_one_setting_that_matters_is_told_from_the_rest_in_a_few_tries():
    first = matmul(settings=("torch._inductor.config.debug = True",), modes=("torch.no_grad()",))
    arguments = tuple(replace(each, requires_grad=True) for each in first.draft.arguments)
    first = replace(first, draft=replace(first.draft, arguments=arguments))
    found, told = shrink(first, lambda tried: bool(tried.draft.settings))
    assert found.draft.settings == first.draft.settings
    assert not found.draft.modes
    assert not any(each.requires_grad for each in found.draft.arguments)
    assert len(told.asked) <= 6


def test_rules_but_the_broken_one_go():
    rules = '[[rules]]\nkind = "max_dim"\nmax = 4\n\n[[rules]]\nkind = "rank"\nmax = 1\n'
    found, _ = shrink(matmul(rules=rules, check=Breaks("rank")), lambda tried: True)
    assert found.draft.rules.strip() == '[[rules]]\nkind = "rank"\nmax = 1'


def test_a_symbolic_size_becomes_a_constant_or_stays_above_one():
    first = matmul()
    x, w = first.draft.arguments
    draft, stored = replace(first.draft, arguments=(replace(x, dynamic=(0,)), w)), first.tensors
    found, _ = shrink(Candidate(draft, HEADING, stored), lambda tried: True)
    assert texts(found) == ["torch.ones(1, 1)", "torch.ones(1, 1)"]
    found, _ = shrink(Candidate(draft, HEADING, stored), lambda tried: tried.draft.arguments[0].dynamic == (0,))
    assert texts(found) == ["dynamic(torch.ones(2, 1), 0)", "torch.ones(1, 1)"]


def test_whoever_stops_it_has_the_smallest_so_far():
    told: list[Candidate] = []

    def fails(tried: Candidate) -> bool:
        if told:
            raise Stopped("its 1 tries are used up")
        return True

    with pytest.raises(Stopped):
        shrunk(matmul(), fails, told.append, lambda text: None)
    assert texts(told[-1]) == ["torch.ones(32, 64)", "torch.ones(64, 128)"]


@settings(max_examples=12)
@given(
    least=st.tuples(*(st.integers(1, most) for most in (32, 64, 128))),
    is_random=st.booleans(),
    needs_half=st.booleans(),
)
def test_it_fails_at_each_step_gets_smaller_at_each_and_ends_at_the_least(
    least: tuple[int, int, int], is_random: bool, needs_half: bool
):
    def condition(named: dict[str, Any]) -> bool:
        x, w = named["x"], named["w"]
        is_large = x.shape[0] >= least[0] and x.shape[1] >= least[1] and w.shape[1] >= least[2]
        return is_large and (not is_random or w.flatten()[0] != 1) and (not needs_half or x.dtype == torch.float16)

    first = candidate(["y = torch.matmul(x, w)"], "(y,)", {"x": random(32, 64).half(), "w": random(64, 128).half()})
    found, told = shrink(first, where(condition))
    named = values(found)
    assert condition(named)
    assert (*named["x"].shape, named["w"].shape[1]) == least
    assert all(where(condition)(better) for better in told.better)
    assert len({tried.key for tried in told.asked}) == len(told.asked)
    measured = [taken_apart(each).size() for each in told.better]
    assert measured == sorted(measured, reverse=True)
    assert len(told.asked) <= 60
