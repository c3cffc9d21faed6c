"""Every recording and imported trace, and sessions with children and ranks, on every surface: verdict, counts and
findings are the same in views, list, show, analyze, graph, reports, MCP, `--fail-on`, tabs, the header and the mounted
screen at three sizes.
"""

import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from idbg import cli, views
from idbg.config import places
from idbg.config.settings import Settings
from idbg.format.amounts import counted
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.verdicts import process_outcome, session_words, verdict_words
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.tools import decisions, processes, sessions, violations
from idbg.mcp.tools import diff as comparisons
from idbg.reports.decisions import VIEWS
from idbg.reports.diff import summary, to_json
from idbg.reports.documents import formats
from idbg.reports.fail_kinds import KINDS, OF_A_RUN
from idbg.schema import event_log, events
from idbg.schema.decisions.backends import GraphSplit
from idbg.schema.events import SessionEvent
from idbg.schema.processes import Process, ProcessEnd
from idbg.schema.programs import Failure
from idbg.schema.runs import History, Run, fold
from idbg.schema.strict_json import like
from idbg.schema.violations import SEVERITIES, count
from idbg.session import ranks
from idbg.session.importing import Import
from idbg.session.process_watch import end_of_log
from idbg.session.reading import load
from idbg.session.session import Session
from idbg.session.summaries import read_whole
from idbg.views.diagnostics import last_runs, of_history
from idbg_tui.panes.why import views as why
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.status_bar.header import header
from tests.harness import recorded, traces
from tests.harness.blamed import PASS, recorded_by_a_pass
from tests.harness.markup import Markup
from tests.harness.rank_logs import session_of_ranks
from tests.harness.screen import ReadyApp, settle
from tests.harness.sessions import session_of

RECORDED = sorted(path.stem for path in recorded.RECORDINGS.glob("*.jsonl"))
WIDTHS = (80, 120, 160)
SIZES = ((80, 24), (120, 40), (200, 50))
PANES = {"findings": "4", "rules": "8", "why": "0", "graph": "1"}
"""The panes that count something of the run, by their keys."""
COUNTED = re.compile(r"(\d[\d,]*) (?:graph )?(violation|break|recompile|kernel|launch|processe?)(?:e?s)?\b")
"""What the screen counts, with its noun."""
BROKEN = Failure("torch", "no kernel for aten.foo", type="InductorError")
KILLED = {"signal": "SIGKILL", "last_phase": "codegen"}


class Surfaces:
    """The only saved session: what each command prints of it, each run once."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.history = read_whole(folder)[1]
        self.printed = cache(self._printed)
        self.state = State(live=False)
        self.state.apply(load(folder))

    @property
    def last(self) -> Run:
        assert self.history.last is not None
        return self.history.last

    def _printed(self, *argv: str) -> tuple[int, str]:
        """The exit status of `idbg ...`, and its stdout."""
        with redirect_stdout(io.StringIO()) as out:
            status = cli.main(list(argv))
        return status, out.getvalue()

    def json(self, *argv: str) -> dict[str, Any]:
        found = json.loads(self.printed(*argv, "--json")[1])
        assert isinstance(found, dict)
        return found

    def report(self, form: str) -> str:
        return self.printed("report", self.folder, "--format", form)[1]

    @property
    def listing(self) -> dict[str, Any]:
        return self.json("list")

    @property
    def listed(self) -> dict[str, Any]:
        (only,) = self.listing["sessions"]
        assert isinstance(only, dict)
        return only

    @property
    def analyzed(self) -> dict[str, Any]:
        return self.json("analyze", self.folder, "--type", "constraints", "--type", "summary")

    @property
    def suites(self) -> list[ElementTree.Element]:
        return list(ElementTree.fromstring(self.report("junit")).iter("testsuite"))


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """No settings, caches or sessions but those below `home`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "cache", lambda: home / "cache")
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.delenv("IDBG_OUTPUT", raising=False)
        patch.chdir(home)
        yield


