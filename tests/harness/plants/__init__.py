"""Which errors are planted into torch's own pipeline, and what must be said of each?"""

from tests.harness.plants import backends, decompositions, kernels, lowerings, partitioner, passes, tracing, wrappers
from tests.harness.plants.plant import Plant

PLANTS: tuple[Plant, ...] = tuple(
    plant
    for room in (tracing, decompositions, passes, partitioner, lowerings, wrappers, kernels, backends)
    for plant in room.PLANTS
)
