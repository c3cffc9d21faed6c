"""What each shell completes of our command lines, asked of the shells themselves."""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from idbg import cli
from idbg.cli import completions, manual, parsing, screen, verbs
from idbg.cli.commands.completion import SHELLS
from idbg.cli.completions import KINDS, WORDS
from tests.harness.terminal import Terminal

ROOT = Path(__file__).parents[3]
# what takes words that no shell can know
ANY = {"A", "A B", "K", "N", "R", "BYTES", "COMMAND", "KERNEL", "NAME", "NAME=VALUE", "REVISION", "SECONDS", "SOURCE"}
ANY |= {"COLUMN", "FAMILY[:PROGRAM]", "ID", "NODE", "PATH", "SPAN", "STAGE", "SUITE", "TEXT", "WHEN"}
BASH = """
idbg() { "$PYTHON" -m idbg "$@"; }
idbg-tui() { "$PYTHON" -m idbg_tui "$@"; }
source idbg.bash
COMP_LINE=$1; COMP_POINT=${#1}; COMP_TYPE=9; _python_argcomplete "${1%% *}"; printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    return {shell: completions.script(shell) for shell in SHELLS}


@pytest.fixture
def folder(tmp_path: Path, scripts: dict[str, str]) -> Path:
    """A folder with files and a session to complete, and each shell's script."""
    for shell, text in scripts.items():
        (tmp_path / f"idbg.{shell}").write_text(text)
    for name in ("mlp.py", "mlp two.py", "mine.toml", "notes.txt"):
        (tmp_path / name).touch()
    session = tmp_path / "debug_artifacts" / "mlp-20260101-000000"
    session.mkdir(parents=True)
    (session / "events.jsonl").touch()
    (tmp_path / "bin").mkdir()
    for program, module in (("idbg", "idbg"), ("idbg-tui", "idbg_tui")):
        file = tmp_path / "bin" / program
        file.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        file.chmod(0o755)
    return tmp_path


def environ(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    sources = os.pathsep.join([str(ROOT / "core"), str(ROOT)])
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), "ZDOTDIR": str(folder)}
    return {**os.environ, **own, "PATH": path, "PYTHONPATH": sources, "PYTHON": sys.executable, "LC_ALL": "C.UTF-8"}


