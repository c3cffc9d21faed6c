"""Whose the error of a launch is, asked of small programs, with wrappers that are edited as Inductor writes them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import torch
from torch._inductor.codecache import PyCodeCache
from torch._inductor.graph import GraphLowering

from idbg import KernelDiff
from idbg.engine.kerneldiff.comparison import ComparisonRun
from idbg.schema.attribution import KernelAttribution
from idbg.schema.diff import DiffReport


@contextmanager
def edited(edit: Callable[[str], str]) -> Iterator[list[str]]:
    """Every wrapper's text is edited on its way to its file; gives those that were changed."""
    codegen = GraphLowering.codegen
    changed: list[str] = []

    def edited_codegen(graph: GraphLowering) -> object:
        code, kernels = codegen(graph)
        text = edit(code.value)
        if text != code.value:
            changed.append(text)
        code.value = text
        return code, kernels

    PyCodeCache.cache_clear()
    with (
        mock.patch.object(GraphLowering, "codegen", edited_codegen),
        torch._inductor.config.patch(fx_graph_cache=False),
    ):
        yield changed
    PyCodeCache.cache_clear()


class Owned:
    """One comparison with its kernels, to be asked for owners."""

    def __init__(self, model: Callable[..., object], inputs: object, **how: object) -> None:
        torch._dynamo.reset()
        comparison = KernelDiff(model, inputs, per_kernel=True, **how).begin()  # type: ignore[arg-type]
        self.comparison: ComparisonRun = comparison
        self.report: DiffReport = comparison.run()

    def place(self, name: str) -> int:
        """The place of the first launch whose kernel's name has this in it."""
        return next(at for at, kernel in enumerate(self.report.kernels) if name in kernel.name)

    def owner(self, launch: int | str | None = None) -> KernelAttribution:
        """Of this launch, or of the first bad one."""
        if launch is None:
            assert self.report.first_bad_kernel is not None, [each.name for each in self.report.kernels]
            launch = self.report.first_bad_kernel
        at = self.place(launch) if isinstance(launch, str) else launch
        return self.comparison.owner(self.report, at).verdict
