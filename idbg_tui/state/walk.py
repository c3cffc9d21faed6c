"""Where do the keys that walk along a graph's edges lead?"""

from dataclasses import dataclass
from typing import Literal

from idbg.constraints import Findings
from idbg.schema.graphs import Graph

Relation = Literal["input", "user"]


@dataclass
class Walker:
    """Follows inputs and users; remembers the last step, so that the next sibling can be had instead."""

    _origin: str = ""
    _relation: Relation = "input"
    _turn: int = 0
    _at: str = ""

    def step(self, graph: Graph, name: str, relation: Relation, turn: int) -> str | None:
        """The name of the next node, or None where there is no neighbour.

        With `turn` 0 it is the first neighbour of `name`, with 1 the sibling after the one that the last step went to.
        """
        again = turn and name == self._at and relation == self._relation and self._origin in graph.by_name
        origin = self._origin if again else name
        near = graph.by_name[origin].inputs if relation == "input" else graph.users.get(origin, ())
        near = tuple(dict.fromkeys(near))
        if not near:
            return None
        self._turn = (self._turn + turn) % len(near) if again else 0
        self._origin, self._relation, self._at = origin, relation, near[self._turn]
        return self._at


def next_broken(graph: Graph, findings: Findings, name: str, step: int) -> str | None:
    """The next (or previous) node after `name` that breaks a rule, over the end to the beginning; None if none does."""
    broken = findings.broken_nodes()
    if not broken:
        return None
    here = next((index for index, node in enumerate(graph.nodes) if node.name == name), -1)
    if step > 0:
        index = next((place for place in broken if place > here), broken[0])
    else:
        index = next((place for place in reversed(broken) if place < here), broken[-1])
    return graph.nodes[index].name
