"""Every recording on every surface: verdict and counts are the same wherever they are shown."""

import json
import shutil
from pathlib import Path

import pytest

from idbg import cli, views
from idbg.api import report
from idbg.format.verdicts import session_words, verdict_words
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.tools import violations as mcp_violations
from idbg.reports.decisions import VIEWS
from idbg.reports.diagnostics import diagnostics
from idbg.schema.runs import Run, fold
from idbg_tui.panes.why import views as why
from idbg_tui.state.state import State
from idbg_tui.status_bar.header import header
from tests.harness.markup import Markup
from tests.harness.recorded import RECORDINGS, log, state_of

RECORDED = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))


def last_run(name: str) -> Run:
    run = fold(log(name)).last
    assert run is not None
    return run


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recording as a saved session, among no others."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "sessions" / str(request.param)
    folder.mkdir(parents=True)
    shutil.copy(RECORDINGS / f"{request.param}.jsonl", folder / "events.jsonl")
    return folder


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """What the command prints as JSON."""
    cli.main([*arguments, "--json"])
    decoded = json.loads(capsys.readouterr().out)
    assert isinstance(decoded, dict)
    return decoded


@pytest.mark.parametrize("name", RECORDED)
def test_a_views_count_is_that_of_its_section_and_of_its_tab(name: str) -> None:
    run = last_run(name)
    for module in VIEWS.values():
        view = views.view(module)
        assert view.count(run) == view.view(run).count, module
    for tab in why.VIEWS:
        assert why.count(tab, run) == views.view(why.PARTS.get(tab, (tab,))[0]).view(run).count, tab


@pytest.mark.parametrize("session", RECORDED, indirect=True)
def test_verdict_and_counts_are_the_same_in_list_show_analyze_and_json(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, history = last_run(session.name), fold(log(session.name))
    (listed,) = answer(capsys, "list", "--output", str(session.parent))["sessions"]  # type: ignore[misc]
    shown = answer(capsys, "show", str(session))["runs"][-1]  # type: ignore[index]
    analyzed = answer(capsys, "analyze", str(session), "--type", "summary", "--type", "constraints")
    written = json.loads(report(session, format="json"))["runs"][-1]
    verdicts = [shown["verdict"], analyzed["summary"]["verdict"], written["verdict"]]  # type: ignore[index]
    assert verdicts == [run.verdict] * 3 and shown["said"] == verdict_words(run)
    assert (listed["verdict"], listed["said"]) == (history.verdict, session_words(history))
    known = analyzed["constraints"]["violations"]  # type: ignore[index]
    counts = [listed["violations"], shown["violations"], None if known is None else len(known)]
    assert counts == [views.view("violations").count(run)] * 3
    told = mcp_violations.summarize(mcp_violations.Arguments(limit=1000), Done((), analyzed, 0, ""))
    grouped = told.facts["violations"]
    assert (grouped is None) == (known is None)
    assert grouped == (None if known is None else tools.page(tools.grouped(known), 0, 1000)[0])


@pytest.mark.parametrize("session", RECORDED, indirect=True)
def test_the_verdicts_words_are_the_same_in_every_report_and_in_the_header(session: Path) -> None:
    words = verdict_words(last_run(session.name))
    assert words in report(session, format="text").decode()
    assert words in report(session, format="markdown").decode()
    assert words in Markup(report(session, format="html").decode()).text
    state: State = state_of(session.name)
    left, right = header(state, 400)
    assert words in "".join(text for text, _ in (*left, *right))


@pytest.mark.parametrize("session", RECORDED, indirect=True)
def test_sarif_and_fail_on_find_what_the_run_has(session: Path) -> None:
    run = last_run(session.name)
    results = json.loads(report(session, format="sarif"))["runs"][0]["results"]
    assert len(results) == len(diagnostics(run))
    of_rules = [each for each in results if each["ruleId"].startswith("violation/")]
    broken = views.view("violations").count(run)
    assert sum(each["occurrenceCount"] for each in of_rules) == (broken or 0)
    without = cli.main(["analyze", str(session)])  # 1 where the numbers are wrong
    assert cli.main(["analyze", str(session), "--fail-on", "violation"]) == (1 if broken else without)
