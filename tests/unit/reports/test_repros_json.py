"""The JSON of searches, repros and replays: every key is there, and is documented."""

import json
import re
from pathlib import Path

import pytest

from idbg.reports import repros_json
from idbg.schema import strict_json
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.repros import Minified, OtherFailure, Replayed, Signature, Sought, Variant
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.schema.violations import Violation
from idbg.views import replays

PAGE = (Path(__file__).parents[3] / "docs" / "json-schema.md").read_text(encoding="utf-8")
NODE = NodeId(GraphId("0/0", "dynamo"), "cumsum")
FOUND = Minified(Signature("wrong", message="values"), "/s/repro.py", True, 1, others=(OtherFailure("x", 2),))


def broken_run() -> Run:
    run = Run(1, Program("m.py"), Target(), 0.0)
    run.violations.append(
        Violation(rule="alignment", severity="reject", node=NODE, found="17", wanted="a multiple of 8")
    )
    return run


def encoded(which: str) -> dict[str, object]:
    failure = Failure(kind="cancelled", message="cancelled")
    repro = SessionRepro(
        1, 5.0, "minified", Sought("violation", NODE, "alignment"), ended=6.0, failure=failure, minified=FOUND
    )
    if which == "idbg.minify/1":
        return json.loads(strict_json.formatted(repros_json.minify_report(broken_run(), repro)))  # type: ignore[no-any-return]
    if which == "idbg.repros/1":
        return json.loads(strict_json.formatted(repros_json.repros_report(broken_run(), [repro], repro)))  # type: ignore[no-any-return]
    told = replays.as_json([Replayed(script="/s/repro.py", variant=Variant("backend", "eager"), answer="gone")])
    return json.loads(strict_json.formatted(told))  # type: ignore[no-any-return]


def keys(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if not isinstance(value, dict):
        return set()
    deep = {"program", "target", "error"}  # as in a run
    return set(value) | set().union(*(keys(each) for name, each in value.items() if name not in deep))


@pytest.mark.parametrize("schema", ["idbg.minify/1", "idbg.repros/1", "idbg.replay/1"])
def test_the_document_names_every_key(schema: str) -> None:
    told = encoded(schema)
    assert told["schema"] == schema
    section = (
        PAGE.partition("# The JSON of a minify search")[2]
        if schema != "idbg.replay/1"
        else PAGE.partition("of a replay")[2]
    )
    assert keys(told) - set(re.findall(r"`(\w+)(?:\[\])?`", section)) == set()


def test_a_search_that_has_nothing_has_the_same_keys() -> None:
    empty = repros_json.minify_report(broken_run(), None)
    assert json.loads(strict_json.formatted(empty)).keys() == encoded("idbg.minify/1").keys()
