"""Build candidate scripts from some of a graph's nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch.fx import Node as FxNode

from idbg.engine.capture.run import RunCapture, SavedGraph
from idbg.engine.compat import repros
from idbg.engine.repro.draft import Candidate, Draft, Heading, Raises
from idbg.engine.repro.node_values import Recorder
from idbg.engine.repro.recipes import without_data
from idbg.engine.repro.source import NodeSource, commented, name_of
from idbg.engine.repro.values import arguments, recorder_of, requires_grad, sizes_of, trained, values
from idbg.engine.repro.violation import SubgraphExtractor
from idbg.reduce.nodes import Flow
from idbg.schema.graphs import Graph, Node


@dataclass
class CandidateBuilder:
    """Builds candidates from one graph. `template` is a draft without arguments and statements, `heading` that of the
    graph's scripts. Without `keep_data`, candidates have none of the program's values.
    """

    capture: RunCapture
    graph: Graph
    template: Draft
    heading: Heading
    keep_data: bool = True

    @cached_property
    def held(self) -> SavedGraph | None:
        """The graph's module and inputs, if they are known."""
        return self.capture.saved_graphs.get(self.graph.id)

    @cached_property
    def flow(self) -> Flow:
        """The graph for `reduce.nodes`: nodes that are not a single tensor are bound to their readers."""
        names = {node.name for node in self._steps}
        reads = {node.name: tuple(name for name in node.inputs if name in names) for node in self._steps}
        return Flow(reads, frozenset(node.name for node in self._steps if self._is_bound(node)))

    def candidate(self, kept: frozenset[str], result: Sequence[str] = ()) -> Candidate:
        """A script of these nodes. Its arguments are the other nodes that they read; its results are `result`, or the
        nodes that no other of them reads.

        Raises ValueError if a node cannot be written as Python.
        """
        steps = [node for node in self._steps if node.name in kept]
        first_reader: dict[str, str] = {}
        for node in steps:
            for name in node.inputs:
                if name not in kept:
                    first_reader.setdefault(name, node.name)
        inputs = [node for node in self._own if node.name in first_reader]
        inputs, lines = self._extractor.sized(inputs)
        source = NodeSource(self.held.gm if self.held else None, set(map(name_of, self._arrays)))
        last = ""
        for node in steps:
            more, last = commented(node, source.statements(node), last)
            lines += more
        readers = {node.name: first_reader[node.name] for node in inputs}
        known = values(self.capture, self.graph, readers, self._recorder)
        tensors, given = arguments(inputs, known, self._trained)
        devices = {name_of(node.name): node.tensor.device for node in inputs if node.tensor is not None}
        draft = replace(
            self.template,
            arguments=tuple(
                replace(
                    each,
                    device=devices.get(each.name, "") or each.device,
                    is_array=each.name in source.arrays and not each.literal,
                    marked=self._marked.get(each.name, ()),
                )
                for each in given
            ),
            statements=tuple(lines),
            result=f"({', '.join(map(name_of, result or self._sinks(steps)))},)",
            values=known.note,
            imports=self.template.imports | source.imports,
            definitions=(*self.template.definitions, *source.definitions),
        )
        if not self.keep_data:
            return Candidate(without_data(draft, tensors), self.heading, dict)
        return Candidate(draft, self.heading, lambda: tensors)

    def _sinks(self, steps: Sequence[Node]) -> list[str]:
        """The nodes that the script returns: those that no other reads, and those that the graph returns."""
        read = {name for node in steps for name in node.inputs}
        values = [node for node in steps if not self._is_function(node)]
        sinks = [node for node in values if node.name not in read or node.name in self._returned]
        with_values = [node.name for node in sinks if node.tensors or node.unknown]
        return with_values or [node.name for node in sinks]

    @cached_property
    def _own(self) -> list[Node]:
        return [node for node in self.graph.nodes if "." not in node.name]

    @cached_property
    def _steps(self) -> list[Node]:
        return [node for node in self._own if node.op.startswith("call") or self._is_function(node)]

    @cached_property
    def _returned(self) -> set[str]:
        return {name for node in self._own if node.op == "output" for name in node.inputs}

    @cached_property
    def _live(self) -> dict[str, FxNode]:
        return {node.name: node for node in self.held.gm.graph.nodes} if self.held else {}

    @cached_property
    def _recorder(self) -> Recorder | None:
        return recorder_of(self.capture, self.graph)

    @cached_property
    def _extractor(self) -> SubgraphExtractor:
        module = self.held.gm if self.held else None
        return SubgraphExtractor(self.graph, module, sizes_of(self.capture, self.graph), self._arrays)

    @cached_property
    def _arrays(self) -> set[str]:
        given = self._recorder.given if self._recorder is not None else {}
        return {name for name, value in given.items() if isinstance(value, np.ndarray)}

    @cached_property
    def _marked(self) -> dict[str, tuple[int, ...]]:
        """The dimensions that the program marked as dynamic, if that is what fails."""
        check = self.template.check
        if self._recorder is None or not isinstance(check, Raises) or check.error != "ConstraintViolationError":
            return {}
        tensors = {name: value for name, value in self._recorder.given.items() if isinstance(value, torch.Tensor)}
        return {name_of(name): repros.marked_dynamic(tensor) for name, tensor in tensors.items()}

    @cached_property
    def _trained(self) -> set[str]:
        """The nodes that require grad, if the graph was compiled with a backward."""
        if self.held is None or not (given := trained(self.capture, self.graph.id)):
            return set()
        inside = {name for name, node in self._live.items() if node.op != "placeholder" and requires_grad(node)}
        return given | inside

    def _is_function(self, node: Node) -> bool:
        return node.op == "get_attr" and not node.tensors and self._extractor.is_function(node)

    def _is_bound(self, node: Node) -> bool:
        """Whether no argument can replace the node: a tuple, a function, a computed size, or a node without a value."""
        if len(node.tensors) != 1 or node.op == "get_attr":
            return True
        live = self._live.get(node.name)
        value = live.meta.get("example_value", live.meta.get("val")) if live is not None else None
        return isinstance(value, (tuple, list))
