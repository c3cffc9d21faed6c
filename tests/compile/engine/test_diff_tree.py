"""Outputs of any shape become leaves with names that read as Python does, and are paired by them."""

from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from idbg.engine.kerneldiff.sides.leaf_comparison import ComparisonRules, compare_leaves, one_sided
from idbg.engine.kerneldiff.tensors.tree import Repeated, leaves, mapped, shared, snapshot
from idbg.schema.remarks import Remark
from idbg.views.remarks import tensor_note

Point = namedtuple("Point", "x y")
ONE, TWO = torch.ones(2), torch.full((2,), 2.0)


@dataclass
class Result:
    logits: Tensor
    loss: Tensor | None = None


class Layer:
    def __init__(self) -> None:
        self.keys, self.is_empty = ONE, False


class Cache:
    """An object that pytree does not know, with tensors below it."""

    def __init__(self) -> None:
        self.layers, self.name = [Layer(), Layer()], "cache"


def names(value: object) -> list[str]:
    return list(leaves(value))


def test_names_read_like_python() -> None:
    assert names(ONE) == ["out"]
    assert names((ONE, [TWO])) == ["out[0]", "out[1][0]"]
    assert names({"logits": ONE, 3: TWO, 'a"b/c': ONE}) == ['out["logits"]', "out[3]", 'out["a\\"b/c"]']
    assert names(Point(ONE, (TWO,))) == ["out.x", "out.y[0]"]
    assert names(Result(ONE)) == ["out.logits", "out.loss"]
    assert names(OrderedDict(a=ONE)) == ['out["a"]'] and names(deque([ONE])) == ["out[0]"]


def test_a_model_output_of_transformers_shows_what_it_has() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    assert names(outputs.BaseModelOutput(last_hidden_state=ONE)) == ["out.last_hidden_state"]


def test_tensors_below_an_unknown_object_are_found() -> None:
    assert "out.layers[1].keys" in names(Cache())
    assert "out.name" not in names(Cache())


def test_a_nested_tensor_is_the_tensors_that_it_holds() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert [value.shape for value in leaves(nested).values()] == [(2,), (3,)]  # type: ignore[attr-defined]


def test_none_numbers_and_empty_containers_are_leaves() -> None:
    assert leaves((None, 1.5, "a", {}, ())) == {
        "out[0]": None,
        "out[1]": 1.5,
        "out[2]": "a",
        "out[3]": {},
        "out[4]": (),
    }


def test_a_cycle_ends_where_it_began() -> None:
    inner: list[object] = [ONE]
    outer: dict[str, object] = {"inner": inner}
    inner.append(outer)
    found = leaves(outer)
    assert list(found) == ['out["inner"][0]', 'out["inner"][1]']
    assert found['out["inner"][1]'] == Repeated("out")


def test_an_object_that_holds_itself_ends_too() -> None:
    cache = Cache()
    cache.layers.append(cache)  # type: ignore[arg-type]
    assert leaves(cache)["out.layers[2]"] == Repeated("out")


def test_a_container_that_is_there_twice_is_no_cycle() -> None:
    pair = [ONE]
    assert names((pair, pair)) == ["out[0][0]", "out[1][0]"]


def test_shared_tensors_are_known_and_copied_once() -> None:
    found = leaves((ONE, TWO, ONE))
    assert shared(found) == {"out[2]": "out[0]"}
    copies = snapshot(found)
    assert copies["out[0]"] is copies["out[2]"] is not ONE


def test_a_snapshot_does_not_follow_its_buffer() -> None:
    buffer = torch.zeros(4)
    copies = snapshot(leaves(buffer[:2]))
    buffer.add_(1)
    assert torch.equal(copies["out"], torch.zeros(2))  # type: ignore[arg-type]


def test_mapping_keeps_what_is_shared() -> None:
    one, two = mapped((ONE, {"a": ONE}), lambda tensor: tensor + 1)  # type: ignore[misc]
    assert one is two["a"]


# Pairs


