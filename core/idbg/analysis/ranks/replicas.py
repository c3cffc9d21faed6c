"""Hold the values of nodes in all ranks against one another: where data parallel replicas part.

Replicas have equal parameters, and other batches: values differ from the inputs on. What must agree is a parameter or
buffer of DistributedDataParallel's, a DTensor's parameter that is replicated, the result of a collective, and each node
whose inputs agree.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence

from idbg.analysis.ranks.normal import fewest_first
from idbg.schema.node_values import NodeValue
from idbg.schema.ranks import DifferenceKind, FrameDigest, NodePlace, RankDifference, RankSide

Frames = Mapping[int, FrameDigest]
Values = Mapping[str, Mapping[int, NodeValue]]  # by node, then by rank


def differences(function: str, nth: int, frames: Frames) -> Iterator[RankDifference]:
    """Of one compile in all ranks that have it: the first call in which something parts, and all that does there but
    follows from nothing before it.
    """
    same_graph = _largest_with_equal_graphs(frames)
    if len(same_graph) < 2:
        return
    places = {place.name: place for place in next(iter(same_graph.values())).nodes}
    for call in sorted({each.call for frame in same_graph.values() for each in frame.values}):
        values = _values(same_graph, call)
        found: dict[Hashable, list[tuple[DifferenceKind, str, Sequence[tuple[int, ...]]]]] = {}
        for each in _parted(values, places):
            kind, name, by_value = each
            alike = (kind, *by_value) if kind == "replica" else name  # of a model's parameters mostly all part
            found.setdefault(alike, []).append(each)
        for (kind, name, by_value), *more in found.values():
            sides = tuple(_sides(values[name], by_value, same_graph, _line_of(places, name)))
            yield RankDifference(
                kind=kind, sides=sides, frame=function, nth=nth, what=name, number=call, more=len(more)
            )
        if found:
            return


def _largest_with_equal_graphs(frames: Frames) -> Frames:
    """Those of the ranks whose Dynamo graphs are equal, of which there are most."""
    groups: dict[object, dict[int, FrameDigest]] = {}
    for rank, frame in frames.items():
        if frame.values:
            groups.setdefault(dict(frame.graphs).get("dynamo"), {})[rank] = frame
    return max(groups.values(), key=len, default={})


def _values(frames: Frames, call: int) -> Values:
    found: dict[str, dict[int, NodeValue]] = {}
    for rank, frame in frames.items():
        for measured in frame.values:
            for value in measured.values if measured.call == call else ():
                found.setdefault(value.node, {})[rank] = value
    return found


def _parted(
    values: Values, places: Mapping[str, NodePlace]
) -> Iterator[tuple[DifferenceKind, str, Sequence[tuple[int, ...]]]]:
    """What must agree and does not: its kind, the node, and the ranks by value."""
    parted: set[str] = set()  # nodes that differ between ranks, or may
    for name, place in places.items():
        measured = values.get(name)
        follows = not parted.isdisjoint(place.inputs)
        if measured is None:
            if follows:
                parted.add(name)
            continue
        first = next(iter(measured.values()))
        for ranks in dict.fromkeys(value.equal_in for value in measured.values()):
            by_value = fewest_first({rank: measured[rank].checksum for rank in ranks if rank in measured})
            if len(by_value) > 1:
                yield ("result" if place.inputs else "replica"), name, by_value
        checksums = {rank: value.checksum for rank, value in measured.items()}
        is_read, by_value = "" not in checksums.values(), fewest_first(checksums)
        if is_read and len(by_value) == 1:
            continue
        parted.add(name)
        if is_read and place.inputs and not follows and not first.equal_in and not first.random:
            yield "node", name, by_value


def _sides(
    measured: Mapping[int, NodeValue], groups: Sequence[tuple[int, ...]], frames: Frames, place: tuple[str, int]
) -> Iterator[RankSide]:
    for ranks in groups:
        frame = frames[ranks[0]]
        file, line = place if place[0] else (frame.file, frame.line)
        yield RankSide(ranks=ranks, frame=frame.id, file=file, line=line, node_value=measured[ranks[0]])


def _line_of(places: Mapping[str, NodePlace], name: str) -> tuple[str, int]:
    """The user's line of a node; of an argument, that of the first node that reads it."""
    readers = (place for place in places.values() if place.name == name or name in place.inputs)
    return next(((place.file, place.line) for place in readers if place.file), ("", 0))
