"""Which value comes next, of each kind of key?"""

import pytest

from idbg.accelerators.values import stepped


@pytest.mark.parametrize(
    ("kind", "key", "value", "up", "down"),
    [
        ("alignment", "multiple", 7, 8, 4),
        ("alignment", "multiple", 1, 2, 1),
        ("alignment", "unit", "bytes", "elements", "elements"),
        ("alignment", "dims", "last 2", "all", "last"),
        ("alignment", "dims", (0, -1), (0, -1), (0, -1)),
        ("alignment", "batch", True, False, False),
        ("alignment", "severity", "pad", "fallback", "tile"),
        ("alignment", "tensors", "all", "results", "operands"),
        ("max_dim", "max", 65535, 65536, 32768),
        ("memory", "max_bytes", 1 << 34, 1 << 35, 1 << 33),
        ("memory", "max_bytes", float("inf"), float("inf"), float("inf")),
        ("rank", "max", 4, 5, 3),
        ("rank", "min", 0, 1, 0),
        ("matmul_tile", "k", None, None, None),
        ("dtype", "name", "my dtypes", "my dtypes", "my dtypes"),
    ],
)
def test_a_value_goes_one_step_of_its_own_kind(kind: str, key: str, value: object, up: object, down: object) -> None:
    assert stepped(kind, key, value, up=True) == up
    assert stepped(kind, key, value, up=False) == down
