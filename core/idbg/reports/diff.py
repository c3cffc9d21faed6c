"""Report a numerical comparison as text and as JSON.

The JSON is that of the records in `idbg.schema.diff`, by name, with every key always there and `schema` before them.
It is strict: null is what was not measured (or does not apply), and a figure that JSON has no number for is text:
"nan", "inf", "-inf". `first_bad_kernel` is an index into `kernels`; `variance` has `deterministic` too. `blame` is the
sentence that says where the numbers go wrong, and `faithful_to` the stage whose wrong graph a kernel computes rightly.
"""

from math import isfinite

import msgspec
from msgspec.structs import asdict

from idbg.format import attributions
from idbg.render.text import text
from idbg.reports import notebook
from idbg.schema import strict_json
from idbg.schema.attribution import KernelAttribution, StageError
from idbg.schema.diff import (
    LARGEST,
    DiffReport,
    FormDiff,
    TensorDiff,
    Variance,
)
from idbg.schema.remarks import NoFloat64, Remark
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
    json: dict[str, JsonValue] = {
        "schema": SCHEMA,
        "blame": blame_sentence(report),
        "not_judged": report.not_judged,
        **_json_object(report),
    }
    json["kernels"] = _json_kernels(report)
    if report.steps is not None:
        json["steps"] = {"said": steps.sentence(report.steps, report.test), **_json_object(report.steps)}
    return json


def _json_object(record: msgspec.Struct) -> dict[str, JsonValue]:
    plain = _plain(record)
    assert isinstance(plain, dict)
    return plain


def _json_kernels(report: DiffReport) -> list[JsonValue]:
    """The launches, each with the wrong stage whose graph it computes as it should."""
    kernels: list[JsonValue] = []
    for kernel in report.kernels:
        stage = faithful_to(kernel, report)
        kernels.append({**_json_object(kernel), "faithful_to": stage.stage if stage else None})
    return kernels


def _plain(value: object) -> JsonValue:
    """The record as JSON's own types, with no key left out."""
    if isinstance(value, Remark):
        return remarks.sentence(value)
    if isinstance(value, NoFloat64):
        return remarks.no_float64(value)
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        fields = {key: _plain(getattr(value, name)) for name, key in names}
        return fields | _sentences(value)
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) and value < LARGEST else "inf" if value == LARGEST else str(value)
    assert value is None or isinstance(value, (str, int))
    return value


def _sentences(record: msgspec.Struct) -> dict[str, JsonValue]:
    """What is said of a record beside its fields, or in their place."""
    match record:
        case Variance():
            return {"deterministic": record.deterministic}
        case TensorDiff():
            return {"note": remarks.tensor_note(record), "because": because(record)}
        case KernelAttribution():
            return {"sentence": attributions.sentence(record)}
        case StageError():
            return {"reason": remarks.sentence(record.reason)}
        case FormDiff():
            return {"said": remarks.form_sentence(record)}
        case _:
            return {}


def summary(report: DiffReport, to_ask: str = "") -> str:
    """The section about the comparison as text. `to_ask` is the option that finds out where, of one that did not."""
    return text(section(report, to_ask=to_ask), SHOWN)
