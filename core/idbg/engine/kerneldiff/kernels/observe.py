"""Which of Inductor's kernels computes something else than the nodes that it stands for?

The program is compiled anew, as it always is, and runs once, each wrapper watched (watch.py): fusion, kernels and their
order are what they are without us.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.kernels.nonfinite import first_of_each
from idbg.engine.kerneldiff.kernels.watch import Watch
from idbg.engine.kerneldiff.tensors.allowance import GIVEN_K
from idbg.schema.diff import KernelError
from idbg.schema.errors import BadInput
from idbg.schema.faults import NanOrigin


class Observation:
    """The graphs that were compiled since it was made, each watched for its first call after `begin`. `problem` says
    why one is not.
    """

    def __init__(self, k: float = GIVEN_K, on_watch: Callable[[Watch], None] | None = None) -> None:
        self.k = k
        self.on_watch = on_watch
        self.problem = ""
        self.watches: list[Watch] = []
        self._begun = False

    @property
    def kernels(self) -> tuple[KernelError, ...]:
        """Every launch, in the order of the graphs' first calls; of graphs that were not called last."""
        return tuple(error for watch in self._in_order() for error in watch.errors())

    @property
    def launches(self) -> tuple[tuple[Watch, int], ...]:
        """For each of `kernels` its wrapper, and its place among that one's launches: beyond them in a branch."""
        return tuple((watch, place) for watch in self._in_order() for place, _ in enumerate(watch.errors()))

    @property
    def births(self) -> tuple[NanOrigin, ...]:
        """The first NaN, and the first infinity, that a launch wrote where eager has none."""
        return first_of_each(birth for watch in self._in_order() for birth in watch.births())

    def _in_order(self) -> list[Watch]:
        return sorted(self.watches, key=lambda watch: watch.called or len(self.watches) + 1)

    def compiled(self, graph: comparing.InductorGraph) -> None:
        """Watch a graph that Inductor has just compiled; `problem` says why where it cannot be."""
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
        self.watches.append(watch)
        if self.on_watch is not None:
            self.on_watch(watch)
        if self._begun:
            watch.start()

    @contextmanager
    def begun(self) -> Iterator[None]:
        """While it lasts, first calls are observed: of graphs that were compiled before too."""
        self._begun = True
        for watch in self.watches:
            watch.start()
        with comparing.observe_uncached_graphs(self.compiled, self.unread):
            try:
                yield
            finally:
                for watch in self.watches:
                    watch.stop()

    def unread(self, why: str) -> None:
        """Called for a graph that cannot be watched: the others are."""
        self.problem = self.problem or why

    def _count(self) -> int:
        return 1 + sum(watch.called > 0 for watch in self.watches)


@dataclass(frozen=True)
class Rerun:
    """What was observed, and the compiled program: what runs it again."""

    observation: Observation
    call: Callable[..., object]


@contextmanager
def observing(k: float = GIVEN_K, on_watch: Callable[[Watch], None] | None = None) -> Iterator[Observation]:
    """While it lasts, whatever Inductor compiles is compiled anew, and its first call is observed; `on_watch` is told
    of each graph that will be.
    """
    observation = Observation(k, on_watch)
    with observation.begun():
        yield observation


def observe(run: Callable[[], object], *, k: float = GIVEN_K) -> tuple[KernelError, ...]:
    """Every kernel launch of what `run` compiles with Inductor and calls, in order. Raises BadInput if
    there are none.

    Of a graph that is called more than once the first call is observed.
    """
    with observing(k) as observation:
        run()
    if not observation.watches:
        raise BadInput(
            observation.problem or "Inductor compiled nothing in this run, so there are no kernels to observe",
            hint="bisect the graph instead (kerneldiff.bisect)"
            if observation.problem
            else "reset what was compiled before (torch._dynamo.reset()), and use a backend that lowers by Inductor",
        )
    return observation.kernels


def first_bad(kernels: tuple[KernelError, ...]) -> int | None:
    """The place of the first kernel whose error exceeds its inputs'."""
    return next((place for place, kernel in enumerate(kernels) if kernel.bad), None)


def observe_model(
    model: Callable[..., object],
    args: tuple[object, ...] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    options: dict[str, Any] | None = None,
    dynamic: bool | None = None,
    k: float = GIVEN_K,
) -> tuple[KernelError, ...]:
    """`observe` for one call of the model, and its backward if there is a loss; the caller restores its state.

    `options` are Inductor's.
    """
    torch._dynamo.reset()

    def run() -> None:
        with torch.set_grad_enabled(loss is not None):
            output = torch.compile(model, dynamic=dynamic, options=dict(options or {}))(*args, **(kwargs or {}))
            if loss is not None:
                loss(output).backward()  # type: ignore[no-untyped-call]

    return observe(run, k=k)