def ended_otherwise(output: Path, **end: object) -> Path:
    """A recorded run with another end."""
    session = session_of("mlp_train", output)
    log = [replace(each, **end) if isinstance(each, events.RunEnded) else each for each in load(session)]
    return written(session, log)


def with_children(output: Path, **ends: dict[str, Any]) -> Path:
    """A session whose main process compiles, and each of its children too; how each ended, by its name."""
    session = session_of("mlp_train", output)
    log = load(session)
    for name, end in ends.items():
        child = session / "processes" / name
        child.mkdir(parents=True)
        shutil.copy(recorded.RECORDINGS / "agreed.jsonl", child / "events.jsonl")
        known, verdict, said = end_of_log(child)
        ended = like(ProcessEnd, known, **end)
        verdict, said = process_outcome(ended, verdict, said)
        log.append(events.ProcessStarted(process=Process(name=name, pid=7, run=1)))
        log.append(like(events.ProcessEnded, ended, name=name, verdict=verdict, said=said))
    return written(session, log)


def written(session: Path, log: list[SessionEvent]) -> Path:
    (session / "events.jsonl").write_bytes(b"".join(event_log.encode(each) + b"\n" for each in log))
    return session


def ranks_that_failed(output: Path) -> Path:
    """A job whose main log does not say what came of its ranks, as that of an earlier version."""
    session = session_of_ranks(output / "ranks", 2, "agreed")
    for folder in (session / "processes").iterdir():
        ends = {"verdict": "failed", "failure": BROKEN}
        written(folder, [replace(each, **ends) if isinstance(each, events.RunEnded) else each for each in load(folder)])
    return session


def of_trace(name: str, output: Path) -> Path:
    """A trace of a process that ran without idbg, imported."""
    return imported(traces.unpacked(name, output.parent / "trace"), output)


def trace_of_ranks(output: Path) -> Path:
    """A job of two ranks, imported."""
    return of_trace("ranks-2.15", output)


def trace_of_ranks_one_failed(output: Path) -> Path:
    """The same, but that rank 1 left the trace of another program, of which frames did not compile."""
    folder = traces.unpacked("ranks-2.15", output.parent / "trace")
    (failed,) = traces.unpacked("failing-2.15", output.parent / "failed").iterdir()
    (rank,) = folder.glob("*_rank_1_*")
    failed.replace(rank)
    return imported(folder, output)


def imported(trace: Path, output: Path) -> Path:
    importing = Import(trace, output)
    importing.read()
    return importing.folder


TRACES = [name for name in traces.recordings() if list((traces.RECORDED / name).glob("*.log.gz"))]

BUILT: dict[str, Callable[[Path], Path]] = {
    **{name: partial(session_of, name) for name in RECORDED},
    "the compile failed": partial(ended_otherwise, verdict="failed", failure=BROKEN),
    "the script ended with 3": partial(ended_otherwise, exit_status=3),
    "cancelled": partial(ended_otherwise, failure=Failure("cancelled", "cancelled")),
    "children": partial(with_children, one={"exit_status": 0}, two={"exit_status": 0}),
    "a child was killed": partial(with_children, one={"exit_status": 0}, two=KILLED),
    **{f"trace {name}": partial(of_trace, name) for name in TRACES if not name.startswith("ranks-")},
}
WITHOUT_RUN: dict[str, Callable[[Path], Path]] = {
    "ranks": lambda folder: session_of_ranks(folder / "ranks", 2, "agreed"),
    "ranks that failed": ranks_that_failed,
    "trace of ranks": trace_of_ranks,
    "trace of ranks, one failed": trace_of_ranks_one_failed,
}


@pytest.fixture(scope="module", params=BUILT)
def surfaces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    home = tmp_path_factory.mktemp("home")
    with alone(home):
        yield Surfaces(BUILT[request.param](home / "debug_artifacts"))


@pytest.fixture(scope="module", params=WITHOUT_RUN)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    home = tmp_path_factory.mktemp("home")
    with alone(home):
        yield Surfaces(WITHOUT_RUN[request.param](home / "debug_artifacts"))


