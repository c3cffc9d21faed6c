"""Sizes are multiples of what the hardware wants."""

import pytest

from idbg.constraints import BadValue, NodeSignature
from idbg.constraints.alignment import Alignment
from idbg.schema.graphs import Dim, Node, Sym, TensorMeta
from tests.harness.signatures import signature_of


def node(*shapes: tuple[Dim, ...]) -> NodeSignature:
    return signature_of(
        Node(
            name="n",
            op="call_function",
            target="aten.mul.Tensor",
            tensors=tuple(TensorMeta("float32", shape) for shape in shapes),
        )
    )


def found(rule: Alignment, *shapes: tuple[Dim, ...]) -> list[str]:
    return [finding.found for finding in rule.check(node(*shapes))]


def test_a_size_that_is_no_multiple_is_named_with_its_dimension_and_the_padded_size() -> None:
    (finding,) = Alignment(multiple=16).check(node((10,)))
    assert (finding.found, finding.wanted, finding.advice) == (
        "dim 0 is 10",
        "a multiple of 16",
        "pad to 16: +60 % bytes",
    )


def test_all_bad_dimensions_of_a_tensor_are_one_finding() -> None:
    (finding,) = Alignment(multiple=8).check(node((10, 16, 3)))
    assert finding.found == "dim 0 is 10, dim 2 is 3"
    assert finding.advice == "pad dim 0 to 16, dim 2 to 8: +327 % bytes"


@pytest.mark.parametrize("shape", [(16, 16), (), (0, 8), (32, 0)])
def test_multiples_scalars_and_empty_dimensions_are_aligned(shape: tuple[int, ...]) -> None:
    assert found(Alignment(multiple=8), shape) == []


def test_a_multiple_of_one_accepts_every_size() -> None:
    assert found(Alignment(multiple=1), (7, 13), (Sym("u0"),)) == []


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ("last", ["dim 2 is 5"]),
        ((0,), ["dim 0 is 3"]),
        ((-1, -2), ["dim 1 is 4, dim 2 is 5"]),
        ((2, -1), ["dim 2 is 5"]),
        ((5, -7), []),
    ],
)
def test_only_the_named_dimensions_are_checked(dims: object, expected: list[str]) -> None:
    assert found(Alignment(multiple=8, dims=dims), (3, 4, 5)) == expected  # type: ignore[arg-type]


def test_a_symbolic_size_is_checked_at_its_hint_and_says_so() -> None:
    (finding,) = Alignment(multiple=16).check(node((Sym("s0", hint=10), 16)))
    assert (finding.found, finding.advice) == ("dim 0 is s0 (hint 10)", "pad to 16: +60 % bytes")
    assert found(Alignment(multiple=16), (Sym("s0", hint=32),)) == []


def test_a_size_without_a_hint_is_not_silently_accepted() -> None:
    (finding,) = Alignment(multiple=16).check(node((Sym("u0"),)))
    assert finding.found == "dim 0 is u0 (no hint)" and "bound" in finding.fix


def test_every_tensor_of_a_tuple_is_checked_and_named() -> None:
    assert found(Alignment(multiple=8), (8,), (9,), (7,)) == ["output 1: dim 0 is 9", "output 2: dim 0 is 7"]


@pytest.mark.parametrize("multiple", [0, -8])
def test_a_multiple_below_one_is_refused(multiple: int) -> None:
    with pytest.raises(BadValue, match="must be 1 or more"):
        Alignment(multiple=multiple)


@pytest.mark.parametrize("multiple", [1, 7, 16, 96, 10**30])
@pytest.mark.parametrize("sizes", [(7, 14), (12, 30), (0, 8), (), (1,), (96, 48)])
def test_the_relaxed_multiple_is_the_largest_that_all_sizes_have(multiple: int, sizes: tuple[int, ...]) -> None:
    relaxed = Alignment(multiple=multiple).relaxed([NodeSignature(tensors=(TensorMeta("float32", sizes),))])
    assert relaxed is not None and all(size % relaxed.multiple == 0 for size in sizes)
    larger = range(relaxed.multiple + 1, min(multiple, 200) + 1)
    assert not [value for value in larger if all(size % value == 0 for size in sizes)]


@pytest.mark.parametrize(
    ("dim", "breaks"),
    [
        (Sym("s0", 16), False),
        (Sym("s0", 16, 2, 64), True),
        (Sym("16*s0", 32, 16, 1024), False),
        (Sym("s0", 16, 16, 16), False),
        (Sym("8*s0", 16, 8, 1024), True),
    ],
)
def test_a_range_with_an_end_is_checked_all_over(dim: Sym, breaks: bool) -> None:
    assert bool(found(Alignment(multiple=16), (dim,))) is breaks


def test_in_bytes_the_last_dimension_is_the_one_that_lies_together() -> None:
    channels_last = TensorMeta("float32", (2, 3, 8, 8), (192, 1, 24, 3))
    (finding,) = Alignment(multiple=32, unit="bytes", dims="last").check(NodeSignature(tensors=(channels_last,)))
    assert finding.found == "dim 1 is 3"
