"""Indexes for what is looked up at every key."""

import os
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from idbg.schema.code import CompilerStage, Kernel, KernelCall
from idbg.schema.graphs import Graph, GraphId, Part
from idbg_tui import user_files


class OfLaunch(Protocol):
    """A record of one launch: which frame and part of it, and the handle that Inductor gave the launch."""

    @property
    def frame(self) -> str: ...
    @property
    def part(self) -> Part: ...
    @property
    def handle(self) -> str: ...


T = TypeVar("T", bound=OfLaunch)


class LaunchIndex(Generic[T]):
    """Finds the record of a launch in the time of a dict; built again for another list of records."""

    def __init__(self) -> None:
        self._records: Sequence[T] | None = None
        self._by_launch: dict[tuple[str, str, str], T] = {}

    def find(self, records: Sequence[T], kernel: Kernel, call: KernelCall) -> T | None:
        """The record of this launch among `records`, the last if there are several."""
        if self._records is not records:
            self._records = records
            self._by_launch = {(one.frame, one.part, one.handle): one for one in records}
        return self._by_launch.get((kernel.frame, kernel.part, call.handle))


class StageLines:
    """Finds the lines of a node in another compiler's stage, and the nodes of a line; built again for another stage."""

    def __init__(self) -> None:
        self._stage: CompilerStage | None = None
        self._lines: dict[str, list[int]] = {}
        self._nodes: dict[int, tuple[str, ...]] = {}

    def lines(self, stage: CompilerStage, names: Iterable[str]) -> frozenset[int]:
        """The lines that belong to these nodes of `stage.graph`."""
        self._index(stage)
        return frozenset(line for name in names for line in self._lines.get(name, ()))

    def nodes(self, stage: CompilerStage, line: int) -> tuple[str, ...]:
        """The nodes that a line belongs to."""
        self._index(stage)
        return self._nodes.get(line, ())

    def _index(self, stage: CompilerStage) -> None:
        if self._stage is stage:
            return
        self._stage, self._nodes, self._lines = stage, dict(stage.links), {}
        for line, names in stage.links:
            for name in names:
                self._lines.setdefault(name, []).append(line)


class SourceFiles:
    """Collects the files that the nodes of all graphs come from; each graph is read once."""

    def __init__(self) -> None:
        self._files: frozenset[str] = frozenset()
        self._graphs: dict[GraphId, Graph] = {}  # those whose files are in `_files`

    def among(self, graphs: Iterable[Graph], own: str) -> frozenset[str]:
        """The files of these graphs and of all before, and `own`, the program's, unless it is one of them by another
        spelling."""
        for graph in graphs:
            if self._graphs.get(graph.id) is not graph:
                self._graphs[graph.id] = graph
                self._files |= {node.file for node in graph.nodes if node.file}
        alike = {user_files.real(file) for file in self._files if os.path.basename(file) == os.path.basename(own)}
        known = not os.path.isabs(own) or user_files.real(own) in alike
        return self._files if known else self._files | {own}