class OnScreen:
    """What the mounted screen shows of a session at every size, with each pane that counts something in front: its
    header, the marks of its tabs, and all numbers with their nouns.
    """

    def __init__(self) -> None:
        self.headers: dict[tuple[int, int], str] = {}
        self.marks: dict[str, set[str]] = {}
        self.counted: dict[str, set[int]] = {}
        self.text = ""

    async def look(self, folder: str, keys: Iterable[str] = PANES.values()) -> "OnScreen":
        app = ReadyApp(lambda: Session.open(Path(folder)), Settings())
        async with app.run_test(size=SIZES[0]) as pilot:
            for size in SIZES:
                await pilot.resize_terminal(*size)
                for key in keys:
                    await pilot.press(key)
                    await settle(pilot)
                    lines = ["".join(each.text for each in strip) for strip in app.screen._compositor.render_strips()]
                    self.headers[size] = lines[0]
                    self.text += (shown := "\n".join(lines))
                    for number, noun in COUNTED.findall(shown):
                        self.counted.setdefault(noun, set()).add(int(number.replace(",", "")))
                for name in ("findings", "why"):
                    self.marks.setdefault(name, set()).add(app.body.panes[name].mark)
        return self


def deciding(history: History) -> Run:
    assert history.deciding_run is not None and history.last is not None
    return history.deciding_run


def of_mcp(tool: Any, report: dict[str, Any], **arguments: object) -> dict[str, Any]:
    """The facts that a tool of MCP returns of a command's JSON."""
    facts = tool.summarize(tool.Arguments(**arguments), Done((), report, 0, "")).facts
    assert isinstance(facts, dict)
    return facts


def test_the_verdict_of_the_session_is_the_same_everywhere(surfaces: Surfaces) -> None:
    history, run = surfaces.history, deciding(surfaces.history)
    same = (history.verdict, history.looks, session_words(history))
    of_session = surfaces.json("show", "last")["session"]
    for found in (surfaces.listed, of_session):
        assert (found["verdict"], found["looks"], found["said"]) == same
    (in_mcp,) = of_mcp(sessions, surfaces.listing)["sessions"]
    assert (in_mcp["verdict"], in_mcp["said"]) == (same[0], same[2])
    assert surfaces.json("list", "--verdict", history.verdict)["sessions"] == [surfaces.listed]
    for command in (("list",), ("show", "last")):
        assert same[2] in surfaces.printed(*command)[1]
    assert json.loads(surfaces.report("json"))["verdict"] == history.verdict
    assert f"### {VERDICT_SIGNS[history.looks]} idbg: " in surfaces.report("markdown").partition("\n")[0]
    assert f"{VERDICT_SIGNS[history.looks]} {same[2]}" in surfaces.report("text")
    left, right = ("".join(text for text, _ in part) for part in header(surfaces.state, 400))
    failed = run.failure is not None
    assert failed or (f"{VERDICT_SIGNS[history.looks]} {same[2]}" in right and verdict_words(run) in left + right)
    for width in WIDTHS:  # in ever fewer words, and with the sign in all
        assert VERDICT_SIGNS[history.looks] in "".join(
            text for part in header(surfaces.state, width) for text, _ in part
        )


def test_the_verdict_of_each_run_is_the_same_everywhere(surfaces: Surfaces) -> None:
    runs, last = list(surfaces.history.runs.values()), surfaces.last
    each = [(one.number, one.verdict, verdict_words(one), one.numbers) for one in runs]
    for report in (surfaces.json("show", "last"), json.loads(surfaces.report("json"))):
        assert [(one["run"], one["verdict"], one["said"], one["numbers"]) for one in report["runs"]] == each
        assert all(one["verdict"] != "clean" or one["numbers"] == "agree" for one in report["runs"])
    for one in runs:
        of_run = surfaces.json("show", "last", "--run", str(one.number))
        assert (of_run["verdict"], of_run["said"], of_run["numbers"]) == (one.verdict, verdict_words(one), one.numbers)
    summary = surfaces.analyzed["summary"]
    assert (summary["verdict"], summary["numbers"]) == (last.verdict, last.numbers)
    assert surfaces.json("graph", "last")["verdict"] == last.verdict
    words = [verdict_words(one) for one in last_runs(surfaces.history)]
    in_suites = [suite.find("properties/property[@name='verdict']") for suite in surfaces.suites]
    assert [each.get("value") for each in in_suites if each is not None] == words
    for text in (surfaces.report("text"), surfaces.report("markdown"), Markup(surfaces.report("html")).text):
        assert all(each in text for each in words)


