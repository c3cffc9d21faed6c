"""Every command keeps to the protocol: shared flags, examples that work, statuses of the one table, a whole page."""

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from idbg import cli
from idbg.cli import exits, manual, parsing, verbs

NAMES = verbs.names()
SHARED = {"--verbose", "--quiet", "--color", "--help"}


def parsers(name: str) -> Iterator[parsing.Parser]:
    """A command's parser, and those of its own commands."""
    parser = parsing.of_command(name)
    yield parser
    yield from parsing.under(parser)


@pytest.mark.parametrize("name", NAMES)
def test_a_command_says_what_it_is_in_a_line_that_is_read_without_an_import(name: str) -> None:
    command = verbs.load(name)
    assert verbs.help_of(name) == command.HELP
    source = Path(str(command.__file__)).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert verbs._HELP.search(source), "HELP stands in double quotes on one line"
    assert command.HELP[0].islower() and not command.HELP.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_the_shared_flags_and_json_or_a_reason(name: str) -> None:
    no_json = getattr(verbs.load(name), "NO_JSON", "")
    for parser in parsers(name):
        flags = parser._option_string_actions
        assert flags.keys() >= SHARED
        assert ("--json" in flags) != bool(no_json)
        (shared,) = (group for group in parser._action_groups if group.title == manual.SHARED)
        assert {flags[flag] for flag in SHARED} <= {*shared._group_actions}


@pytest.mark.parametrize("name", NAMES)
def test_a_flag_that_there_is_not_is_named_also_where_an_argument_is_missing(name: str) -> None:
    for parser in parsers(name):
        with pytest.raises(parsing.UsageProblem, match=r"^there is no flag --no-such-flag$"):
            parsing.whole(parser, ["--no-such-flag"])
    with pytest.raises(parsing.UsageProblem, match="SESSION is missing"):
        parsing.whole(parsing.of_command("show"), ["--json"])


@pytest.mark.parametrize("name", NAMES)
def test_the_statuses_are_those_of_the_one_table(name: str) -> None:
    told = verbs.load(name).EXITS
    assert isinstance(told, dict) and told.keys() <= exits.TABLE.keys()
    assert exits.DONE in told or exits.SIGNALLED in told


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_command_lines_that_parse(name: str) -> None:
    examples = verbs.load(name).EXAMPLES
    assert examples
    for line, what in examples:
        words = shlex.split(re.split(r" [|>] ", line)[0])
        assert words[:1] == ["idbg"] and words[1] == name and what
        ours, _ = cli.split(words[1:])
        assert isinstance(parsing.parsed(ours), argparse.Namespace)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", ["80", "20", "0", "200"])
def test_the_page_is_whole_and_fits(name: str, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for parser in parsers(name):
        assert parser.command is not None
        page = manual.page(parser, parser.command, color=False)
        assert page.isascii()
        for head in ("usage:", "flags of every command:", "examples:", "exit status:", "files and environment:"):
            assert f"\n{head}" in f"\n{page}"
        for line, _ in parser.command.EXAMPLES:
            assert f"  {line}\n" in page
        wide = [line for line in page.splitlines() if len(line) > 80 and not line.startswith("  idbg ")]
        assert columns != "80" or wide == []


@pytest.mark.parametrize("name", NAMES)
def test_related_commands_are_there(name: str) -> None:
    assert set(getattr(verbs.load(name), "SEE", ())) <= {*NAMES, *(n for group in verbs.GROUPS.values() for n in group)}


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        ([], "no command is named", "idbg --help"),
        (["rnu"], "there is no command 'rnu'", "did you mean idbg run?"),
        (["a.py"], "there is no command 'a.py'", "did you mean idbg run a.py?"),
        (["--jsn", "info"], "there is no flag --jsn", "did you mean --json?"),
        (["run", "x.py", "--accel", "tpu"], "there is no flag --accel", "did you mean --accelerator?"),
        (["run", "x.py", "--option=1", "--backnd=aot"], "there is no flag --backnd", "did you mean --backend?"),
        (["check", "x.py", "--stage", "atn"], "--stage: invalid choice 'atn'; did you mean aten?", "check --help"),
        (["minify", "x.py", "--calls", "few"], "--calls: 'few' is not a whole number", "minify --help"),
        (["check"], "FILE.py[:NAME] is missing", "idbg check --help"),
        (["run", "x.py", "y.py"], "unexpected argument 'y.py'", "idbg run --help"),
        (["run", "x.py", "--color", "pink"], "--color: invalid choice 'pink'", "run --help"),
        (["run", "x.py", "--strict", "--warn"], "not allowed with", "run --help"),
        (["run", "x.py", "--backend"], "--backend: expected one argument", "run --help"),
    ],
)
def test_a_mistake_is_one_sentence_with_what_to_do(
    arguments: list[str], said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == exits.BAD_USAGE
    written = capsys.readouterr()
    assert written.out == ""
    first, second = written.err.splitlines()
    assert said in first and hint in second


def test_with_json_a_mistake_is_an_object_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "--json", "x.py", "--backnd", "aot"])
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "idbg.error/1" and told["status"] == exits.BAD_USAGE
    assert told["error"] == {
        "kind": "input",
        "type": "Usage",
        "message": "there is no flag --backnd",
        "hint": "did you mean --backend?",
    }


@pytest.mark.parametrize("flags", [["--json", "run", "nope.py"], ["run", "nope.py", "--json"]])
def test_the_shared_flags_stand_before_or_after_the_command(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(flags) == exits.BAD_USAGE
    written = capsys.readouterr()
    assert json.loads(written.out)["error"]["message"] == "no file nope.py"
    assert written.err.startswith("idbg: no file nope.py\n")


def test_a_defect_of_ours_has_a_status_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from idbg.cli.commands import info

    def broken() -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(info, "collect", broken)
    assert cli.main(["info", "--json"]) == exits.BUG
    written = capsys.readouterr()
    assert json.loads(written.out)["error"]["type"] == "Bug"
    assert "Traceback" in written.err and "ZeroDivisionError: of ours" in written.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["-V"])
    assert caught.value.code == 0
    assert re.fullmatch(r"idbg \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


@pytest.mark.parametrize("name", ["analyze", "graph", "kernel", "repro", "show"])
def test_the_last_session_of_none_is_no_file_that_is_missing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([name, "last", "--output", str(tmp_path)]) == exits.BAD_USAGE
    assert f"there is no session in {tmp_path}" in capsys.readouterr().err
