"""What is a graph to a search: which node reads which, and which cannot be an input?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Flow:
    """Nodes in the order in which they run, each with those nodes that it reads (no placeholders). A node of `bound`
    (a tuple, a function, a computed size) cannot be made an input: whatever reads it brings it along.
    """

    reads: Mapping[str, tuple[str, ...]]
    bound: frozenset[str] = frozenset()

    def closed(self, kept: Iterable[str]) -> frozenset[str]:
        """These nodes, and the bound ones that they cannot be without."""
        found: set[str] = set()
        stack = list(kept)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += [source for source in self.reads[name] if source in self.bound]
        return frozenset(found)

    def feeding(self, name: str) -> frozenset[str]:
        """The node, and all that it is computed from."""
        found: set[str] = set()
        stack = [name]
        while stack:
            if (one := stack.pop()) not in found:
                found.add(one)
                stack += self.reads[one]
        return frozenset(found)
