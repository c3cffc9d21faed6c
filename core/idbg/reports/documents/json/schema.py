"""The JSON Schema of a session's JSON report, made from the records of the report.

It is shipped as SHIPPED, so that it can be read without running anything. `python -m
idbg.reports.documents.json.schema` writes it anew.
"""

from pathlib import Path

import msgspec

from idbg.reports.diff import COMPUTED
from idbg.reports.diff import SCHEMA as DIFF_SCHEMA
from idbg.reports.documents.json import DECISIONS, SCHEMA, SessionReport
from idbg.schema.diff import DiffReport

SHIPPED = Path(__file__).with_name("session-1.schema.json")
_DIFF = "diff."  # before the names of what a comparison is made of: it is written otherwise than in a run
_NUMBERS_AS_TEXT = {"enum": ["nan", "inf", "-inf"]}
_WHOLE = ("FoundReport", "KernelCall", "SignatureReport")  # every key is written, although the record has defaults
_WORDED = ("NoFloat64", "Remark")  # written as sentences
Schema = dict[str, object]


def written() -> bytes:
    """The schema as it is shipped."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=1) + b"\n"


def schema() -> Schema:
    """The schema of idbg.session/1: JSON Schema, draft 2020-12."""
    whole = msgspec.json.schema(SessionReport)
    records = {name: _any_number_may_be_null(each) for name, each in whole["$defs"].items()}
    for name in _WHOLE:
        record = records[name]
        assert isinstance(record, dict)
        record["required"] = list(record["properties"])
    run = _properties(records["SessionRun"])
    run["diff"] = {"anyOf": [{"type": "null"}, {"$ref": f"#/$defs/{_DIFF}DiffReport"}]}
    run["decisions"] = {"type": "object", "properties": {name: {} for name in DECISIONS}, "required": list(DECISIONS)}
    _properties(records["SessionReport"])["schema"] = {"const": SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:idbg:schema:{SCHEMA}",
        "title": f"The JSON report of a session: {SCHEMA}",
        "$ref": "#/$defs/SessionReport",
        "$defs": {**records, **_of_diff()},
    }


def _properties(record: object) -> Schema:
    assert isinstance(record, dict)
    properties = record["properties"]
    assert isinstance(properties, dict)
    return properties


def _any_number_may_be_null(value: object) -> object:
    """JSON has no number for what is not finite: a run's is null."""
    if isinstance(value, dict):
        held = {key: _any_number_may_be_null(each) for key, each in value.items()}
        return held if held.get("type") != "number" else {**held, "type": ["number", "null"]}
    return [_any_number_may_be_null(each) for each in value] if isinstance(value, list) else value


def _of_diff() -> Schema:
    """The records of a comparison: every key is there, and a number that JSON has none for is text."""
    _, records = msgspec.json.schema_components([DiffReport], ref_template=f"#/$defs/{_DIFF}{{name}}")
    schemas: Schema = {}
    for name, record in records.items():
        held = _any_number_may_be_text(record)
        assert isinstance(held, dict)
        if "properties" in held:
            properties = _properties(held)
            computed = {each.key: msgspec.json.schema(each.type) for each in COMPUTED if each.record.__name__ == name}
            properties.update(computed | ({"schema": {"const": DIFF_SCHEMA}} if name == "DiffReport" else {}))
            held["required"] = list(properties)
        schemas[f"{_DIFF}{name}"] = {"type": "string"} if name in _WORDED else held
    return schemas


def _any_number_may_be_text(value: object) -> object:
    if isinstance(value, dict):
        held = {key: _any_number_may_be_text(each) for key, each in value.items()}
        return held if held.get("type") != "number" else {"anyOf": [held, _NUMBERS_AS_TEXT]}
    return [_any_number_may_be_text(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    SHIPPED.write_bytes(written())
