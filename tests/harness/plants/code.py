"""Errors in the output code: it is edited when Inductor has written it, before it is loaded."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.harness.plants.plant import Planting

Edit = Callable[[str], str]
POISON = "777.0"  # stands for what memory may hold: else it often holds what is right, from the run before


def edited(edit: Edit, *, backward: bool = False, poisoned: bool = False) -> Planting:
    """The text of each forward (or backward) graph's module, kernels and wrapper, is changed by `edit`.

    `poisoned`: new buffers are not what the last run left there. The edit must keep the number of lines.
    """

    @contextmanager
    def planting() -> Iterator[None]:
        from torch._inductor.graph import GraphLowering

        original = GraphLowering.codegen

        def codegen(graph: GraphLowering) -> Any:
            written, kernels = original(graph)
            if bool(graph.is_backward) == backward:
                text = edit(written.value)
                written = replace(written, value=_poisoned(text) if poisoned else text)
            return written, kernels

        with patch.object(GraphLowering, "codegen", codegen):
            yield

    return planting


def _poisoned(text: str) -> str:
    """New buffers of floats are filled, by the functions that the module makes them with."""
    filled = f"(lambda new: lambda *how: made.fill_({POISON}) if (made := new(*how)).is_floating_point() else made)"
    makers = r"^(empty_strided_\w+) = (torch\._C\._dynamo\.guards\.\w+)$"
    return re.sub(makers, rf"\1 = {filled}(\2)", text, flags=re.M)


def replaced(pattern: str, new: str, *, count: int = 0, kernel: str = "") -> Edit:
    """Each place that the pattern matches, or the first `count`; `kernel`: in the kernels whose name holds it alone."""

    def edit(text: str) -> str:
        if not kernel:
            return re.sub(pattern, new, text, count=count, flags=re.M)
        parts = re.split(r"(?m)^(?=\w+ = async_compile\.)", text)
        return "".join(
            re.sub(pattern, new, part, count=count) if kernel in part.split("=")[0] else part for part in parts
        )

    return edit
