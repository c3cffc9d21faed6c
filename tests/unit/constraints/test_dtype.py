"""Tensors hold what the hardware can hold."""

from typing import Any

import pytest

from idbg.constraints import BadValue, Finding
from idbg.constraints.dtype import Dtype
from idbg.schema.graphs import DTYPES, Node, TensorMeta
from tests.harness.signatures import signature_of


def check(rule: Dtype, *dtypes: str, op: Any = "call_function", role: Any = "intermediate") -> list[Finding]:
    return list(
        rule.check(
            signature_of(
                Node(name="n", op=op, target="t", role=role, tensors=tuple(TensorMeta(d, (2,)) for d in dtypes))
            )
        )
    )


def test_a_dtype_that_is_not_allowed_is_named() -> None:
    (finding,) = check(Dtype(allowed=("float32", "bfloat16")), "float64")
    assert (finding.found, finding.wanted) == ("dtype is float64", "float32 or bfloat16")


@pytest.mark.parametrize("spelling", ["float32", "f32", "torch.float32", "float"])
def test_dtypes_may_be_spelled_as_torch_spells_them(spelling: str) -> None:
    assert Dtype(allowed=(spelling,)).allowed == ("float32",)


def test_a_dtype_object_is_taken_by_what_it_prints() -> None:
    class Float16:
        def __str__(self) -> str:
            return "torch.float16"

    assert Dtype(allowed=(Float16(),)).allowed == ("float16",)  # type: ignore[arg-type]


def test_an_unknown_dtype_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(BadValue, match="float33") as raised:
        Dtype(allowed=("float33",))
    assert raised.value.key == "allowed" and "float32" in raised.value.hint


@pytest.mark.parametrize(
    ("op", "role", "fix"),
    [
        ("placeholder", "input", "pass it as float32: .to(torch.float32)"),
        ("placeholder", "weight", "convert the module: module.to(torch.float32)"),
        ("call_function", "intermediate", "compute it in float32: cast with .to(torch.float32)"),
    ],
)
def test_the_fix_depends_on_where_the_tensor_comes_from(op: Any, role: Any, fix: str) -> None:
    assert check(Dtype(allowed=("int64", "float16", "float32")), "float64", op=op, role=role)[0].fix == fix


def test_a_complex_number_is_split_where_no_complex_dtype_is_allowed() -> None:
    assert "torch.view_as_real" in check(Dtype(allowed=("float32",)), "complex64")[0].fix
    assert "complex64" in check(Dtype(allowed=("complex64",)), "complex128")[0].fix


def test_a_long_list_is_told_by_what_it_leaves_out() -> None:
    allowed = tuple(name for name in DTYPES if name not in ("float64", "int64"))
    assert check(Dtype(allowed=allowed), "float64")[0].wanted == "any dtype but float64, int64"


def test_every_tensor_of_a_tuple_is_checked() -> None:
    assert [finding.found for finding in check(Dtype(allowed=("float32",)), "float32", "int64")] == [
        "output 1: dtype is int64"
    ]


def test_a_dtype_that_this_version_does_not_know_is_not_allowed() -> None:
    assert check(Dtype(allowed=tuple(DTYPES)), "float2_x4")[0].found == "dtype is float2_x4"
