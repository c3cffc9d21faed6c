"""Compile and launch the device's kernels."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import CodeCacheFuture


class Loop(NamedTuple):
    """A line of a kernel."""

    text: str


class LoopKernel:
    """A kernel that the wrapper calls; `idbg_lowered` offers what it was lowered to."""

    def __init__(self, name: str, types: Sequence[str], loops: Sequence[Loop]) -> None:
        self.name, self.loops = name, loops
        self._built = AsyncCompile().cpp_pybinding(list(types), "\n".join(loop.text for loop in loops) + "\n")

    def __call__(self, *args: object) -> None:
        if isinstance(self._built, CodeCacheFuture):
            self._built = self._built.result()
        self._built(*args)

    def idbg_lowered(self) -> Iterator[tuple[str, str, str]]:
        yield "loops", "cpp", "\n".join(loop.text for loop in self.loops) + "\n"


class LoopCompile(AsyncCompile):
    """`async_compile` of a wrapper for the device."""

    def loops(self, name: str, types: Sequence[str], loops: Sequence[Loop]) -> LoopKernel:
        return LoopKernel(name, types, loops)
