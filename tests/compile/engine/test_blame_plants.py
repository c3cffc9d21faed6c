"""Is every error that is planted into Inductor's pipeline named at its stage, its node, its maker and its line?"""

import pytest

from tests.harness.plants import PLANTS
from tests.harness.plants.plant import Plant, misnamed


def is_quick(plant: Plant) -> bool:
    """The first of its kind; templates take seconds to compile."""
    return plant.kind != "template" and plant is next(each for each in PLANTS if each.kind == plant.kind)


def as_parameter(plant: Plant) -> object:
    marks = [] if is_quick(plant) else [pytest.mark.slow]
    return pytest.param(plant, id=plant.id, marks=marks)


@pytest.mark.parametrize("plant", [as_parameter(plant) for plant in PLANTS if "cpu" in plant.devices])
def test_a_planted_error_is_named(plant: Plant) -> None:
    report = plant.compared()
    assert not misnamed(plant, report), report.summary()
