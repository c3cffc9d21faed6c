"""Is every error that is planted into Inductor's pipeline named at its stage, its node, its maker and its line?"""

import pytest

from tests.harness.plants import PLANTS
from tests.harness.plants.plant import Plant, misnamed

pytestmark = pytest.mark.slow

FOREIGN = "the ATen graphs that AOTAutograd gives to a backend of others are not looked at"
OPEN = {
    "backend-aten-forward-bfloat16": FOREIGN,
    "backend-backward-backward-float32": FOREIGN,
}


def as_parameter(plant: Plant) -> object:
    known = [pytest.mark.xfail(reason=OPEN[plant.id], strict=True)] if plant.id in OPEN else []
    return pytest.param(plant, id=plant.id, marks=known)


@pytest.mark.parametrize("plant", [as_parameter(plant) for plant in PLANTS if "cpu" in plant.devices])
def test_a_planted_error_is_named(plant: Plant) -> None:
    report = plant.compared()
    assert not misnamed(plant, report), report.summary()
