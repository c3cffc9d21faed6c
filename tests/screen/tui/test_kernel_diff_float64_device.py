"""KernelDiff says above its figures where float64 was computed, if not on the program's device."""

from idbg.schema.diff import DiffReport, Float64Elsewhere, TransferFloor
from tests.harness.compared import texts


def test_the_way_to_the_cpu_is_told_first() -> None:
    floors = (TransferFloor(device="npu:0", dtype="float32", values=7, changed=2, subnormals=2),)
    elsewhere = Float64Elsewhere(device="npu:0", why="npu has none", floors=floors)
    report = DiffReport(test="a", reference="eager", verdict="passed", mode="float64", float64_elsewhere=elsewhere)
    assert [text.strip() for text in texts(report)][1:3] == [
        "float64 is computed on the CPU and not on npu:0: npu has none",
        "sent to npu:0 and back, 2 of 7 values of float32 are changed: 2 subnormals",
    ]
