"""Is every error that is planted into Inductor's pipeline named at its stage, its node, its maker and its line?"""

import re

import pytest
from torch import Tensor

from idbg.schema.remarks import Remark
from tests.harness.plants import PLANTS
from tests.harness.plants.code import edited
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


def doubled(x: Tensor) -> Tensor:
    return x.sin() * 1.07


def wrong_in_its_first_launch(text: str) -> str:
    text = re.sub(r'(extern "C"[^{]*\{)', r"\1 static int calls = 0; const float off = calls++ ? 0.0f : 9.0f;", text)
    return re.sub(r"(\w+)\.store\(", r"(\1 + at::vec::Vectorized<float>(off)).store(", text)


def test_what_fails_in_one_run_and_not_again_accuses_no_cache() -> None:
    once = Plant("kernel", "once", doubled, ((8, 16),), edited(wrong_in_its_first_launch), "kernels", "kernel", "")
    report = once.compared()
    assert report.verdict == "failed" and Remark("not repeated") in report.notes
    assert report.culprit is None and not any(stage.bad for stage in report.stages)
