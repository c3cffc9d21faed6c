"""An answer is small, says what it left out, and never fails on what is hostile; each tool is a command that exists."""

import math
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from idbg.cli import main
from idbg.mcp import command
from idbg.mcp.answering import answer
from idbg.mcp.bounded import LIMIT, as_text, bounded
from idbg.mcp.command import Done
from idbg.mcp.tools import Result, decisions, kernel, sessions, tools, violations
from idbg.mcp.where import AllowedSessions
from idbg.reports.decisions import TYPES
from idbg.schema.errors import BadInput

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=100), inner, max_size=12),
    max_leaves=60,
)


@example({"": {"0" * 81: None}}, 200)
@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=20), JSON, max_size=10), st.integers(200, 3000))
def test_whatever_is_told_fits_and_can_be_read(facts: dict[str, object], limit: int) -> None:
    cut, left = bounded(facts, limit)
    assert len(msgspec.json.encode(cut)) <= limit
    assert left or cut == facts
    "\n".join(as_text(cut))


def test_what_is_left_out_is_counted() -> None:
    rows = [{"name": f"relu_{number}", "code": "x" * 50} for number in range(1000)]
    cut, left = bounded({"nodes": rows, "name": "a" * 1_000_000})
    assert len(msgspec.json.encode(cut)) <= LIMIT
    assert any("nodes: " in each and "of 1,000 are shown" in each for each in left)
    assert any("name: " in each and "of 1,000,000 characters are shown" in each for each in left)


def test_text_has_a_small_row_in_a_line_and_a_source_on_its_own() -> None:
    text = list(as_text({"rows": [{"a": 1, "b": ["x", "y"]}], "source": "one\n  two", "no": [], "yes": True}))
    assert text == ["rows:", "  - a 1, b x y", "source:", "  one", "    two", "yes: yes"]
    assert list(as_text({"x": math.inf})) == ["x: inf"]


def test_a_source_is_told_a_page_at_a_time() -> None:
    lines = [f"line {number} " + "x" * 60 for number in range(1000)]
    row = {"name": "k", "language": "cpp", "nodes": ["relu"]}
    told: list[str] = []
    first = 1
    while first <= len(lines):
        done = Done((), {"kernel": row, "source": "\n".join(lines)}, 0, "")
        page = kernel.summarize(kernel.Arguments(name="k", first_line=first), done)
        some = str(page.facts["source"]).splitlines()
        told += some
        first += len(some)
        assert (f"first_line={first} has the next" in page.more) == (first <= len(lines))
    assert told == lines


def test_violations_of_one_line_are_one_entry_and_come_by_pages() -> None:
    broken = [
        {"rule": "r", "file": "m.py", "line": number // 2, "node": {"name": f"n{number}"}, "found": "f"}
        for number in range(10)
    ]
    done = Done((), {"constraints": {"accelerator": "mock", "violations": broken}}, 0, "")
    page = violations.summarize(violations.Arguments(limit=2, skip=2), done)
    assert [each["nodes"] for each in page.facts["violations"]] == [["n4", "n5"], ["n6", "n7"]]  # type: ignore[attr-defined]
    assert page.summary.startswith("10 violations of r") and page.more == "4 of 5 shown: skip=4 has the next"


def test_what_is_not_there_is_never_told_as_if_nothing_were_broken() -> None:
    def told(rule: str, verdict: str, *rules: str) -> Result:
        found = {"accelerator": "npu", "violations": [{"rule": each, "node": "n"} for each in rules]}
        done = Done((), {"constraints": found, "summary": {"verdict": verdict}}, 0, "")
        return violations.summarize(violations.Arguments(rule=rule), done)

    other = told("layuot", "violations", "layout", "dtype")
    assert other.summary == "no violation of layuot by the rules of npu"
    assert other.more == "2 violations of other rules: layout, dtype"
    captured = "only what was captured"
    assert captured in told("", "waiting").summary and captured not in told("", "clean").summary
    listed = sessions.summarize(
        sessions.Arguments(find="zz"), Done((), {"sessions": [{"name": "a"}], "output": "o"}, 0, "")
    )
    assert listed.summary == "0 of 1 session in o with 'zz'"


def test_half_a_question_and_a_line_beyond_the_last_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it needs two"):
        decisions.argv(decisions.Arguments(pair=("relu",)), AllowedSessions(tmp_path))
    done = Done((), {"kernel": {"name": "k", "language": "cpp"}, "source": "one\ntwo"}, 0, "")
    with pytest.raises(BadInput, match="k has no line 9"):
        kernel.summarize(kernel.Arguments(name="k", first_line=9), done)


def test_the_kinds_of_decisions_are_those_of_analyze() -> None:
    assert set(decisions.Kind.__args__) == set(TYPES)  # type: ignore[attr-defined]


async def test_a_command_that_has_no_report_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    told = await answer(tools()["graph"], "graph", {"session": "last"}, AllowedSessions(tmp_path))
    assert told.failed and told.text.startswith("there is no session in")
    with pytest.raises(Exception, match="there is no command 'fly'"):
        await command.run(("fly",))


@pytest.mark.parametrize("text", ["", ".", "..", "/", "./"])
def test_the_folder_of_sessions_is_no_session(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        AllowedSessions(tmp_path).session(text)


def test_without_the_package_it_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from idbg.cli.commands import mcp

    monkeypatch.setattr(mcp, "find_spec", lambda name: None)
    assert main(["mcp"]) == 2
    assert capsys.readouterr().err == "idbg: idbg mcp needs the package mcp\n  pip install 'idbg[mcp]'\n"


def test_the_page_names_every_tool_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8")
    section = page.partition("## The tools")[2].partition("An answer is")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == tools().keys()


def test_the_servers_process_has_no_torch_and_no_screen() -> None:
    pytest.importorskip("mcp")
    heavy = "{m.split('.')[0] for m in sys.modules} & {'torch', 'textual'}"
    ask = f"import sys, idbg.mcp.server as s; s.tools(); print({heavy})"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_where_no_rule_was_asked_none_is_told_to_hold() -> None:
    done = Done((), {"constraints": {"accelerator": "mock", "violations": None}}, 0, "")
    assert violations.summarize(violations.Arguments(), done).summary == "no rule was checked: nothing was compiled"


async def test_what_lies_in_the_clients_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "msgspec.py").write_text("open('was_run', 'w')\n")
    await command.run(("list", f"--output={tmp_path}"))
    assert not (tmp_path / "was_run").exists()
