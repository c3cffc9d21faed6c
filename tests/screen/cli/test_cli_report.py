"""`idbg report` writes every format that it is asked for, whole, of one session, of several, and of none."""

import json
import os
import shutil
from pathlib import Path

import pytest

import idbg
from idbg.cli import main
from idbg.reports.documents import document, format_of, formats
from idbg.schema.errors import BadInput
from tests.harness.recorded import RECORDINGS


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """A folder with two sessions and something else."""
    folder = tmp_path / "debug_artifacts"
    for name in ("attention", "breaking"):
        (folder / name).mkdir(parents=True)
        shutil.copy(RECORDINGS / f"{name}.jsonl", folder / name / "events.jsonl")
    (folder / "notes").mkdir()
    return folder


@pytest.mark.parametrize("name", formats())
def test_each_format_is_written_by_the_end_of_the_name(name: str, sessions: Path, tmp_path: Path) -> None:
    to = tmp_path / "made" / f"report{document(name).SUFFIXES[0]}"
    assert format_of(to) == name
    assert main(["report", str(sessions / "attention"), "-o", str(to)]) == 0
    assert b"attention" in to.read_bytes()
    assert [each.name for each in to.parent.iterdir()] == [to.name], "nothing is left beside it"
    assert idbg.report(sessions / "attention", format=name) == to.read_bytes()


def test_a_folder_of_sessions_is_told_as_one(sessions: Path, capsysbinary) -> None:
    assert main(["report", str(sessions), "--format", "text"]) == 0
    told = capsysbinary.readouterr().out.decode()
    assert "run 1\n" in told and "run 2\n" in told
    assert "examples/attention.py" in told and "tests/recordings/breaking.py" in told


def test_of_a_folder_that_is_not_there_the_report_is_empty_and_says_so(tmp_path: Path, capsys) -> None:
    to = tmp_path / "made" / "too" / "report.txt"
    assert main(["report", str(tmp_path / "missing"), "-o", str(to)]) == 1
    assert "0 runs, 0 graphs, 0 kernels, 0 violations" in to.read_text()
    assert "the report is empty" in capsys.readouterr().err


def test_a_damaged_session_among_others_is_left_out_and_named(sessions: Path, capsys) -> None:
    (sessions / "broken").mkdir()
    (sessions / "broken" / "events.jsonl").write_text("{}\n")
    assert main(["report", str(sessions), "--format", "text"]) == 0
    assert "broken" in capsys.readouterr().err


@pytest.fixture
def foreign(sessions: Path) -> Path:
    """A session whose rules have a kind that is not installed here."""
    folder = sessions.parent / "foreign"
    folder.mkdir()
    text = (RECORDINGS / "attention.jsonl").read_text()
    (folder / "events.jsonl").write_text(text.replace(r"kind = \"alignment\"", r"kind = \"vendor_secret\""))
    assert "vendor_secret" in (folder / "events.jsonl").read_text()
    return folder


@pytest.mark.parametrize("name", formats())
def test_rules_that_cannot_be_read_here_cost_no_report(name: str, foreign: Path, sessions: Path, capsysbinary) -> None:
    assert main(["report", str(sessions / "breaking"), str(foreign), "--format", name]) == 0
    told = capsysbinary.readouterr().out
    assert b"tests/recordings/breaking.py" in told and b"examples/attention.py" in told
    if name in ("html", "junit", "markdown", "text"):
        assert b"cannot be read" in told and b"vendor_secret" in told


def test_what_analyze_tells_needs_no_rules(foreign: Path, capsys) -> None:
    assert main(["analyze", str(foreign)]) == 0
    assert main(["analyze", str(foreign), "--type", "constraints"]) == 0
    text = (foreign / "events.jsonl").read_text().replace('"type":"run_ended",', '"type":"run_ended","checked":false,')
    (foreign / "events.jsonl").write_text(text)
    capsys.readouterr()
    assert main(["analyze", str(foreign), "--type", "constraints"]) == 0
    assert "cannot be read here: there is no kind of rule" in capsys.readouterr().out
    assert main(["analyze", str(foreign), "--type", "constraints", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["constraints"]
    assert told["violations"] is None and "cannot be read here" in told["not_asked"]


def test_one_of_several_that_cannot_be_read_costs_no_other(sessions: Path, capsys) -> None:
    (sessions / "broken").mkdir()
    (sessions / "broken" / "events.jsonl").write_text("{}\n")
    named = [str(sessions / name) for name in ("attention", "broken")]
    assert main(["report", *named, "--format", "text"]) == 1
    shown = capsys.readouterr()
    assert "examples/attention.py" in shown.out and "broken" in shown.err


def test_what_cannot_be_written_is_said_before_anything_runs(sessions: Path, tmp_path: Path, capsys) -> None:
    assert main(["report", str(sessions), "-o", str(tmp_path / "report.pdf")]) == 2
    assert "report.pdf" in capsys.readouterr().err
    assert main(["report", str(sessions)]) == 2
    assert "--format" in capsys.readouterr().err
    with pytest.raises(BadInput, match="no report 'pdf'"):
        idbg.report(sessions / "attention", format="pdf")


def test_what_is_no_file_is_written_to_and_stays(sessions: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "report.txt"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert main(["report", str(sessions / "attention"), "-o", str(pipe)]) == 0
    assert pipe.is_fifo() and b"attention" in os.read(reading, 1 << 16)
    os.close(reading)


def test_a_session_that_cannot_be_read_is_missing_in_the_report_too(sessions: Path, tmp_path: Path) -> None:
    for name in ("attention", "breaking"):
        (sessions / name / "events.jsonl").write_text("{}\n")
    told = tmp_path / "r.xml"
    assert main(["report", str(sessions), "-o", str(told)]) == 1
    assert 'errors="1"' in told.read_text() and "attention: it is left out" in told.read_text()
