"""The same errors on a CUDA GPU, with Triton's in the place of C++'s: is each named there too?"""

import pytest
import torch

from tests.harness.plants import PLANTS, triton
from tests.harness.plants.plant import Plant, misnamed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@pytest.mark.parametrize(
    "plant", [plant for plant in (*PLANTS, *triton.PLANTS) if "cuda" in plant.devices], ids=lambda plant: plant.id
)
def test_a_planted_error_is_named_on_a_gpu(plant: Plant) -> None:
    report = plant.compared("cuda")
    assert not misnamed(plant, report), report.summary()
