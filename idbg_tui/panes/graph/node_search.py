"""Search the nodes of a graph by words."""

import re
import time
from collections.abc import Callable

from idbg.schema.graphs import Graph, Node

Terms = Callable[[str], Callable[[int], bool] | None]
"""What a word requires of a node beyond its text, as a test of the node's index; None for a word that is text."""


class NodeSearch:
    """A graph made searchable: every word must occur in a node's name, op, module, dtype, shape or line.

    A single word that occurs nowhere is tried as a subsequence of names ("cvn1" finds convolution_1). The index is
    built a slice at a time by `prepare`, so that opening a graph of 100,000 nodes does not wait for it.
    """

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes
        self._texts: list[str] = []

    def prepare(self, seconds: float | None = None) -> bool:
        """Work on the index for about this long (None: to the end). True when it is complete."""
        end = None if seconds is None else time.perf_counter() + seconds
        while len(self._texts) < len(self._nodes):
            if end is not None and time.perf_counter() > end:
                return False
            first = len(self._texts)
            self._texts += [_text(node) for node in self._nodes[first : first + 1000]]
        return True

    def find(self, query: str, terms: Terms | None = None) -> list[int]:
        """Indices of the nodes that match, in graph order. `terms` knows words like `k:5`."""
        self.prepare()
        words = [(word, terms(word) if terms else None) for word in query.lower().split()]
        tests = [test for _, test in words if test is not None]
        first, *others = [word for word, test in words if test is None] or [""]
        matches = [index for index, text in enumerate(self._texts) if first in text]
        if tests:
            matches = [index for index in matches if all(test(index) for test in tests)]
        for word in others:
            matches = [index for index in matches if word in self._texts[index]]
        if matches or others or tests or len(first) < 2:
            return matches
        pattern = re.compile(".*?".join(map(re.escape, first)), re.IGNORECASE)
        return [index for index, node in enumerate(self._nodes) if pattern.search(node.name)]


def _text(node: Node) -> str:
    tensor = node.tensors[0] if node.tensors else None
    kind = f"{tensor} {tensor.dtype}" if tensor else ""
    file = node.file.rpartition("/")[2]
    module = f"{node.module} {node.module_class}"
    return f"{node.name} {node.target} {node.op} {node.role} {module} {kind} {file}:{node.line}".lower()
