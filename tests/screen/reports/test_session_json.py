"""A session's JSON report is strict, and valid by the schema that is shipped; that is the one that the records give."""

import copy
import json
from typing import Any

import jsonschema
import msgspec
import pytest

from idbg.cli import main
from idbg.reports.documents import SessionData
from idbg.reports.documents import json as document
from idbg.reports.documents.json import schema
from idbg.schema import events
from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, fold
from idbg.views.diagnostics import of_history
from tests.harness.hostile import TEXT, hostile
from tests.harness.recorded import RECORDINGS, chain, log
from tests.harness.work import lines_run

VALID = jsonschema.Draft202012Validator(json.loads(schema.SHIPPED.read_bytes()))
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))


def rendered(history: History, name: str = "s") -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"not strict JSON: {constant}")

    report: dict[str, Any] = json.loads(document.render(SessionData(name, history)), parse_constant=refuse)
    VALID.validate(report)
    return report


def test_the_schema_is_one() -> None:
    """That it is the one of the records, is held by tests/unit/test_docs.py."""
    jsonschema.Draft202012Validator.check_schema(json.loads(schema.SHIPPED.read_bytes()))


def test_the_command_prints_the_shipped_schema(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["report", "--schema", "json"]) == 0
    assert capfdbinary.readouterr().out == schema.SHIPPED.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_session_is_valid_and_whole(name: str) -> None:
    history = fold(log(name))
    report = rendered(history, name)
    assert report["session"] == name
    assert [run["run"] for run in report["runs"]] == list(history.runs)
    assert [each["key"] for each in report["diagnostics"]] == [each.key for each in of_history(history)]
    for run in report["runs"]:
        assert list(run["decisions"]) == list(document.DECISIONS)
        assert (run["diff"] is None) == (history.runs[run["run"]].diff is None)
    assert len(report["rows"]) == len(history.rows)
    assert len(report["repros"]) == len(history.repros)


def test_what_is_new_beside_another_session_is_told() -> None:
    now, before = fold(log("breaking")), fold(log("mlp_train"))
    report = json.loads(document.render(SessionData("now", now, other=SessionData("before", before))))
    VALID.validate(report)
    assert report["beside"]["session"] == "before"
    assert report["beside"]["new"] == report["diagnostics"]
    assert {each["rule"] for each in report["beside"]["gone"]} == {"layout"}
    assert rendered(now)["beside"] is None


def test_a_report_is_read_again_as_records() -> None:
    written = document.render(SessionData("s", fold(log("wrong_pass"))))
    report = msgspec.json.decode(written, type=document.SessionReport)
    assert report.verdict == "wrong"
    assert report.runs[0].last


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "idbg.session/2"),
        (("runs", 0, "verdict"), "fine"),
        (("runs", 0, "seconds"), "1.0"),
        (("runs", 0, "diff", "outputs", 0, "rmse"), "small"),
        (("runs", 0, "diff", "verdict"), None),
        (("runs", 0, "decisions"), {}),
        (("diagnostics", 0, "level"), "bad"),
        (("worker", "devices"), "cpu"),
    ],
    ids=str,
)
def test_the_schema_refuses_what_is_no_report(path: tuple[Any, ...], value: object) -> None:
    report = copy.deepcopy(rendered(fold(log("wrong_pass"))))
    place: Any = report
    for key in path[:-1]:
        place = place[key]
    assert path[-1] in place or isinstance(path[-1], int)
    place[path[-1]] = value
    assert not VALID.is_valid(report)


@pytest.mark.parametrize("key", ["session", "runs", "diagnostics", "worker", "verdict"])
def test_every_key_of_a_report_is_required(key: str) -> None:
    report = rendered(History())
    del report[key]
    assert not VALID.is_valid(report)


def test_a_session_of_2000_nodes_and_100_kernels_is_written_soon_and_small() -> None:
    graph = chain(2_000)
    calls = [tuple(node.name for node in graph.nodes[first : first + 20]) for first in range(0, 2_000, 20)]
    kernels = tuple(
        Kernel(
            frame="0/0",
            part="inference",
            name=f"k{number}",
            language="cpp",
            source="void f() {}\n" * 200,
            calls=(KernelCall(f"k{number}", number, nodes),),
        )
        for number, nodes in enumerate(calls, 1)
    )
    history = fold(
        (
            events.RunStarted(run=1, program=Program("model.py"), target=Target(rules="")),
            events.GraphCaptured(run=1, graph=graph),
            events.CodeCaptured(run=1, code=OutputCode("0/0", "inference", "call()\n" * 5_000, kernels)),
            events.RunEnded(run=1, verdict="clean", seconds=1.0),
        )
    )
    rendered, work = lines_run(lambda: document.render(SessionData("s", history)))
    assert len(rendered) < 5_000_000 and work < 600 * 2_000


def test_what_json_has_no_number_for_is_null_and_what_utf8_cannot_say_is_spelled() -> None:
    report = rendered(hostile(TEXT), TEXT)
    [run] = report["runs"]
    assert run["seconds"] is None
    assert run["diff"]["outputs"][0]["max_abs"] == "nan"
    assert run["output"].endswith(TEXT[-5:])
    assert "\\udcff" in report["session"]
    assert "</script>" in report["session"]
