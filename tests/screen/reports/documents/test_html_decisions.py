"""Breaks, recompiles, guards, time, repros and two sessions: the page says what the reports say, and reads no other
file than the session's.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from idbg import views
from idbg.analysis.decisions import times
from idbg.analysis.decisions.recompile_advice import suggestions_for
from idbg.analysis.decisions.recompiles import timelines
from idbg.render.html.code import highlighted
from idbg.reports import session_scripts
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections import compared, repros, time
from idbg.reports.documents.html.sections.viewed import BREAKS, DECISIONS, GUARDS
from idbg.schema import events
from idbg.schema.decisions.dynamo import FrameGuards
from idbg.schema.decisions.inductor import Span
from idbg.schema.runs import History, Run, fold
from idbg.views import breaks as breaks_view
from idbg.views import compared as compared_view
from idbg.views import earlier_times
from idbg.views import guards as guards_view
from idbg.views import recompiles as recompiles_view
from idbg.views import time as time_view
from idbg.views.tree import Row
from tests.harness.markup import Markup
from tests.harness.recorded import RECORDINGS, log

HOSTILE = "</script><img src=x onerror=alert(1)>]]>\x1b[31m\udc80\u202e'\"&{{ 7*7 }}"


def told(name: str, folder: str = "") -> SessionData:
    return SessionData(name, fold(log(name)), folder)


def run_of(name: str) -> Run:
    run = told(name).history.last
    assert run is not None
    return run


def found(section: object) -> Markup:
    assert section is not None
    parsed = Markup(str(section))
    assert parsed.faults == []
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    return parsed


@pytest.fixture
def minified(tmp_path: Path) -> Path:
    """A session's folder with the scripts that its records name."""
    for path, script in json.loads((RECORDINGS / "minified.json").read_text()).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(script)
    return tmp_path


def test_each_break_and_recompile_is_told_with_what_to_do_about_it() -> None:
    run, page = run_of("breaking"), found(BREAKS.section(told("breaking")))
    assert breaks_view.view(run).summary in page.texts and recompiles_view.view(run).summary in page.texts
    for place in breaks_view.as_json(run):  # type: ignore[attr-defined]
        assert place["words"] in page.text and place["suggestions"]
        assert all(each["words"] in page.text for each in place["suggestions"])
    for timeline in timelines(run):
        assert all(recompiles_view.why(row) in page.text or not row.number for row in timeline.compiles)
        assert all(each.words in page.text for each in suggestions_for(run, timeline))
    assert any(link.startswith("#line:") and link.endswith("breaking.py:11") for link in page.values("href"))


def test_a_run_without_a_break_says_so_and_one_that_compiled_nothing_is_not_there() -> None:
    assert "no graph breaks" in found(BREAKS.section(told("switched"))).texts
    assert BREAKS.section(SessionData("", History())) is None


def test_guards_that_failed_come_first_with_what_came_of_it() -> None:
    run, page = run_of("breaking"), found(GUARDS.section(told("breaking")))
    (table,) = guards_view.view(run).body
    caused = {each["frame"] for each in guards_view.as_json(run) if any(one["caused"] for one in each["guards"])}  # type: ignore[attr-defined]
    first = [row.refs.frame for row in table.rows][: len(caused)]  # type: ignore[union-attr]
    assert caused == set(first) and "→ " in page.text
    assert all(
        guard.code[0] in page.text
        for each in run.decided.last(FrameGuards).values()
        for guard in each.guards
        if guard.code
    )
    assert GUARDS.section(told("planted")) is None


def test_frames_fusion_and_caches_are_the_sections_of_analyze() -> None:
    page = found(DECISIONS.section(told("breaking")))
    run = run_of("breaking")
    for name in DECISIONS.words:
        assert views.view(name).view(run).summary in page.texts, name
    assert DECISIONS.section(told("planted")) is None


def test_the_time_of_a_compile_adds_up_in_words_and_is_drawn() -> None:
    run, page = run_of("breaking"), found(time.section(told("breaking")))
    spent = times.spent(times.tree(run))
    assert time_view.headline(run, spent) in page.text
    for each in spent:
        assert earlier_times.USES[each.use] in page.texts or each.share < 0.005
    assert "svg" in page.tags


def test_a_session_without_spans_has_its_phases_and_says_what_is_missing() -> None:
    page = found(time.section(told("planted")))
    assert "were not recorded in this session" in page.text and "21.4 s" in page.texts
    assert time.section(SessionData("", History())) is None


