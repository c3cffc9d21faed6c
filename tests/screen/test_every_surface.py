"""Every surface shows the same verdict and counts of a session: list, show, reports, MCP, --fail-on, header."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from idbg import cli
from idbg.config import places
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.verdicts import session_words, verdict_words
from idbg.mcp.command import Done
from idbg.mcp.tools import decisions, sessions, violations
from idbg.reports.diagnostics import last_runs, of_history
from idbg.reports.fail_kinds import KINDS, OF_A_RUN
from idbg.schema import event_log, events
from idbg.schema.runs import History, Run, fold
from idbg.schema.violations import SEVERITIES
from idbg_tui.state import queries
from idbg_tui.status_bar.header import header
from tests.harness import recorded
from tests.harness.sessions import session_of

RECORDED = sorted(path.stem for path in recorded.RECORDINGS.glob("*.jsonl"))
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("IDBG_OUTPUT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "debug_artifacts"


@pytest.fixture
def command(output: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `idbg ...`: its status and its stdout."""

    def run(*argv: str) -> tuple[int, str]:
        capsys.readouterr()
        return cli.main(list(argv)), capsys.readouterr().out

    return run


def deciding(history: History) -> Run:
    assert history.deciding_run is not None and history.last is not None
    return history.deciding_run


def in_json(command: Command, *argv: str) -> dict[str, Any]:
    found = json.loads(command(*argv, "--json")[1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", RECORDED)
def test_the_verdict_is_the_same_everywhere(name: str, output: Path, command: Command) -> None:
    folder = session_of(name, output)
    history = fold(recorded.log(name))
    run, last = deciding(history), history.last
    assert last is not None
    same = (history.verdict, history.looks, session_words(history))

    listing = in_json(command, "list")
    (listed,) = listing["sessions"]
    shown = in_json(command, "show", "last")
    assert (listed["verdict"], listed["looks"], listed["said"]) == same
    assert (shown["session"]["verdict"], shown["session"]["looks"], shown["session"]["said"]) == same
    (found,) = sessions.summarize(sessions.Arguments(), Done((), listing, 0, "")).facts["sessions"]  # type: ignore[misc]
    assert (found["verdict"], found["said"]) == (history.verdict, same[2])
    assert in_json(command, "list", "--verdict", history.verdict)["sessions"] == [listed]
    for text in (command("list")[1], command("show", "last")[1]):
        assert same[2] in text
    in_header = "".join(text for text, _ in header(recorded.state_of(name), 400)[1])
    assert f"{VERDICT_SIGNS[history.looks]} {same[2]}" in in_header and verdict_words(run) in in_header

    each = [(one.number, one.verdict, verdict_words(one), one.numbers) for one in history.runs.values()]
    assert [(one["run"], one["verdict"], one["said"], one["numbers"]) for one in shown["runs"]] == each
    report = json.loads(command("report", str(folder), "--format", "json")[1])
    assert [(one["run"], one["verdict"], one["said"], one["numbers"]) for one in report["runs"]] == each
    for one in history.runs.values():
        of_run = in_json(command, "show", "last", "--run", str(one.number))
        assert (of_run["verdict"], of_run["said"], of_run["numbers"]) == (one.verdict, verdict_words(one), one.numbers)
    analyzed = in_json(command, "analyze", str(folder))["summary"]
    graphs = in_json(command, "graph", "last")
    assert (analyzed["verdict"], analyzed["numbers"], graphs["verdict"]) == (last.verdict, last.numbers, last.verdict)

    in_suites = [suite.find("properties/property[@name='verdict']") for suite in _suites(command, folder)]
    assert [each.get("value") for each in in_suites if each is not None] == [
        verdict_words(one) for one in last_runs(history)
    ]
    for form in ("html", "markdown", "text"):
        document = command("report", str(folder), "--format", form)[1]
        assert all(verdict_words(one) in document for one in last_runs(history)), form


def test_wrong_numbers_of_a_benchmark_are_the_sessions_until_it_is_repeated() -> None:
    history = fold(recorded.log("benched"))
    assert (history.verdict, history.looks) == ("wrong", "wrong")
    assert session_words(history) == "benchmark: inductor with wrong numbers"
    assert not queries.is_clean(recorded.state_of("benched"))
    (wrong,) = history.wrong_rows
    (found,) = [each for each in of_history(history) if each.rule == "benchmark"]
    assert found.kind == "mismatch" and found.level == "error" and "inductor" in found.message
    history.apply(events.RowMeasured(row=replace(wrong, diff="passed", at=wrong.at + 1)))
    assert history.verdict == deciding(history).verdict == "compiled"
    assert not any(each.rule == "benchmark" for each in of_history(history))


def test_a_benchmark_without_a_run_is_no_empty_session(output: Path, command: Command) -> None:
    log = [each for each in recorded.log("benched") if not isinstance(each, events.RunEvent)]
    folder = output / "rows"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(b"".join(event_log.encode(each) + b"\n" for each in log))
    (listed,) = in_json(command, "list")["sessions"]
    assert (listed["verdict"], listed["said"], listed["runs"]) == ("wrong", "benchmark: inductor with wrong numbers", 0)
    (suite,) = _suites(command, folder)
    assert suite.get("failures") == "1"
    (result,) = json.loads(command("report", str(folder), "--format", "sarif")[1])["runs"][0]["results"]
    assert "inductor" in result["message"]["text"]
    assert "benchmark: inductor with wrong numbers" in command("report", str(folder), "--format", "markdown")[1]


def _suites(command: Command, folder: Path) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(command("report", str(folder), "--format", "junit")[1]).iter("testsuite"))


@pytest.mark.parametrize("name", RECORDED)
def test_a_verdict_in_json_is_clean_only_where_the_numbers_agree(name: str, output: Path, command: Command) -> None:
    session_of(name, output)
    for run in in_json(command, "show", "last")["runs"]:
        assert run["verdict"] != "clean" or run["numbers"] == "agree"


@pytest.mark.parametrize("name", RECORDED)
def test_the_counts_are_the_same_everywhere(name: str, output: Path, command: Command) -> None:
    folder = session_of(name, output)
    history = fold(recorded.log(name))
    last = history.last
    assert last is not None
    broken = len(last.violations) if last.checked_rules else None
    counts = (broken, last.times_broken, len(last.graphs), len(last.kernels))

    listing = in_json(command, "list")
    (listed,) = listing["sessions"]
    shown = in_json(command, "show", "last")["runs"][-1]
    analyzed = in_json(command, "analyze", str(folder), "--type", "constraints", "--type", "summary")
    of_last = in_json(command, "show", "last", "--run", str(last.number))
    (found,) = sessions.summarize(sessions.Arguments(), Done((), listing, 0, "")).facts["sessions"]  # type: ignore[misc]
    for each in (listed, shown, found, analyzed["summary"]):
        assert (each["violations"], each["breaks"], each["graphs"], each["kernels"]) == counts
    recompiles = len(last.recompiles)
    assert (shown["recompiles"], analyzed["summary"]["recompiles"], len(of_last["recompiles"])) == (recompiles,) * 3
    assert len(of_last["violations"]) == len(last.violations)
    answer = violations.summarize(violations.Arguments(limit=200), Done((), analyzed, 0, ""))
    if last.checked_rules:
        grouped = answer.facts["violations"]
        assert isinstance(grouped, list) and sum(each["count"] for each in grouped) == len(last.violations)
        assert len(analyzed["constraints"]["violations"]) == len(last.violations)
    else:
        assert answer.facts["violations"] is None
    summary = decisions.summarize(decisions.Arguments(), Done((), analyzed, 0, "")).facts["summary"]
    assert summary == analyzed["summary"]


@pytest.mark.parametrize("name", RECORDED)
def test_every_report_has_the_same_findings(name: str, output: Path, command: Command) -> None:
    folder = session_of(name, output)
    history = fold(recorded.log(name))
    found = of_history(history)
    by_key = Counter(each.key for each in found)
    (analysis,) = json.loads(command("report", str(folder), "--format", "sarif")[1])["runs"]
    assert Counter(next(iter(each["partialFingerprints"].values())) for each in analysis["results"]) == by_key
    assert [each["level"] for each in analysis["results"]] == [each.level for each in found]
    report = json.loads(command("report", str(folder), "--format", "json")[1])
    in_runs = {each["key"] for run in report["runs"] if run["last"] for each in run["diagnostics"]}
    of_rows = {each["key"] for each in report["diagnostics"] if each["rule"] == "benchmark"}
    assert in_runs | of_rows == set(by_key) == {each["key"] for each in report["diagnostics"]}
    failed = sum(
        child.tag in ("failure", "error")
        for suite in _suites(command, folder)
        for case in suite.iter("testcase")
        for child in case
    )
    assert bool(failed) == any(each.level == "error" for each in found)


@pytest.mark.parametrize("name", RECORDED)
def test_fail_on_fails_for_what_the_reports_list(name: str, output: Path, command: Command) -> None:
    folder = session_of(name, output)
    last = fold(recorded.log(name)).last
    assert last is not None
    (always, _) = command("analyze", str(folder))
    listed = json.loads(command("report", str(folder), "--format", "json")[1])["runs"][-1]["diagnostics"]
    for kind in OF_A_RUN:
        counted = [each for each in listed if _counts(kind, each)]
        assert command("analyze", str(folder), "--fail-on", kind)[0] == int(bool(always or counted)), kind


def _counts(kind: str, found: dict[str, Any]) -> bool:
    kinds = KINDS[kind][1]
    return found["severity"] in kinds if found["severity"] in SEVERITIES else found["kind"] in kinds
