"""Link the nodes of one stage with the nodes of the next, by names, arguments and lines of the program."""

from collections import defaultdict

from idbg.schema.graphs import Graph, Links

Pairs = tuple[tuple[str, str], ...]


def same_names(above: Graph, below: Graph) -> Links:
    """Link nodes of the same name, as between the joint graph and its forward and backward."""
    pairs = [(node.name, node.name) for node in below.nodes if node.name in above.by_name and node.op != "output"]
    return Links(above.id, below.id, tuple(pairs))


def through_passes(above: Graph, below: Graph) -> Links:
    """Link nodes of the same name, and replaced nodes with those that replace them by the program's line of both."""
    gone: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for node in above.nodes:
        if node.name not in below.by_name and node.line:
            gone[node.file, node.line].append(node.name)
    replaced = [
        (name, node.name)
        for node in below.nodes
        if node.name not in above.by_name and node.op != "placeholder"
        for name in gone.get((node.file, node.line), ())
    ]
    return Links(above.id, below.id, (*same_names(above, below).pairs, *replaced))


def by_line(above: Graph, below: Graph) -> Links:
    """Link nodes of the same line of the program, for a backend of which only printed graphs are known."""
    lines: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for node in above.nodes:
        if node.line:
            lines[node.file, node.line].append(node.name)
    pairs = [(name, node.name) for node in below.nodes for name in lines.get((node.file, node.line), ())]
    return Links(above.id, below.id, (*arguments(above, below), *pairs))


def arguments(above: Graph, below: Graph) -> Pairs:
    """AOTAutograd keeps the order of the arguments. Attributes of the graph below, such as AOTInductor's weights, keep
    their names; sizes above are then no arguments below.
    """
    taken = {node.name for node in above.nodes if node.op == "placeholder"}
    held = {node.target: node.name for node in below.nodes if node.op == "get_attr" and node.target in taken}
    names = [
        [node.name for node in graph.nodes if node.op == "placeholder" and node.role != "tangent"]
        for graph in (above, below)
    ]
    if held:
        names[0] = [name for name in names[0] if name not in held and above.by_name[name].tensors]
    given = tuple(zip(names[0], names[1], strict=True)) if len(names[0]) == len(names[1]) else ()
    return (*held.items(), *given)