def test_a_repro_stands_whole_with_its_status_and_what_runs_it(minified: Path) -> None:
    page = Markup(str(repros.section(told("minified", str(minified)))))
    assert page.faults == []
    history = told("minified").history
    for repro in history.repros:
        script = session_scripts.read(repro.path, str(minified)).text
        assert all(line.strip() in page.text for line in script.splitlines()[3:5])
        assert f"python {minified / repro.path.removeprefix('minified/')} runs it" in page.text
    assert "reproduces" in page.text
    assert "&lt;i class" not in str(repros.section(told("minified", str(minified))))


def test_a_repro_that_is_gone_and_a_session_without_one_are_said_to_be_so(tmp_path: Path) -> None:
    page = found(repros.section(told("minified", str(tmp_path))))
    assert "The script is not shown: it is not there any more" in page.text
    assert "No repro was written" in found(repros.section(told("benched"))).text
    page = found(repros.section(told("resnet")))
    assert "idbg repro examples/resnet.py" in page.text
    assert "idbg minify tests/recordings/planted.py --wrong" in found(repros.section(told("planted"))).text


def test_nothing_outside_the_sessions_folder_is_read(tmp_path: Path) -> None:
    home, secret = tmp_path / "session", tmp_path / "secret.py"
    (home / "repros").mkdir(parents=True)
    secret.write_text("password = 1")
    (home / "repros" / "link.py").symlink_to(secret)
    (home / "repros" / "own.py").write_text("print()")
    os.mkfifo(home / "repros" / "pipe.py")
    for path in (str(secret), "../secret.py", "repros/../../secret.py", "repros/link.py", "/etc/hostname"):
        assert session_scripts.read(path, str(home)).text == "", path
    assert session_scripts.read("repros/pipe.py", str(home)).problem == "it is no regular file"
    assert session_scripts.read("repros", str(home)).text == "" and session_scripts.read("a\0b", str(home)).text == ""
    assert session_scripts.read("repros/own.py", str(home)).text == "print()"
    assert session_scripts.read("/home/other/session/repros/own.py", str(home)).text == "print()", "it was moved"
    assert session_scripts.read("repros/own.py", "").problem == "where the session lies is not known"
    (home / "repros" / "large.py").write_bytes(b"#" * (session_scripts.LARGEST + 1))
    assert "too large" in session_scripts.read("repros/large.py", str(home)).problem


def test_a_session_of_two_runs_and_two_sessions_are_held_against_one_another() -> None:
    history = told("switched").history
    page = found(compared.section(told("switched")))
    section = compared_view.view(history.runs[1], history.runs[2])
    assert section.summary in page.texts
    rows = [row for block in section.body if isinstance(block, Row) for row in (block, *block.below)]
    assert len(rows) > 5 and all(row.text in page.text for row in rows if row.key != "runs")
    assert "side by side" in page.texts and ("class", "culprit") in page.attributes
    two = replace(told("breaking"), other=told("resnet"))
    text = found(compared.section(two)).text
    assert "run 1 of resnet" in text and "run 1 of breaking" in text
    assert compared.section(told("resnet")) is None and compared.section(SessionData("", History())) is None


def test_hostile_words_stay_text(tmp_path: Path) -> None:
    spoilt = []
    for event in log("breaking"):
        if isinstance(event, events.GraphBroke):
            texts = {"reason": HOSTILE, "kind": "", "page": HOSTILE, "file": HOSTILE}
            broke = msgspec.structs.replace(event.graph_break, hints=(HOSTILE,), **texts)
            event = msgspec.structs.replace(event, graph_break=broke)
        if isinstance(event, events.FrameStarted):
            event = msgspec.structs.replace(event, frame=msgspec.structs.replace(event.frame, function=HOSTILE))
        if isinstance(event, events.DecisionsRecorded) and (spans := event.of(Span)):
            renamed = tuple(msgspec.structs.replace(each, what=HOSTILE) for each in spans)
            event = msgspec.structs.replace(event, decisions=renamed)
        spoilt.append(event)
    session = SessionData(HOSTILE, fold(spoilt), str(tmp_path), told("switched"))
    for section in (BREAKS, GUARDS, DECISIONS, time, repros, compared):
        page = found(section.section(session))
        assert "img" not in page.tags and "script" not in page.tags
        assert "\x1b" not in page.text and "\u202e" not in page.text


def test_code_is_highlighted_once() -> None:
    text = highlighted("def f(x):  # a < b\n    return '<b>'\n")
    assert "<i class=k>def</i>" in text and "&lt;i" not in text and "&lt;b&gt;" in text