def test_processes_are_the_same_everywhere(surfaces: Surfaces) -> None:
    known = [(each.name, each.verdict, each.said) for each in surfaces.history.processes.values()]
    shown, report = surfaces.json("show", "last"), json.loads(surfaces.report("json"))
    in_mcp = of_mcp(processes, shown, limit=200)["processes"]
    for found in (shown["processes"], report["processes"], report["runs"][-1]["processes"], in_mcp):
        assert [(each["name"], each["verdict"], each["said"]) for each in found] == known
    assert surfaces.listed["processes"] == len(known)
    for text in (surfaces.report("text"), surfaces.report("markdown"), Markup(surfaces.report("html")).text):
        assert all(name in text and said in text for name, _, said in known)


def test_a_job_without_a_run_of_its_own_has_one_verdict_too(job: Surfaces) -> None:
    history, words = job.history, session_words(job.history)
    ranks.add(history, Path(job.folder))
    failed = history.verdict == "failed"
    assert {each.verdict for each in history.processes.values()} - {"empty"} == {history.verdict}
    of_session = job.json("show", "last")["session"]
    for found in (job.listed, of_session):
        assert (found["verdict"], found["looks"], found["said"]) == (history.verdict, history.looks, words)
    assert json.loads(job.report("json"))["verdict"] == history.verdict
    sign = VERDICT_SIGNS[history.looks]
    for text in (*(job.printed(*command)[1] for command in (("list",), ("show", "last"))), job.report("text")):
        assert sign in text and words in text
    assert job.report("markdown").startswith(f"### {sign} idbg: {words}")
    found = of_history(history)
    assert [each.level for each in found].count("error") == int(failed)  # one of both ranks
    (analysis,) = json.loads(job.report("sarif"))["runs"]
    assert len(analysis["results"]) == len(found) == len(json.loads(job.report("json"))["diagnostics"])
    failures = sum(int(suite.get("failures", "0")) for suite in job.suites)
    assert failures == int(failed)
    assert job.printed("analyze", "last", "--fail-on", "failure")[0] == int(failed)
    for text in (job.report("text"), job.report("markdown"), Markup(job.report("html")).text):
        assert all(name in text and each.said in text for name, each in history.processes.items())


@pytest.mark.slow
@pytest.mark.usefixtures("painted")
async def test_the_screen_shows_a_job_as_the_other_outputs_do(job: Surfaces) -> None:
    words, processes = job.listed["said"], len(json.loads(job.report("json"))["processes"])
    screen = await OnScreen().look(job.folder)
    for shown in screen.headers.values():
        assert f"{VERDICT_SIGNS[job.listed['looks']]} {words}" in shown
    assert screen.counted.get("process", {processes}) == {processes} == {job.listed["processes"]}


@pytest.mark.slow
@pytest.mark.usefixtures("painted")
async def test_the_screen_shows_what_the_other_outputs_show(surfaces: Surfaces) -> None:
    listed, report = surfaces.listed, json.loads(surfaces.report("json"))
    shown = surfaces.json("show", "last")["runs"][-1]
    screen = await OnScreen().look(surfaces.folder)
    for header_line in screen.headers.values():
        assert VERDICT_SIGNS[listed["looks"]] in header_line
    edited = queries.has_other_rules(surfaces.state, surfaces.last)  # the screen has what the edited rules find
    assert edited or surfaces.last.failure is not None or listed["said"] in screen.headers[SIZES[-1]]
    of_stages = {0, *Counter(each["stage"] for each in report["runs"][-1]["violations"]).values()}
    allowed = {
        "violation": {shown["violations"] or 0, *of_stages},
        "break": {shown["breaks"]},
        "recompile": {shown["recompiles"]},
        "kernel": {shown["kernels"]},
        "process": {listed["processes"]},
    }
    for noun, numbers in allowed.items():
        assert screen.counted.get(noun, set()) <= numbers or (noun == "violation" and edited), noun
    wrong = sum(each["kind"] in ("failure", "mismatch", "change") for each in report["diagnostics"])
    costs = (shown["breaks"] or 0) + (shown["recompiles"] or 0) + len(surfaces.last.decided.of(GraphSplit))
    (mark,) = screen.marks["findings"]
    total = int(mark.replace(",", "")) if mark[:1].isdigit() else 0
    assert total in {wrong + costs + broken for broken in of_stages} or edited
    assert bool(total) == bool(wrong or costs or shown["violations"]) or edited


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


