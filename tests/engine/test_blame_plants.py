"""Is every error that is planted into Inductor's pipeline named at its stage, its node, its maker and its line?"""

import pytest

from tests.harness.plants import PLANTS
from tests.harness.plants.plant import Plant, wrongly_accused

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if "cpu" in plant.devices], ids=lambda plant: plant.id)
def test_a_planted_error_is_caught_and_no_other_kernel_is_accused(plant: Plant) -> None:
    report = plant.compared()
    assert report.verdict == "failed", report.summary()
    assert not list(wrongly_accused(plant, report)), report.summary()
