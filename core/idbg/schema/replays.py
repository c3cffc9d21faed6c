"""Records of repros that are run again with another backend, accelerator, options or torch."""

from typing import Literal

import msgspec

Change = Literal["", "backend", "accelerator", "options", "python"]
Answer = Literal["same", "different", "gone", "not run"]
"""It fails as it should; it fails otherwise; it does not fail; it is not known, as it could not run."""


class Variant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is another than in the script; "" is the script as it is. `value` is what the user wrote."""

    change: Change = ""
    value: str = ""

    def __str__(self) -> str:
        return f"{self.change} {self.value}" if self.change else "as it is"


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one script in one variant. `status` is its exit status (negative: the signal that ended it), None
    where it did not end by itself; `result_line` is the line that it printed, `note` what else was changed.
    """

    script: str
    variant: Variant
    answer: Answer
    status: int | None = None
    result_line: str = msgspec.field(default="", name="said")
    note: str = ""
    seconds: float = 0.0
