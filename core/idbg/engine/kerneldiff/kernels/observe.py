"""Observe the launches of a compiled program in one call, without changing its kernels.

The program is compiled as usual and runs once with each wrapper watched (watch.py): fusion, kernels and their order
stay the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.kernels.nonfinite import first_of_each
from idbg.engine.kerneldiff.kernels.watch import Watch
from idbg.engine.kerneldiff.tensors.allowance import GIVEN_K
from idbg.schema.diff import KernelError
from idbg.schema.faults import NanOrigin


class Observation:
    """The graphs that were compiled since it was created. Each is watched in its first call after `begin`. `problem`
    says why one is not.
    """

    def __init__(self, k: float = GIVEN_K) -> None:
        self.k = k
        self.problem = ""
        self.watches: list[Watch] = []
        self._begun = False

    @property
    def kernels(self) -> tuple[KernelError, ...]:
        """Every launch, in the order of the graphs' first calls; those of graphs that were not called come last."""
        return tuple(error for watch in self._in_order() for error in watch.errors())

    @property
    def launches(self) -> tuple[tuple[Watch, int], ...]:
        """For each of `kernels`: its wrapper, and its position among the wrapper's launches (beyond them for one in a
        branch).
        """
        return tuple((watch, place) for watch in self._in_order() for place, _ in enumerate(watch.errors()))

    @property
    def nan_origins(self) -> tuple[NanOrigin, ...]:
        """The first NaN, and the first infinity, that a launch wrote where eager has none."""
        return first_of_each(origin for watch in self._in_order() for origin in watch.nan_origins())

    def _in_order(self) -> list[Watch]:
        return sorted(self.watches, key=lambda watch: watch.called or len(self.watches) + 1)

    def compiled(self, graph: comparing.InductorGraph) -> None:
        """Watch a graph that Inductor has just compiled; sets `problem` if it cannot be watched."""
        if graph.is_cpp_wrapper:
            self.problem = "kernels cannot be observed under a C++ wrapper (Inductor's option cpp_wrapper)"
            return
        if any(graph.module is watch.graph.module for watch in self.watches):
            return
        try:
            watch = Watch(graph, self.k, self._count)
        except ValueError as error:
            self.problem = f"a wrapper of Inductor's could not be read: {error}"
            return
        self.watched(watch)
        if self._begun:
            watch.start()

    def watched(self, watch: Watch) -> None:
        """A graph is watched from here on."""
        self.watches.append(watch)

    @contextmanager
    def begun(self) -> Iterator[None]:
        """While it lasts, first calls are observed, also of graphs that were compiled before."""
        self._begun = True
        for watch in self.watches:
            watch.start()
        with comparing.observe_uncached_graphs(self.compiled, self.cannot_watch):
            try:
                yield
            finally:
                for watch in self.watches:
                    watch.stop()

    def cannot_watch(self, why: str) -> None:
        """Called for a graph that cannot be watched."""
        self.problem = self.problem or why

    def _count(self) -> int:
        return 1 + sum(watch.called > 0 for watch in self.watches)


@contextmanager
def observing(k: float = GIVEN_K) -> Iterator[Observation]:
    """While it lasts, Inductor compiles without its caches, and the first call of each graph is observed."""
    observation = Observation(k)
    with observation.begun():
        yield observation