def test_a_benchmark_without_a_run_is_no_empty_session(tmp_path: Path) -> None:
    log = [each for each in recorded.log("benched") if not isinstance(each, events.RunEvent)]
    folder = tmp_path / "debug_artifacts" / "rows"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(b"".join(event_log.encode(each) + b"\n" for each in log))
    with alone(tmp_path):
        found = Surfaces(folder)
        said = "benchmark: inductor with wrong numbers"
        assert (found.listed["verdict"], found.listed["said"], found.listed["runs"]) == ("wrong", said, 0)
        (suite,) = found.suites
        assert suite.get("failures") == "1"
        (result,) = json.loads(found.report("sarif"))["runs"][0]["results"]
        assert "inductor" in result["message"]["text"] and said in found.report("markdown")


def test_a_views_count_is_that_of_its_section_and_of_its_tab(surfaces: Surfaces) -> None:
    run = surfaces.last
    for module in VIEWS.values():
        view = views.view(module)
        assert view.count(run) == view.view(run).count, module
    for tab in why.VIEWS:
        assert why.count(tab, run) == views.view(why.PARTS.get(tab, (tab,))[0]).view(run).count, tab


def test_the_counts_are_the_same_everywhere(surfaces: Surfaces) -> None:
    last, analyzed = surfaces.last, surfaces.analyzed
    broken = views.view("violations").count(last)
    assert broken == (last.violation_count if last.checked_rules else None)
    counts = (broken, last.times_broken, len(last.graphs), len(last.kernels))
    shown = surfaces.json("show", "last")["runs"][-1]
    of_last = surfaces.json("show", "last", "--run", str(last.number))
    (in_mcp,) = of_mcp(sessions, surfaces.listing)["sessions"]
    for each in (surfaces.listed, shown, in_mcp, analyzed["summary"]):
        assert (each["violations"], each["breaks"], each["graphs"], each["kernels"]) == counts
    recompiles = len(last.recompiles)
    assert (shown["recompiles"], analyzed["summary"]["recompiles"], len(of_last["recompiles"])) == (recompiles,) * 3
    assert sum(not each["again"] for each in of_last["violations"]) == sum(not each.again for each in last.violations)
    assert of_mcp(decisions, analyzed)["summary"] == analyzed["summary"]
    known = (analyzed["constraints"] or {}).get("violations")  # null where it is not recorded
    grouped = of_mcp(violations, analyzed, limit=200)["violations"]
    if broken is None:
        assert known is None and grouped is None
    else:
        assert known is not None
        once = sum(not each.get("again") for each in known)
        assert once == sum(each["count"] for each in grouped) == broken
        stages = f"{counted(once, 'violation')}"
        assert not broken or stages in surfaces.printed("show", "last", "--run", str(last.number))[1]
        assert grouped == tools.grouped(known)


