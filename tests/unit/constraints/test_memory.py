"""No tensor is larger than the hardware's memory for one."""

from math import inf, nan

import pytest

from idbg.analysis.sizes import stored_bytes
from idbg.constraints import BadValue
from idbg.constraints.memory import Memory
from idbg.schema.graphs import Dim, Node, Sym, TensorMeta
from tests.harness.signatures import signature_of


def check(
    limit: float, *shape: Dim, dtype: str = "float32", stride: tuple[int, ...] = ()
) -> list[tuple[str, str, str]]:
    node = Node(name="n", op="placeholder", target="x", tensors=(TensorMeta(dtype, shape, stride),))
    return [
        (finding.found, finding.wanted, finding.fix) for finding in Memory(max_bytes=limit).check(signature_of(node))
    ]


def test_a_tensor_over_the_limit_is_told_in_bytes() -> None:
    ((found, wanted, fix),) = check(1024, 100, 100)
    assert (found, wanted) == ("40000 bytes", "at most 1024 bytes")
    assert "40 pieces" in fix


def test_large_figures_are_given_in_binary_units_too() -> None:
    ((found, wanted, _),) = check(2**30, 1024, 1024, 512)
    assert found == "2147483648 bytes (2.0 GiB)" and wanted == "at most 1073741824 bytes (1.0 GiB)"


@pytest.mark.parametrize(("limit", "shape"), [(40000, (100, 100)), (inf, (10**9, 10**9)), (0, (0, 5)), (4, ())])
def test_a_tensor_within_the_limit_is_accepted(limit: float, shape: tuple[int, ...]) -> None:
    assert check(limit, *shape) == []


def test_the_dtype_decides_the_bytes() -> None:
    assert check(800, 100, dtype="float64") == [] and check(799, 100, dtype="float64") != []


def test_an_expanded_dimension_takes_no_memory_of_its_own() -> None:
    assert stored_bytes(TensorMeta("float32", (1000, 8), (0, 1))) == 32
    assert check(1024, 1000, 8, stride=(0, 1)) == []


def test_symbols_are_taken_at_their_hints_and_the_finding_says_so() -> None:
    ((found, _, _),) = check(1024, Sym("s0", hint=10), 1000)
    assert found == "40000 bytes (with s0 = 10)"
    assert check(1024, Sym("u0"), 1000) == []


@pytest.mark.parametrize("limit", [-1, nan])
def test_a_limit_that_makes_no_sense_is_refused(limit: float) -> None:
    with pytest.raises(BadValue, match="must be 0 or more"):
        Memory(max_bytes=limit)
