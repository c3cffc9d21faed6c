"""Records of what is to be known of a comparison beside its figures. `views/remarks` makes the sentences."""

from typing import Literal

import msgspec

RemarkKind = Literal[
    "all outputs",  # gradients are of all outputs at once
    "first calls",  # of a script's functions
    "forward alone",  # `subject` cannot differentiate its outputs: `detail`
    "nan search ended",  # by `detail`
    "no graph",  # `subject` received none
    "no kernels",  # `subject` has none that can be observed
    "not observed",  # the kernels: `detail`
    "nothing bisected",
    "nothing returned",
    "other draws",  # `subject` draws other random numbers than eager, as Dynamo's graphs do
    "partly observed",  # some kernels: `detail`
    "repeated",  # the output `subject` is the output `detail` again
    "search failed",  # `subject` cannot compile a part of the graph: `detail`
    "stages not judged",  # those of the frame or function `subject`, of which no row is shown; `detail` is why
    "tf32",  # by the setting `subject`
    "undeclared write",  # the op `subject` writes to its argument `detail`
]


class Remark(msgspec.Struct, frozen=True, omit_defaults=True):
    """One remark on a comparison: names and messages, as its kind has them."""

    kind: RemarkKind
    subject: str = ""
    detail: str = ""


class NoFloat64(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a comparison had no float64 side. `detail`: the side that failed, or the message; `on_cpu`: it ran there."""

    why: Literal["waiting", "tolerance", "device", "reference", "not narrow", "draws", "failed", "not run"]
    detail: str = ""
    on_cpu: bool = False
