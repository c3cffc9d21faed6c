"""`idbg list` and `idbg clean`: what is there, which of it goes, and only after somebody has agreed."""

import io
import json
import sys
from pathlib import Path

import pytest

from idbg import cli
from idbg.cli import moments
from idbg.config import places
from idbg.format.tables import cells
from idbg.render import text
from idbg.schema.errors import BadInput
from idbg.views.tree import Cell, Column, Row, Section, Table, words
from tests.harness.sessions import killed_session_of, small_log

DAY = 86400.0


@pytest.fixture(autouse=True)
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three sessions, of which the newest is small."""
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IDBG_OUTPUT", raising=False)
    small_log(tmp_path / "debug_artifacts" / "new", at=2e9, program="nets/new.py")
    killed_session_of("planted", tmp_path / "debug_artifacts", "planted")
    small_log(tmp_path / "debug_artifacts" / "old", at=1e9, program="nets/old.py")
    return tmp_path / "debug_artifacts"


def listed(capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    assert cli.main(["list", "--json", *flags]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "idbg.list/1" and told["of"] == 3
    return [each["name"] for each in told["sessions"]]


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], ["new", "planted", "old"]),
        (["--limit", "1"], ["new"]),
        (["--program", "PLANT"], ["planted"]),
        (["--program", "nets/*.py"], ["new", "old"]),
        (["--since", "2020-01-01"], ["new", "planted"]),
        (["--until", "2001-09-10"], ["old"]),
        (["--since", "2020-01-01", "--until", "2030-01-01T10:00"], ["planted"]),
        (["--verdict", "wrong"], ["planted"]),
        (["--verdict", "waiting", "--program", "old"], ["old"]),
        (["--program", "nothing"], []),
    ],
)
def test_sessions_are_chosen_by_program_time_and_verdict(
    flags: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(capsys, *flags) == names


def test_the_table_names_each_session_and_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["session", "program", "for", "started", "runs", "size", "result"]
    assert [row.split()[1] for row in rows] == ["new", "planted", "old"]
    assert rows[1].startswith("✘") and rows[1].endswith("1 of 2 tensors wrong") and rows[0].endswith("no run")


def test_no_session_is_said_and_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--output", "nowhere"]) == 0
    assert cli.main(["list", "--program", "zzz"]) == 0
    written = capsys.readouterr()
    assert written.out == ""
    assert "idbg run FILE.py makes one" in written.err and "none of 3 matches" in written.err


@pytest.mark.parametrize("flag", ["--since", "--until"])
@pytest.mark.parametrize("text", ["soon", "2026-13-01", "3 moons", "99999999999w"])
def test_a_time_that_is_none_is_refused(flag: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    if text.endswith("w"):
        assert cli.main(["list", flag, text]) == 0  # long ago
        return
    assert cli.main(["list", flag, text]) == 2
    assert f"{text!r} is no time" in capsys.readouterr().err


def test_a_day_is_meant_from_its_beginning_to_its_end() -> None:
    noon = moments.since("2026-11-01T12:00")
    assert moments.since("2026-11-01") == noon - DAY / 2
    assert noon + DAY / 2 - 1 < moments.until("2026-11-01") < noon + DAY / 2
    assert moments.since("3d", now=10 * DAY) == moments.until("3d", now=10 * DAY) == 7 * DAY
    assert moments.since("yesterday", noon) == moments.since("2026-10-31")
    assert moments.until("today", noon) == moments.until("2026-11-01")
    with pytest.raises(BadInput):
        moments.span("3")


def table(name: str) -> Section:
    rows = [Row(1, words(name), (Cell("a text of the row"), Cell(2000))), Row(2, words("short"), (Cell("a"), Cell(7)))]
    return Section("", "", 2, body=(Table((Column("text", least=4), Column("n", "count", 1)), rows, "name"),))


@pytest.mark.parametrize("width", range(8, 60))
def test_a_table_fits_as_long_as_it_can(width: int) -> None:
    drawn = text.text(table("漢字漢字 and more"), width=width).splitlines()
    assert all(cells(line) <= max(width, 22) for line in drawn)
    assert ("2,000" in drawn[1]) == (width >= 17 + 2 + 17 + 2 + 5)


def test_a_table_in_a_pipe_is_not_cut() -> None:
    assert text.text(table("x" * 300)).splitlines()[1] == "x" * 300 + "  a text of the row  2,000"


def test_sessions_are_sorted_by_a_column(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(*flags: str) -> list[str]:
        assert cli.main(["list", *flags]) == 0
        return [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]]

    newest_first = names()
    assert len(set(newest_first)) > 1
    assert names("--sort", "session") == sorted(newest_first)
    assert names("--sort", "session:down") == sorted(newest_first, reverse=True)
    assert names("--sort", "started:up") == newest_first[::-1]
    assert cli.main(["list", "--sort", "colour"]) == 2
    assert "the columns are session, program, for" in capsys.readouterr().err


# ------------------------------------------------------------- clean


def left(output: Path) -> list[str]:
    return sorted(path.name for path in output.iterdir())


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    stdin = io.StringIO(text)
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def test_where_nobody_can_be_asked_nothing_is_removed(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["clean"]) == 2
    written = capsys.readouterr()
    assert "3 sessions would be removed, and there is no terminal to ask on" in written.err and "-f" in written.err
    assert left(output) == ["new", "old", "planted"]


@pytest.mark.parametrize(
    ("said", "status", "stays"), [("y\n", 0, []), ("n\n", 1, None), ("", 1, None), ("\n", 1, None)]
)
def test_on_a_terminal_it_asks(
    said: str, status: int, stays: list[str] | None, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, said)
    assert cli.main(["clean"]) == status
    assert left(output) == (["new", "old", "planted"] if stays is None else stays)


@pytest.mark.parametrize(
    ("flags", "stays"),
    [
        (["--keep", "1"], ["new"]),
        (["--older-than", "30d"], ["new", "planted"]),
        (["--keep", "3"], ["new", "old", "planted"]),
        (["planted", "last"], ["old"]),
        ([], []),
    ],
)
def test_those_that_are_meant_go_and_the_bytes_are_said(
    flags: list[str], stays: list[str], output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: (path / "events.jsonl").stat().st_size for path in output.iterdir()}
    assert cli.main(["clean", "--dry-run", "--json", *flags]) == 0
    would = json.loads(capsys.readouterr().out)
    assert left(output) == ["new", "old", "planted"]
    assert cli.main(["clean", "-f", "--json", *flags]) == 0
    did = json.loads(capsys.readouterr().out)
    assert left(output) == stays
    gone = before.keys() - stays
    assert set(did["removed"]) == set(would["removed"]) == gone
    assert did["freed"] == would["freed"] == sum(before[name] for name in gone)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["nothing"], "there is no session nothing"),
        (["."], "is not a session"),
        (["new", "--keep", "1"], "--older-than and --keep select from all sessions"),
        (["--keep", "-1"], "--keep is -1"),
        (["--older-than", "much"], "'much' is no duration"),
        (["--older-than", ""], "'' is no duration"),
        (["--output", ""], "--output names no folder"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    flags: list[str], said: str, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["clean", "-f", *flags]) == 2
    assert said in capsys.readouterr().err
    assert left(output) == ["new", "old", "planted"]


def test_what_has_files_of_others_is_left_and_said(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (output / "old" / "notes\x1b[2J.md").write_text("mine")
    assert cli.main(["clean", "-f"]) == 0
    assert left(output) == ["old"]
    told = capsys.readouterr().err
    assert "left: old: it has what idbg did not put there: notes\\x1b[2J.md" in told and "\x1b" not in told
    assert cli.main(["clean", "-f", "old"]) == 2


def test_what_is_listed_can_be_removed(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON may be written otherwise than we write it: by another version, or by a tool that has rewritten the log."""
    log = output / "old" / "events.jsonl"
    first = json.loads(log.read_bytes())
    spaced = {name: first[name] for name in sorted(first)}  # "type" is not the first key
    log.write_text(f"{json.dumps(spaced)}\n")
    assert set(listed(capsys)) == {"new", "planted", "old"}
    assert cli.main(["clean", "--force"]) == 0
    assert list(output.iterdir()) == []