def needs(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed here: apt-get install {shell}")
    return found


# ------------------------------------------------------------- the scripts


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_takes_the_script(folder: Path, shell: str) -> None:
    done = subprocess.run([needs(shell), "-n", f"idbg.{shell}"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_it(shell: str, scripts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    written = capsys.readouterr().out
    assert written == scripts[shell].rstrip("\n") + "\n"
    assert written.isascii() and "use it now" in written


def parsers() -> Iterator[parsing.Parser]:
    """The parser of each command and subcommand, as the shell's words choose it, and that of `idbg-tui`."""
    for name in verbs.names():
        top = completions.parser("idbg", [name])
        (commands,) = (each for each in top._actions if isinstance(each, argparse._SubParsersAction))
        assert list(commands.choices) == verbs.names()
        chosen = commands.choices[name]
        yield from (chosen, *parsing.under(chosen))
    yield completions.parser("idbg-tui", [])


def test_every_flag_is_in_it() -> None:
    found = {each.prog: set(each._option_string_actions) for each in parsers()}
    for name in verbs.names():
        assert found[f"idbg {name}"] == set(parsing.of_command(name)._option_string_actions)
    assert found["idbg-tui"] == set(screen.parser()._option_string_actions)


def test_what_an_argument_takes_is_called_by_a_name_that_is_known() -> None:
    """One name for one thing: a new name stands in KINDS, in WORDS, or here in ANY."""
    unknown = {
        (parser.prog, manual.named(each))
        for parser in parsers()
        for each in parser._actions
        if each.nargs != 0 and not each.choices
        if manual.named(each) not in {*KINDS, *WORDS, *ANY, own_name(each.option_strings)}
    }
    assert unknown == set()


def own_name(flags: Sequence[str]) -> str:
    """What a flag's value is called where nobody says otherwise: --theme THEME."""
    return next((flag[2:].replace("-", "_").upper() for flag in flags if flag.startswith("--")), "WORD")


# ------------------------------------------------------------- bash


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["idbg", "ru"], ["run"]),
        (["idbg", "run", "--acc"], ["--accelerator"]),
        (["idbg", "--json", "run", "--col"], ["--cold", "--color"]),
        (["idbg", "--color", "al"], ["always"]),
        (["idbg", "check", "--stage", ""], ["aten", "dynamo", "post_grad"]),
        (["idbg", "check", "m.py", "--stage", "=", "po"], ["post_grad"]),
        (["idbg", "check", "m.py", "--stage", "="], ["aten", "dynamo", "post_grad"]),
        (["idbg", "run", "--device", "cuda", ":"], ["0"]),
        (["idbg", "run", "--accelerator", "t"], ["tenstorrent", "tpu", "trainium2"]),
        (["idbg", "run", "--accelerator", "mi"], ["mine.toml"]),
        (["idbg", "run", "--backend", "ao"], ["aot", "aoti"]),
        (["idbg", "replay", "--backend", "eager", "ao"], ["aot", "aoti"]),
        (["idbg", "run", "ml"], ["mlp two.py", "mlp.py"]),
        (["idbg", "run", "--warn", "--device", "cpu", "ml"], ["mlp two.py", "mlp.py"]),
        (["idbg", "run", "not"], []),
        (["idbg", "run", "mlp.py", "--", "not"], ["notes.txt"]),
        (["idbg", "run", "--output", "de"], ["debug_artifacts"]),
        (["idbg", "analyze", "ml"], ["mlp two.py", "mlp-20260101-000000", "mlp.py"]),
        (["idbg", "open", ""], ["bin", "debug_artifacts", "last", "mlp-20260101-000000"]),
        (["idbg", "accelerators", ""], ["show"]),
        (["idbg", "accelerators", "show", "te"], ["tenstorrent"]),
        (["idbg", "accelerators", "show", "--to"], ["--toml"]),
        (["idbg", "help", "mi"], ["minify"]),
        (["idbg", "completion", ""], ["bash", "fish", "zsh"]),
        (["idbg-tui", "--th"], ["--theme"]),
        (["idbg-tui", "--backend", "ind"], ["inductor"]),
    ],
)
def test_bash_offers_what_can_come_next(folder: Path, words: list[str], offered: list[str]) -> None:
    line = " ".join(words).replace(" = ", "=").replace(" =", "=").replace(" :", ":")
    command = [needs("bash"), "--norc", "-c", BASH, "bash", line]
    done = subprocess.run(command, cwd=folder, env=environ(folder), capture_output=True, text=True)
    assert done.stderr == ""
    found = [each.rstrip(" /").replace("\\ ", " ") for each in done.stdout.splitlines()]
    assert sorted(filter(None, found)) == sorted(offered)


# ------------------------------------------------------------- on a terminal


def typed(folder: Path, command: list[str], setup: str, keys: str, wanted: str) -> str:
    """What stands on the terminal of a shell once these keys were pressed, or after 20 s."""
    terminal = Terminal(command, cwd=folder, env=environ(folder), columns=100, rows=20)
    try:
        os.write(terminal.fd, f"{setup}\n".encode())
        until = time.monotonic() + 20
        while "ready>" not in terminal.text.replace("'ready> '", "") and time.monotonic() < until:
            terminal.pump(0.1)
        os.write(terminal.fd, keys.encode())
        while wanted not in terminal.text and time.monotonic() < until:
            terminal.pump(0.1)
        return terminal.text
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("idbg compl\tzs\t", "ready> idbg completion zsh"),
        ("idbg check mlp\\ t\t--stage=po\t", "ready> idbg check mlp\\ two.py --stage=post_grad"),
        ("idbg run --device cuda:\t", "ready> idbg run --device cuda:0"),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_line_is_completed_as_it_is_typed(folder: Path, shell: str, keys: str, wanted: str) -> None:
    setups = {
        "bash": "source idbg.bash; PS1='ready> '",
        "zsh": "autoload -U compinit; compinit -u -D; source ./idbg.zsh; PROMPT='ready> '",
    }
    commands = {"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}
    needs(shell)
    assert wanted in typed(folder, commands[shell], setups[shell], keys, wanted)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("idbg ru", ["run"]),
        ("idbg run --acc", ["--accelerator"]),
        ("idbg run --accelerator t", ["tenstorrent", "tpu", "trainium2"]),
        ("idbg check --stage ", ["aten", "dynamo", "post_grad"]),
        ("idbg run --backend ao", ["aot", "aoti"]),
        ("idbg analyze mlp-", ["mlp-20260101-000000"]),
        ("idbg accelerators ", ["show"]),
        ("idbg accelerators show te", ["tenstorrent"]),
        ("idbg help mi", ["minify"]),
        ("idbg-tui --th", ["--theme"]),
    ],
)
def test_fish_offers_what_can_come_next(folder: Path, line: str, wanted: list[str]) -> None:
    script = 'source idbg.fish; complete -C "$argv[1]"'
    command = [needs("fish"), "--no-config", "-c", script, line]
    done = subprocess.run(command, cwd=folder, env=environ(folder), capture_output=True, text=True)
    assert done.stderr == ""
    assert sorted(each.partition("\t")[0] for each in done.stdout.splitlines()) == wanted


@pytest.mark.parametrize("kind", ["session", "accelerator", "backend"])
def test_names_that_cannot_be_found_are_no_error(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IDBG_SETTINGS", str(tmp_path / "there is none.toml"))
    assert cli.main(["completion", "--words", kind]) == 0
    assert capsys.readouterr().err == ""