def test_every_report_has_the_same_findings(surfaces: Surfaces) -> None:
    found = of_history(surfaces.history)
    by_key = Counter(each.key for each in found)
    (analysis,) = json.loads(surfaces.report("sarif"))["runs"]
    assert Counter(next(iter(each["partialFingerprints"].values())) for each in analysis["results"]) == by_key
    assert [each["level"] for each in analysis["results"]] == [each.level for each in found]
    report = json.loads(surfaces.report("json"))
    in_runs = {each["key"] for run in report["runs"] if run["last"] for each in run["diagnostics"]}
    of_rows = {each["key"] for each in report["diagnostics"] if each["rule"] == "benchmark"}
    assert in_runs | of_rows == set(by_key) == {each["key"] for each in report["diagnostics"]}
    of_rules = [each for each in analysis["results"] if each["ruleId"].startswith("violation/")]
    broken = sum(count(run.violations) for run in last_runs(surfaces.history))
    assert sum(each["occurrenceCount"] for each in of_rules) == broken
    cases = (case for suite in surfaces.suites for case in suite.iter("testcase"))
    failed = sum(child.tag in ("failure", "error") for case in cases for child in case)
    assert bool(failed) == any(each.level == "error" for each in found)


def test_fail_on_fails_for_what_the_reports_list(surfaces: Surfaces) -> None:
    (always, _) = surfaces.printed("analyze", surfaces.folder)  # 1 where the numbers are wrong
    listed = json.loads(surfaces.report("json"))["runs"][-1]["diagnostics"]
    for kind in OF_A_RUN:
        counted = [each for each in listed if _counts(kind, each)]
        status = surfaces.printed("analyze", surfaces.folder, "--fail-on", kind)[0]
        assert status == int(bool(always or counted)), kind


def _counts(kind: str, found: dict[str, Any]) -> bool:
    kinds = KINDS[kind][1]
    return found["severity"] in kinds if found["severity"] in SEVERITIES else found["kind"] in kinds


UNPROVEN = "unproven_"  # begins each name of the stage that an older version accuses
WHY = "its dtype has no float64"


def accused_below_an_unknown_stage(output: Path) -> Path:
    """A session of an older version: it names a node, its line and a pass, though the stage above was not judged."""
    found = recorded_by_a_pass()
    names = {name: f"{UNPROVEN}{name}" for name in ("node", "output", "above", "file")}
    maker = replace(PASS, **{name: f"{UNPROVEN}{name}" for name in ("name", "file", "diff")})
    rows = tuple(replace(one, made_by=maker, **names) if one.bad else one for one in found.stages)
    session = session_of("planted", output)
    known = {"report": replace(found, stages=rows)}
    log = [replace(each, **known) if isinstance(each, events.Compared) else each for each in load(session)]
    lines = (written(session, log) / "events.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    for event in (event for event in entries if "report" in event):
        event["report"]["stages"][4] |= {"judged": False, "reason": WHY}
    (session / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in entries))
    return session


@pytest.mark.usefixtures("painted")
async def test_no_output_names_what_is_below_a_stage_that_was_not_judged(tmp_path: Path) -> None:
    with alone(tmp_path):
        folder = accused_below_an_unknown_stage(tmp_path / "debug_artifacts")
        assert (folder / "events.jsonl").read_text(encoding="utf-8").count(UNPROVEN) == 7
        surfaces = Surfaces(folder)
        report = surfaces.last.diff
        assert report is not None and [stage.judged for stage in report.stages].index(False) == 4
        commands = (
            ("list",),
            ("show", "last"),
            ("graph", "last"),
            *(("analyze", "last", "--type", one) for one in VIEWS),
        )
        shown = {form: surfaces.report(form) for form in formats()}
        shown |= {" ".join(argv): surfaces.printed(*argv)[1] for argv in commands}
        shown |= {"diff": summary(report), "diff --json": to_json(report)}
        shown["mcp"] = str(of_mcp(comparisons, json.loads(to_json(report)), program="model.py"))
        shown["screen"] = (await OnScreen().look(surfaces.folder, (*PANES.values(), "5"))).text
    assert [name for name, text in shown.items() if UNPROVEN in text] == []
    assert [name for name, text in shown.items() if "since post-grad" in text] == []
    bound = "wrong at post-grad at the latest"
    sentence = f"{bound}; before it partitioned was not judged: {WHY}; kernels are faithful"
    assert [name for name in ("html", "json", "diff", "diff --json", "mcp") if sentence not in shown[name]] == []
    assert bound in shown["screen"], "wrapped where the pane is narrow"
