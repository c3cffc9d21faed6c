"""Rules that cannot be meant as they stand are told with their line, and stop nothing."""

import pytest

from idbg.accelerators import registry, toml_text
from idbg.accelerators.lint import matches_an_op, warnings


def rule(kind: str, **keys: object) -> str:
    lines = [f"{key} = {toml_text.spelled(value)}" for key, value in keys.items()]
    return "\n".join(["[[rules]]", f'kind = "{kind}"', *lines, ""])


def test_a_glob_that_matches_nothing_is_told_at_its_own_line_with_the_nearest_name() -> None:
    text = '[[rules]]\nkind = "unsupported_ops"\ndeny = [\n    "convolution",\n    "convolutoin",\n]\n'
    ((line, message),) = warnings(text)
    assert (line, message) == (5, 'no op of torch matches "convolutoin"; did you mean convolution?')


@pytest.mark.parametrize(
    "glob",
    [
        "relu_",
        "conv*",
        "aten.sum.dim_IntList",
        "aten.sum",
        "torch.nn.functional.gelu",
        "mylib.op",
        "*",
        "linear",
    ],
)
def test_names_at_every_stage_and_those_of_other_libraries_are_not_complained_of(glob: str) -> None:
    assert matches_an_op(glob)


def test_a_scope_is_held_against_the_names_too() -> None:
    assert "zzz*" in warnings(rule("dtype", allowed=["float32"], ops=["zzz*"]))[0].message


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (rule("dtype", allowed=["int8"]), rule("dtype", allowed=["f32"], ops=["mm"]), "no dtype in common"),
        (rule("alignment", multiple=64, severity="pad"), rule("max_dim", max=32), "no size up to 32"),
        (rule("rank", max=2), rule("rank", min=3, max=4), "no rank in common"),
        (rule("layout", formats=["contiguous"]), rule("layout", formats=["channels_last"]), "no format in common"),
        (rule("unsupported_ops", allow=["mm", "add"]), rule("unsupported_ops", deny=["mm"]), '"mm" is allowed by one'),
    ],
)
def test_rules_that_nothing_can_satisfy_are_told(first: str, second: str, why: str) -> None:
    for text in (first + second, second + first):
        ((line, message),) = warnings(text)
        assert why in message
        assert text.splitlines()[line - 1] == "[[rules]]"


@pytest.mark.parametrize(
    "text",
    [
        rule("dtype", allowed=["int8"], ops=["mm"]) + rule("dtype", allowed=["f32"], ops=["add"]),
        rule("dtype", allowed=["int8"], roles=["weights"]) + rule("dtype", allowed=["f32"], roles=["inputs"]),
        rule("dtype", allowed=["int8"]) + rule("dtype", allowed=["f32"], severity="slow"),
        rule("dtype", allowed=["int8"]) + rule("dtype", allowed=["f32"], enabled=False),
        registry.find("mock")[0],
    ],
)
def test_rules_about_different_things_do_not_contradict(text: str) -> None:
    assert warnings(text) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (rule("unsupported_ops"), "it denies nothing"),
        (rule("dtype", allowed=["f32"], severity="pad"), "it pads nothing"),
        (rule("alignment", multiple=8, dims=[]), "it is about no dimension"),
        (rule("matmul_tile"), "it limits nothing"),
    ],
)
def test_a_rule_that_can_do_nothing_is_told(text: str, why: str) -> None:
    assert why in warnings(text)[0].message


@pytest.mark.parametrize(
    "text",
    [
        rule("max_dim", max=8, dims=[0]) + rule("alignment", multiple=16, dims="last"),
        rule("dtype", allowed=["int8"], ops=["mm"], tensors="operands") + rule("dtype", allowed=["f32"], ops=["mm"]),
    ],
)
def test_rules_about_other_dimensions_or_tensors_do_not_contradict(text: str) -> None:
    assert warnings(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        rule("max_dim", min=17, max=31) + rule("alignment", multiple=16),
        rule("dtype", allowed=["int8"], ops=["mm"]) + rule("dtype", allowed=["f32"], ops=["m*"]),
        rule("unsupported_ops", allow=["mm"]) + rule("unsupported_ops", deny=["m*"]),
    ],
)
def test_contradictions_are_seen_through_globs_and_ranges(text: str) -> None:
    assert "contradicts" in warnings(text)[0].message
