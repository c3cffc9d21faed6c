"""stdin, stdout and stderr as they may be: closed, full, gone, of another encoding, with colours or without."""

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from idbg import cli
from idbg.cli import color, exits, output
from idbg.format import glyphs

ROOT = Path(__file__).parents[3]
HOSTILE = "\x1b[31mred\x1b]0;title\x07\u202e\ud800"


def shell(command: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What bash makes of it; `idbg` is this one."""
    others = ("PYTHONIOENCODING", "PYTHONUNBUFFERED")  # a user has neither
    own = {name: value for name, value in os.environ.items() if "COLOR" not in name and name not in others}
    own |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "core"), str(ROOT)])}
    idbg = f'idbg() {{ {sys.executable} -m idbg "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", idbg + command], env={**own, **(environ or {})}, capture_output=True, text=True, cwd=ROOT
    )


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("idbg info >&-", exits.DONE),
        ("idbg info <&- >&- 2>&-", exits.DONE),
        ("idbg run nope.py 2>&-", exits.BAD_USAGE),
        ("idbg --help >&-", exits.DONE),
        ("idbg --help > /dev/full", exits.FAILED),
        ("idbg help run > /dev/full", exits.FAILED),
        ("idbg info --json > /dev/full", exits.FAILED),
        ("idbg run nope.py 2> /dev/full", exits.BAD_USAGE),
        ("idbg --help | true; exit ${PIPESTATUS[0]}", exits.SIGNALLED + 13),
        ("idbg info | true; exit ${PIPESTATUS[0]}", exits.SIGNALLED + 13),
    ],
)
def test_a_stream_that_is_not_there_is_no_traceback(command: str, status: int) -> None:
    done = shell(command)
    assert done.returncode == status
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    if "/dev/full" in command and status == exits.FAILED:
        assert "idbg: cannot write to stdout: No space left on device" in done.stderr


def test_a_file_does_not_get_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What is printed would be written into it."""
    done = shell(
        f"idbg report {ROOT}/tests/recordings --format text -o {tmp_path}/r.txt >&- 2>&-; cat {tmp_path}/r.txt"
    )
    assert "report:" not in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_sign_that_the_terminal_lacks_is_another(encoding: str) -> None:
    done = shell("idbg accelerators show mock", {"PYTHONIOENCODING": encoding})
    assert done.returncode == 0
    assert ("X alignment" in done.stdout) == (encoding != "utf-8")
    assert "?" not in done.stdout.partition("reject")[0]


# ------------------------------------------------------------- colours


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "when", "terminal", "wanted"),
    [
        ({}, "auto", True, True),
        ({}, "auto", False, False),
        ({}, "always", False, True),
        ({}, "never", True, False),
        ({"NO_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": ""}, "auto", True, True),
        ({"NO_COLOR": "0"}, "auto", True, False),  # no-color.org: whatever its value
        ({"NO_COLOR": "1"}, "always", True, True),
        ({"FORCE_COLOR": "1"}, "auto", False, True),
        ({"FORCE_COLOR": "0"}, "auto", False, False),
        ({"CLICOLOR_FORCE": "1"}, "auto", False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", True, False),
        ({"CLICOLOR": "0"}, "auto", True, False),
        ({"TERM": "dumb"}, "auto", True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, "auto", True, True),
    ],
)
def test_colours_are_for_terminals_unless_somebody_says_otherwise(
    environ: dict[str, str], when: str, terminal: bool, wanted: bool
) -> None:
    assert color.is_wanted(Terminal() if terminal else io.StringIO(), environ, when) == wanted


def test_signs_and_faults_are_painted_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert cli.main(["accelerators", "show", "mock", "--color", "always"]) == 0
    painted = capsys.readouterr().out
    assert "\x1b[31m✘\x1b[0m alignment" in painted
    assert cli.main(["accelerators", "show", "mock"]) == 0
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert (
        painted.replace("\x1b[31m", "").replace("\x1b[33m", "").replace("\x1b[36m", "").replace("\x1b[0m", "") == plain
    )
    assert cli.main(["run", "nope.py", "--color=always"]) == 2
    assert capsys.readouterr().err.startswith("\x1b[31midbg: no file nope.py\x1b[0m\n")


# ------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({}, ["idbg: careful", "idbg: wrong", "note"]),
        ({"quiet": True}, ["idbg: wrong"]),
        ({"verbose": 1}, ["idbg: by the way", "idbg: careful", "idbg: wrong", "note"]),
        (
            {"verbose": 2},
            [
                "idbg: idbg.a.b: detail",
                "idbg: idbg.a.b: by the way",
                "idbg: idbg.a.b: careful",
                "idbg: idbg.a.b: wrong",
                "note",
            ],
        ),
    ],
)
def test_what_is_logged_is_told_as_the_flags_have_it(
    flags: dict[str, int], told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("idbg.a.b")
    try:
        output.begin(**flags)  # type: ignore[arg-type]
        log.debug("detail")
        log.info("by the way")
        log.warning("careful")
        log.error("wrong")
        output.note("note")
    finally:
        output.begin()
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.splitlines() == told


def test_what_a_stranger_named_is_not_obeyed_by_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("idbg"), "propagate", False)  # pytest-xdist cannot send a lone surrogate on
    output.say(f"✘ {HOSTILE}")
    output.note(HOSTILE)
    logging.getLogger("idbg.x").warning("%s", HOSTILE)
    output.fault(HOSTILE, HOSTILE)
    written = capsys.readouterr()
    for each in ("\x1b", "\x07", "\u202e", "\ud800"):
        assert each not in written.out + written.err


def test_a_hostile_command_line_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([HOSTILE], ["run", HOSTILE], ["run", "a.py", f"--{HOSTILE}"], ["help", "x" * 1_000_000]):
        status: object
        try:
            status = cli.main([*arguments, "--json"])
        except SystemExit as ended:
            status = ended.code
        written = capsys.readouterr()
        assert status == exits.BAD_USAGE and len(written.err) < 10_000
        assert json.loads(written.out)["schema"] == "idbg.error/1"
        assert "\x1b" not in written.err and "Traceback" not in written.err


def test_a_stream_in_memory_takes_every_sign_and_leaves_the_process_with_them() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert cli.main(["accelerators"]) == 0
    assert "mock" in out.getvalue() and not glyphs.is_ascii()
