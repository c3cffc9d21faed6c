"""The plug-in as a user's pytest has it: in a process of its own, with markers, fixtures, --idbg and xdist."""

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from idbg.reports import baseline
from idbg.session.session import Session

INSTALLED = any(each.name == "idbg" for each in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "idbg.testing.plugin")

TESTS = """
import unittest
import pytest, torch

def square(x):
    return torch.relu(x @ x)

def broken(x):
    y = x + 1
    print("between two graphs")
    return y * 2

early = torch.compile(square, backend="eager")

def test_compiles_nothing():
    pass

def test_compiled_at_import():
    early(torch.ones(4, 4))

def test_breaks_and_nobody_minds():
    torch.compile(broken, backend="eager")(torch.ones(3))

@pytest.mark.idbg(fail_on=["break"])
@pytest.mark.parametrize("size", [3, 4])
def test_marked(size):
    torch._dynamo.reset()
    torch.compile(broken, backend="eager")(torch.ones(size))

@pytest.mark.idbg(fail_on=["recompile"])
def test_marked_and_good():
    torch._dynamo.reset()
    torch.compile(square, backend="aot_eager")(torch.ones(4, 4))

@pytest.mark.idbg(fail_onn=["break"])
def test_marked_wrongly():
    pass

def test_fixture(idbg):
    idbg.assert_no_breaks(square, torch.ones(3, 3))
    with idbg.watched(accelerator="npu.toml", fail_on=["reject"]):
        torch._dynamo.reset()
        torch.compile(square, backend="eager")(torch.ones(5, 5))

def test_fails_by_itself():
    torch._dynamo.reset()
    torch.compile(square, backend="eager")(torch.ones(3, 3))
    raise RuntimeError("its own \\x1b[31m]]></script>")

def test_is_skipped():
    torch.compile(lambda x: x - 1, backend="eager")(torch.ones(3))
    pytest.skip("for a reason")

class TestOld(unittest.TestCase):
    @pytest.mark.idbg(fail_on=["break"])
    def test_marked(self):
        torch._dynamo.reset()
        torch.compile(broken, backend="eager")(torch.ones(3))

    def test_good(self):
        torch.compile(square, backend="eager")(torch.ones(3, 3))
"""
RULES = 'name = "by 16"\n[[rules]]\nkind = "alignment"\nmultiple = 16\n'
FAILED = {"test_marked[3]", "test_marked[4]", "test_marked_wrongly", "test_fixture", "test_fails_by_itself", "TestOld"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: None) -> Path:
    """A project with tests, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "npu.toml").write_text(RULES)
    return tmp_path


def ran(*options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", *PLUGIN, "--color=no", "--tb=short", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def failed(output: str) -> set[str]:
    return {name.partition("::")[0] for name in re.findall(r"^FAILED test_it.py::(\S+)", output, re.MULTILINE)}


def test_markers_and_fixtures_fail_their_tests_and_keep_those_sessions(folder: Path) -> None:
    status, told = ran()
    assert status == 1 and failed(told) == FAILED
    assert "break: test_it.py:10: print() cannot be in a graph" in told
    assert "reject: test_it.py:6: npu.toml: dim 0 is 5" in told
    assert "the marker idbg was given fail_onn\n  it takes fail_on, accelerator, must_compile" in told
    assert "= idbg =" not in told, "nobody asked for a report"
    sessions = {
        re.sub(r"-\d{8}-.*", "", each.name): Session.open(each) for each in (folder / "debug_artifacts").iterdir()
    }
    assert set(sessions) == {"test_marked_3", "test_marked_4", "test_fixture", "test_marked"}
    assert sessions["test_fixture"].history.last.violations
    assert sessions["test_marked_3"].program.label == "test_it.py::test_marked[3]"
    for session in re.findall(r"idbg-tui (\S+)\)", told):
        assert (folder / session / "events.jsonl").is_file()


@pytest.mark.slow
def test_all_is_captured_in_a_session_each_by_several_processes_and_told_in_one_report(folder: Path) -> None:
    known = ("--idbg", "--idbg-fail-on", "break", "--idbg-baseline", "known.json", "--idbg-output", "kept")
    status, told = ran(*known, "--idbg-update-baseline", "-n", "2")
    assert status == 1 and failed(told) == FAILED
    count = re.search(r"^(\d+) tests compiled something: .*, 4 graph breaks", told, re.MULTILINE)
    assert count is not None
    assert "known.json is written: 4 entries" in told
    (run,) = (folder / "kept").iterdir()
    sessions = [each for each in run.iterdir() if each.is_dir()]
    assert len(sessions) == int(count[1]) >= 9  # what one process has compiled for a test it need not for the next
    for each in sessions:
        opened = Session.open(each)
        assert opened.history.runs and all(one.ended is not None for one in opened.history.runs.values())
    assert re.search(rf"- idbg -+\nwhat it compiled: .*/kept/{run.name}/test_fails_by_itself-", told)
    own = next(Session.open(each) for each in sessions if each.name.startswith("test_fails_by_itself"))
    assert own.history.last.failure.type == "RuntimeError"
    assert f"report: kept/{run.name}/report.html" in told
    page = (run / "report.html").read_text()
    assert "test_it.py::test_marked[3]" in page and "]]></script>" not in page
    assert json.loads((run / "report.sarif").read_text())["version"] == "2.1.0"
    before = baseline.load(folder / "known.json")
    assert {each.program for each in before.known} >= {"test_it.py::test_marked[3]", "test_it.py::TestOld::test_marked"}
    (folder / "test_it.py").write_text(TESTS.replace("return y * 2", "print(y.sum())\n    return y * 2"))
    status, told = ran(*known, "-k", "nobody_minds")
    assert status == 1 and "FAILED test_it.py::test_breaks_and_nobody_minds break: test_it.py:1" in told
    assert "1 passed" in told, "the test itself holds: the run fails"


def test_what_cannot_be_meant_is_said_before_a_test_runs_and_leaves_no_folder(folder: Path) -> None:
    (folder / "known.json").write_text("{}")
    for options, says in (
        (("--idbg-fail-on", "break"), "--idbg-fail-on does nothing without --idbg"),
        (("--idbg", "--idbg-fail-on", "brake"), "there is nothing called 'brake' to fail on: did you mean break?"),
        (("--idbg", "--idbg-baseline", "known.json"), "known.json is no baseline that can be read"),
        (("--idbg", "--idbg-accelerator", "no.toml"), "no.toml"),
    ):
        status, told = ran(*options)
        assert status == 4 and says in told and "Traceback" not in told
    status, told = ran("--idbg", "-k", "compiles_nothing")
    assert status == 0 and "no test compiled anything" in told
    assert not list((folder / "debug_artifacts").iterdir())


def test_where_it_is_installed_and_not_asked_for_it_loads_nothing(folder: Path) -> None:
    (folder / "test_it.py").write_text(
        "import sys\ndef test_loads():\n"
        "    ours = sorted(name for name in sys.modules if name.split('.')[0] in ('idbg', 'torch', 'msgspec'))\n"
        "    assert ours == ['idbg', 'idbg.testing', 'idbg.testing.plugin'], ours\n"
    )
    command = [sys.executable, "-P", "-m", "pytest", *PLUGIN, "-q", "-p", "no:xdist"]
    cold = subprocess.Popen.__mro__[1] if subprocess.Popen.__name__ == "WarmPopen" else subprocess.Popen
    with cold(command, stdout=subprocess.PIPE, text=True) as process:
        assert "1 passed" in process.communicate()[0]
