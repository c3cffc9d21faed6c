"""Find the nodes that are a few edges from one of a graph."""

from idbg.schema.graphs import Graph

_ENDS = ("placeholder", "get_attr", "output")


def distances(graph: Graph, name: str, most: int) -> dict[str, int]:
    """Node name -> edges from the node of this name, for all that are at most so far from it, the nearest first.

    Inputs and users count alike. No way leads through an input, a weight or the output, which join nodes that have
    nothing to do with one another.
    """
    found, edge = {name: 0}, [name]
    for distance in range(1, most + 1):
        through = [far for far in edge if far == name or graph.by_name[far].op not in _ENDS]
        near = (other for far in through for other in (*graph.by_name[far].inputs, *graph.users.get(far, ())))
        edge = [other for other in dict.fromkeys(near) if other in graph.by_name and other not in found]
        found |= dict.fromkeys(edge, distance)
    return found
