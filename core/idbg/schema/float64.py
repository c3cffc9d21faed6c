"""Records of a float64 side that is computed on the CPU, and of what the transfer changes.

Nothing here imports torch.
"""

import msgspec


class TransferFloor(msgspec.Struct, frozen=True, kw_only=True):
    """What numbers of one dtype become that are sent from the CPU to a device and back: `changed` of the `values`, some
    of them the program's own, come back with other bits. No comparison on the CPU can be more exact.

    Of those changed, `subnormals` were smaller than the dtype's smallest normal number, `nans` are NaN still.
    `max_rel`: the largest |d| / |value| of normal numbers; infinite where one is no number after it.
    """

    device: str
    dtype: str
    values: int
    changed: int = 0
    subnormals: int = 0
    nans: int = 0
    max_rel: float = 0.0


class Float64Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """Float64 was computed on the CPU and not on the program's device `device`; `why` is the end of a sentence."""

    device: str
    why: str
    floors: tuple[TransferFloor, ...] = ()
