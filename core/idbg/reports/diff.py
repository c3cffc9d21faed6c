"""Report a numerical comparison as text and as JSON.

The JSON is that of the records in `idbg.schema.diff`, by name, with every key always there and `schema` before them.
It is strict: null is what was not measured (or does not apply), and a figure that JSON has no number for is text:
"nan", "inf", "-inf". `first_bad_kernel` is an index into `kernels`. COMPUTED lists what is written beside the fields:
`blame` is the sentence that says where the numbers go wrong, and `faithful_to` the stage whose wrong graph a kernel
computes rightly.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict

from idbg.format import attributions
from idbg.render.text import text
from idbg.reports import notebook
from idbg.schema import strict_json
from idbg.schema.attribution import KernelAttribution, StageError
from idbg.schema.diff import LARGEST, DiffReport, FormDiff, KernelError, TensorDiff, Variance
from idbg.schema.remarks import NoFloat64, Remark
from idbg.schema.steps import TrainingSteps
from idbg.views import remarks, steps
from idbg.views.blame import blame_sentence, faithful_to
from idbg.views.criteria import because
from idbg.views.diff import section

SCHEMA = "idbg.diff/1"
SHOWN = 20  # outputs, gradients and launches: more do not fit a screen

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None


class ReadableReport(DiffReport, frozen=True, kw_only=True):
    """A comparison as Python code gets it from `KernelDiff.compare`: the record, and how it reads."""

    @classmethod
    def of(cls, report: DiffReport) -> "ReadableReport":
        """The same figures, with `summary` and `to_json`."""
        return cls(**asdict(report))

    def summary(self) -> str:
        """The verdict for a person: what failed, by which rule, and the first bad kernel."""
        return summary(self)

    def to_json(self) -> str:
        """Strict JSON, as docs/json-schema.md has it."""
        return to_json(self)

    def _repr_html_(self) -> str:
        return notebook.of_diff(self)


def to_json(report: DiffReport, *, indent: int = 2) -> str:
    """The report as strict JSON, with every key, and with NaN and infinities as text."""
    return strict_json.formatted(as_json(report), indent=indent).decode()


def as_json(report: DiffReport) -> dict[str, JsonValue]:
    """The same as JSON's own types."""
    plain = _plain(report, report)
    assert isinstance(plain, dict)
    return {"schema": SCHEMA, "blame": plain["blame"], **plain}


def _plain(value: object, report: DiffReport) -> JsonValue:
    """The record as JSON's own types, with no key left out and what is computed of it."""
    if isinstance(value, Remark):
        return remarks.sentence(value)
    if isinstance(value, NoFloat64):
        return remarks.no_float64(value)
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        fields = {key: _plain(getattr(value, name), report) for name, key in names}
        return fields | {each.key: each.value(value, report) for each in COMPUTED if isinstance(value, each.record)}
    if isinstance(value, (tuple, list)):
        return [_plain(each, report) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) and value < LARGEST else "inf" if value == LARGEST else str(value)
    assert value is None or isinstance(value, (str, int))
    return value


def _faithful_to(kernel: KernelError, report: DiffReport) -> str | None:
    stage = faithful_to(kernel, report)
    return stage.stage if stage else None


class Computed(NamedTuple):
    """A key that is written beside the fields of a record, or in the place of one."""

    record: type[msgspec.Struct]
    key: str
    type: object
    value: Callable[[Any, DiffReport], JsonValue]
    """Of the record, and of the comparison that it is in."""


COMPUTED = (
    Computed(DiffReport, "blame", str, lambda report, _: blame_sentence(report)),
    Computed(DiffReport, "not_judged", str, lambda report, _: report.not_judged),
    Computed(FormDiff, "said", str, lambda form, _: remarks.form_sentence(form)),
    Computed(KernelAttribution, "sentence", str, lambda found, _: attributions.sentence(found)),
    Computed(KernelError, "faithful_to", str | None, _faithful_to),
    Computed(StageError, "reason", str, lambda stage, _: remarks.sentence(stage.reason)),
    Computed(TensorDiff, "note", str, lambda diff, _: remarks.tensor_note(diff)),
    Computed(TensorDiff, "because", str, lambda diff, _: because(diff)),
    Computed(TrainingSteps, "said", str, lambda training, report: steps.sentence(training, report.test)),
    Computed(Variance, "deterministic", bool, lambda output, _: output.deterministic),
)


def summary(report: DiffReport, to_ask: str = "") -> str:
    """The section about the comparison as text. `to_ask` is the option that finds out where, of one that did not."""
    return text(section(report, to_ask=to_ask), SHOWN)
