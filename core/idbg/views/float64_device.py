"""Describe why float64 was computed on the CPU, and what the transfer changes."""

from collections.abc import Iterator
from math import inf

from idbg.format.amounts import counted, figure
from idbg.schema.diff import LARGEST, Float64Elsewhere, TransferFloor


def sentences(elsewhere: Float64Elsewhere | None) -> Iterator[str]:
    """Why float64 is on the CPU, then the transfer floor of each dtype; nothing where it is on the program's device."""
    if elsewhere is None:
        return
    yield f"float64 is computed on the CPU and not on {elsewhere.device}: {elsewhere.why}"
    same = [floor for floor in elsewhere.floors if not floor.changed]
    if same:
        sent = ", ".join(f"{floor.values:,} of {floor.dtype}" for floor in same)
        yield f"sent to {same[0].device} and back, values are the same bit for bit: {sent}"
    for floor in elsewhere.floors:
        if floor.changed:
            yield _floor(floor)


def _floor(floor: TransferFloor) -> str:
    parts = [
        counted(floor.subnormals, "subnormal") if floor.subnormals else "",
        f"{floor.nans:,} NaN with another payload" if floor.nans else "",
        f"normal numbers by up to {figure(floor.max_rel)} of their size"
        if 0 < floor.max_rel < min(LARGEST, inf)
        else "",
        "normal numbers that are none any more" if floor.max_rel >= LARGEST else "",
    ]
    of = "; ".join(filter(None, parts))
    sent = f"sent to {floor.device} and back, {floor.changed:,} of {floor.values:,} values of {floor.dtype} are changed"
    return f"{sent}: {of}" if of else sent
