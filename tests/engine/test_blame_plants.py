"""Is every error that is planted into Inductor's pipeline named at its stage, its node, its maker and its line?"""

import pytest

from tests.harness.plants import PLANTS
from tests.harness.plants.plant import Plant, misnamed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if "cpu" in plant.devices], ids=lambda plant: plant.id)
def test_a_planted_error_is_named(plant: Plant) -> None:
    report = plant.compared()
    assert not misnamed(plant, report), report.summary()
