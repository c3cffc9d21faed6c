"""Records of the values that the nodes of a graph have in one rank, by which data parallel replicas are compared."""

import msgspec


class NodeValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of one node of a Dynamo graph: a tensor, or several, of which the figures are those of the first.

    `checksum` is of its bits: equal for equal ones, "" where they cannot be read. `mean`, `std` (of the population) and
    `max_abs` are of its finite elements, in float64, and None where there are none. `nonfinite` counts NaN and
    infinities. `random`: the node draws random numbers. `equal_in`: the ranks that must have the same value, as the
    tensor is a replica of DistributedDataParallel's or a mesh's, or the result of a collective; empty where none must.
    """

    node: str
    checksum: str
    elements: int = 0
    mean: float | None = None
    std: float | None = None
    max_abs: float | None = None
    nonfinite: int = 0
    random: bool = False
    equal_in: tuple[int, ...] = ()


class CallValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values in the `call`-th call (from 1) of a compiled graph, run in eager; of later calls than the first those
    of its inputs alone.
    """

    frame: str
    call: int
    values: tuple[NodeValue, ...]
