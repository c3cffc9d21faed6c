"""The `[numerics]` table is read, filled in, written back and refused with the line that is wrong."""

import pytest

from idbg.accelerators.model import ACCUMULATES, Numerics
from idbg.accelerators.parse import parse, unparse
from idbg.constraints.base import BadValue
from idbg.schema.errors import AcceleratorError


def parsed(table: str) -> Numerics | None:
    return parse(f"[numerics]\n{table}").numerics


def test_an_accelerator_has_no_numerics_unless_it_says_so() -> None:
    assert parse('name = "a"').numerics is None


@pytest.mark.parametrize(
    ("spelling", "compute"),
    [
        ("bf16", "bfloat16"),
        ("bfloat16", "bfloat16"),
        ("torch.bfloat16", "bfloat16"),
        ("fp16", "float16"),
        ("half", "float16"),
        ("f16", "float16"),
        ("tf32", "tf32"),
        ("fp32", "float32"),
        ("fp8", "float8_e4m3fn"),
        ("e4m3", "float8_e4m3fn"),
        ("fp8_e5m2", "float8_e5m2"),
        ("f8e5m2fnuz", "float8_e5m2fnuz"),
        ("int8", "int8"),
        ("i8", "int8"),
    ],
)
def test_formats_may_be_spelled_as_torch_or_as_manuals_do(spelling: str, compute: str) -> None:
    assert Numerics(compute=spelling).compute == compute


def test_what_is_left_out_is_what_such_hardware_does() -> None:
    assert Numerics(compute="bf16") == Numerics(compute="bf16", accumulate="fp32", flush_denormals=False)
    assert Numerics(compute="bf16").scale is None
    assert Numerics(compute="fp8").scale == "tensor"
    assert Numerics(compute="int8").accumulate == "int32"


@pytest.mark.parametrize(
    "table",
    [
        'compute = "bf16"',
        'compute = "tf32"\naccumulate = "float64"\nflush_denormals = true',
        'compute = "e5m2"\nscale = 2',
        'compute = "int8"\nscale = 0.125',
        'compute = "fp8"\nscale = "tensor"\naccumulate = "fp16"',
    ],
)
def test_what_is_written_is_read_back(table: str) -> None:
    text = f'[numerics]\n{table}\n[[rules]]\nkind = "layout"\nformats = ["contiguous"]'
    read = parse(text)
    assert read.numerics is not None and read.rules
    assert parse(unparse(read)) == read


def test_numerics_may_stand_on_one_line() -> None:
    assert parse('numerics = { compute = "fp16" }').numerics == Numerics(compute="float16")


@pytest.mark.parametrize(
    ("table", "line", "message", "hint"),
    [
        ("", 1, 'needs "compute"', "add compute"),
        ('compute = "bf16"\n\naccumulator = "f32"', 4, 'no key "accumulator"', "did you mean accumulate?"),
        ('compute = "bf17"', 2, 'compute is "bf17"', 'did you mean "bf16"?'),
        ('compute = "nonsense"', 2, 'compute is "nonsense"', "bfloat16"),
        ('compute = "int32"', 2, "nothing computes in int32", "int8"),
        ("compute = 16", 2, "compute is a whole number", "must be a string"),
        ('compute = "bf16"\naccumulate = "flaot32"', 3, 'accumulate is "flaot32"', 'did you mean "float32"?'),
        ('compute = "fp32"\naccumulate = "bf16"', 3, "bfloat16 cannot hold the values of float32", "float64"),
        ('compute = "bf16"\naccumulate = "fp16"', 3, "float16 cannot hold the values of bfloat16", "float32"),
        ('accumulate = "int32"\ncompute = "bf16"', 2, "int32 cannot hold", "float32"),
        ('compute = "int8"\naccumulate = "fp16"', 3, "float16 cannot hold the values of int8", "int32"),
        ('compute = "fp8"\nscale = 0', 3, "scale is 0", "above 0"),
        ('compute = "fp8"\n# why\nscale = -1.5', 4, "scale is -1.5", "above 0"),
        ('compute = "int8"\nscale = nan', 3, "scale is nan", "above 0"),
        ('compute = "int8"\nscale = inf', 3, "scale is inf", "above 0"),
        ('compute = "int8"\nscale = "tensr"', 3, 'scale is "tensr"', "did you mean tensor?"),
        ('compute = "int8"\nscale = true', 3, "scale is true or false", 'a number or "tensor"'),
        ('compute = "bf16"\nscale = 1.0', 3, "bfloat16 takes no scale", "fp8 and int8"),
        ('compute = "bf16"\nflush_denormals = 1', 3, "flush_denormals is a whole number", "true or false"),
        ('compute = "int8"\nflush_denormals = true', 3, "int8 has no denormals", "take flush_denormals out"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_do(table: str, line: int, message: str, hint: str) -> None:
    with pytest.raises(AcceleratorError) as raised:
        parsed(table)
    assert raised.value.line == line
    assert message in raised.value.message and hint in raised.value.hint


@pytest.mark.parametrize("text", ["numerics = 3", '[[numerics]]\ncompute = "bf16"'])
def test_numerics_are_one_table(text: str) -> None:
    with pytest.raises(AcceleratorError, match="numerics must be one table") as raised:
        parse(text)
    assert raised.value.line == 1


@pytest.mark.parametrize("compute", ACCUMULATES)
def test_every_format_takes_each_accumulate_that_it_names(compute: str) -> None:
    for accumulate in ACCUMULATES[compute]:
        assert Numerics(compute=compute, accumulate=accumulate).accumulate == accumulate


def test_a_bad_value_names_its_key_in_python_too() -> None:
    with pytest.raises(BadValue) as raised:
        Numerics(compute="bf16", scale=2.0)
    assert raised.value.key == "scale"