def diffs(reference: object, test: object, how: ComparisonRules | None = None) -> dict[str, tuple[str, ...]]:
    found = compare_leaves(leaves(reference), leaves(test), None, how or ComparisonRules())
    assert all(diff.passed == (not diff.failed_by) for diff in found)
    return {diff.name: diff.failed_by for diff in found}


def test_verdict_25_every_tensor_of_a_structure_is_compared() -> None:
    assert len(diffs({"a": ONE, "b": TWO}, {"a": ONE, "b": TWO})) == 2
    assert len(diffs((ONE, TWO, ONE), (ONE, TWO, ONE))) == 3
    nested = {"main": ONE, "extras": (ONE, TWO), "nested": {"a": TWO, "b": ONE}}
    assert list(diffs(nested, nested)) == [
        'out["main"]',
        'out["extras"][0]',
        'out["extras"][1]',
        'out["nested"]["a"]',
        'out["nested"]["b"]',
    ]


def test_what_is_missing_or_extra_is_a_finding() -> None:
    assert diffs((ONE, TWO), (ONE,)) == {"out[0]": (), "out[1]": ("missing",)}
    assert diffs({"a": ONE}, {"a": ONE, "b": TWO}) == {'out["a"]': (), 'out["b"]': ("extra",)}


def test_what_is_of_another_type_is_a_finding() -> None:
    assert diffs(ONE, None) == {"out": ("type",)}
    assert diffs(ONE, 1.0) == {"out": ("type",)}
    assert diffs((1,), (True,)) == {"out[0]": ("type",)}


def test_what_is_no_tensor_is_told_only_where_it_differs() -> None:
    assert diffs((None, "a", 3, torch.float32), (None, "a", 3, torch.float32)) == {}
    assert diffs(("a", 3), ("b", 4)) == {"out[0]": ("type",), "out[1]": ("type",)}


def test_floating_numbers_are_held_to_a_tolerance() -> None:
    assert diffs(1.0, 1.0 + 1e-9) == {"out": ()}
    assert diffs(1.0, 1.1) == {"out": ("tolerance",)}
    assert diffs(float("nan"), float("nan")) == {"out": ()} and diffs(1e300, 1e300) == {"out": ()}
    assert diffs(1 + 1j, 1 + 2j) == {"out": ("tolerance",)}


def test_numpy_arrays_are_compared_by_value() -> None:
    assert diffs(ONE.numpy(), ONE.numpy() + 1) == {"out": ("tolerance",)}


def test_the_same_cycle_on_both_sides_passes_and_another_does_not() -> None:
    def cyclic(deep: bool) -> list[object]:
        inner: list[object] = [ONE]
        outer: list[object] = [inner]
        inner.append(outer if deep else inner)
        return outer

    assert diffs(cyclic(True), cyclic(True)) == {"out[0][0]": ()}
    assert diffs(cyclic(True), cyclic(False))["out[0][1]"] == ("type",)


def test_a_shared_tensor_is_compared_once_and_noted() -> None:
    wrong = TWO + 1
    first, second = compare_leaves(leaves((ONE, ONE)), leaves((wrong, wrong)), None, ComparisonRules())
    assert tensor_note(second) == "the same tensor as out[0]" and not second.passed and second.max_abs == first.max_abs
    _, apart = compare_leaves(leaves((ONE, ONE)), leaves((ONE, wrong)), None, ComparisonRules())
    assert not apart.passed and not apart.note, "shared on one side only: both are looked at"


def test_an_output_may_have_tolerances_of_its_own() -> None:
    assert diffs((ONE, ONE), (ONE + 0.1, ONE + 0.1), ComparisonRules(tolerances={"out[0]": (0.2, 0.0)})) == {
        "out[0]": (),
        "out[1]": ("tolerance",),
    }


def test_what_one_side_gave_alone_has_no_figures() -> None:
    (diff,) = one_sided(leaves(ONE), None, Remark("side failed", "inductor"))
    assert (diff.passed, diff.max_abs, diff.test, tensor_note(diff)) == (
        False,
        None,
        None,
        "not compared: inductor failed",
    )
    assert diff.reference is not None and diff.reference.shape == (2,)
