"""Sizes that go together shrink together, whatever binds them: a product, a view, a convolution, a concatenation."""

import pytest
import torch

from idbg.engine.minify.shrink.dry_run import DryRun
from idbg.engine.minify.shrink.groups import Slot, groups
from idbg.engine.minify.shrink.parts import taken_apart
from tests.harness.shrinking import candidate, shrink, where

CASES: dict[str, tuple[list[str], dict[str, tuple[int, ...]], list[str], list[str]]] = {
    "a layer norm": (
        ["y = torch.nn.functional.layer_norm(x, (768,), w, b, 1e-05)"],
        {"x": (4, 8, 768), "w": (768,), "b": (768,)},
        ["y = torch.nn.functional.layer_norm(x, (1,), w, b)"],
        ["1, 1, 1", "1", "1"],
    ),
    "a convolution, flattened": (
        [
            "c = torch.conv2d(x, w, None, (1, 1), (0, 0), (1, 1), 1)",
            "f = torch.flatten(c, 1)",
            "y = torch.nn.functional.linear(f, v, None)",
        ],
        {"x": (2, 3, 10, 10), "w": (4, 3, 3, 3), "v": (10, 256)},
        ["c = torch.conv2d(x, w)", "f = torch.flatten(c, 1)", "y = torch.nn.functional.linear(f, v)"],
        ["1, 1, 1, 1", "1, 1, 1, 1", "1, 1"],
    ),
    "grouped channels": (
        ["y = torch.conv2d(x, w, b, (1, 1), (1, 1), (1, 1), 64)"],
        {"x": (2, 64, 14, 14), "w": (64, 1, 3, 3), "b": (64,)},
        ["y = torch.conv2d(x, w, b, (1, 1), (1, 1))"],
        ["1, 1, 1, 1", "1, 1, 1, 1", "1"],
    ),
    "a concatenation": (
        ["y = torch.cat([a, b], dim=1)", "z = y.view(4, 48)"],
        {"a": (4, 16), "b": (4, 32)},
        ["y = torch.cat([a, b], dim=1)", "z = y.view(1, 2)"],
        ["1, 1", "1, 1"],
    ),
    "thirds of a projection": (
        [
            "q = torch.nn.functional.linear(x, w, b)",
            "a = q.reshape(2, 49, 3, 4, 8)",
            "p = a.permute(2, 0, 3, 1, 4)",
            "u = p[0]",
            "v = p[1]",
            "y = u @ v.transpose(-2, -1)",
        ],
        {"x": (2, 49, 32), "w": (96, 32), "b": (96,)},
        [
            "q = torch.nn.functional.linear(x, w, b)",
            "a = q.reshape(1, 1, 2, 1, 1)",
            "p = a.permute(2, 0, 3, 1, 4)",
            "u = p[0]",
            "v = p[1]",
            "y = u @ v.transpose(-2, -1)",
        ],
        ["1, 1, 1", "2, 1", "2"],
    ),
    "windows of a picture": (
        ["a = x.view(2, 4, 7, 4, 7, 32)", "b = a.permute(0, 1, 3, 2, 4, 5)", "c = b.reshape(-1, 49, 32)", "y = c @ w"],
        {"x": (2, 28, 28, 32), "w": (32, 96)},
        ["a = x.view(1, 1, 1, 1, 1, 1)", "b = a.permute(0, 1, 3, 2, 4, 5)", "c = b.reshape(-1, 1, 1)", "y = c @ w"],
        ["1, 1, 1, 1", "1, 1"],
    ),
    "items of a split": (
        ["s = torch.split(x, 64, dim=1)", "y = s[0] + s[1] * s[2]"],
        {"x": (4, 192)},
        ["s = torch.split(x, 1, dim=1)", "y = s[0] + s[1] * s[2]"],
        ["1, 3"],
    ),
    "what only statements make": (
        ["y = x.expand(8, 16, 32)", "z = y.reshape(128, 32)", "r = z @ w"],
        {"x": (16, 32), "w": (32, 5)},
        ["y = x.expand(1, 1, 1)", "z = y.reshape(1, 1)", "r = z @ w"],
        ["1, 1", "1, 1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_all_sizes_come_down_in_a_few_tries_each_of_which_runs(name: str):
    lines, shapes, statements, left = CASES[name]
    first = candidate(lines, f"({lines[-1].partition(' ')[0]},)", {at: torch.randn(shapes[at]) for at in shapes})
    runs = where(lambda named: True, len(lines))
    found, told = shrink(first, runs)
    assert [*found.draft.statements] == statements
    assert [each.text for each in found.draft.arguments] == [f"torch.ones({sizes})" for sizes in left]
    assert len(told.asked) <= 6 + 2 * len(lines)
    assert all(map(where(lambda named: True), told.asked))


def test_two_factors_of_one_size_are_told_apart():
    lines = ["q = x.view(8, 16, 4, 32)", "p = q.transpose(1, 2).reshape(8, 4, 512)"]
    parts = taken_apart(candidate(lines, "(p,)", {"x": torch.randn(8, 16, 128)}))
    found = {group.size(parts): group.slots for group in groups(parts, DryRun(parts))}
    heads, width = Slot("number", at=2), Slot("number", at=3)
    assert {Slot("dim", "x", 2), heads} <= found[4]
    assert {Slot("dim", "x", 2), width} <= found[32]
    assert width not in found[4]
    assert heads not in found[32]


def test_where_it_takes_long_to_run_them_sizes_of_one_value_go_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("idbg.engine.minify.shrink.dry_run._LONG", 0.0)
    first = candidate(["y = x.view(8, 48) * 2"], "(y,)", {"x": torch.randn(8, 8, 6)})
    found, _ = shrink(first, where(lambda named: named["y"].shape[0] > 1))
    assert found.draft.arguments[0].text == "torch.ones(2, 2, 1)"
    assert found.draft.statements == ("y = x.view(2, 2) * 2",)
