"""`idbg accelerators`: which there are, and what the rules of one say."""

import json
import re
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from idbg import cli, plugins
from idbg.accelerators import registry
from idbg.accelerators.parse import parse

MINE = """\
# a comment
name = "mine"
description = "An NPU of ours"

[[rules]]
kind = "alignment"
name = "rows"
multiple = 1024
dims = "last"
severity = "pad"
ops = ["mm", "convolutoin"]
roles = ["weights"]
stages = ["forward"]
source = "https://vendor.example/guide"
version = "SDK 2"
fix = "ask the vendor"

[[rules]]
kind = "memory"
max_bytes = inf
enabled = false
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(MINE)
    return tmp_path


@pytest.fixture
def _broken_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """An accelerator of another package that cannot be imported is installed."""
    points = (EntryPoint("theirs", "no_such_module_of_others:path", "idbg.accelerators"),)
    loaded = plugins.Loaded(points)
    monkeypatch.setattr(plugins, "names", lambda group: tuple(p.name for p in points if p.group == group))
    monkeypatch.setattr(plugins, "load", lambda group: loaded)


def test_every_preset_is_listed_with_its_rules_and_description(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["accelerator", "reject"]
    assert [line.split()[0] for line in lines if line[0] != " "] == registry.names()
    (mock,) = [line for line in lines if line.startswith("mock ")]
    assert re.search(r"mock +\d", mock) and "Permissive defaults" in mock


def test_the_list_is_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators", "--sort", "reject"]) == 0
    counts = [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()[1:]]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]


def test_the_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators", "--json"]) == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["accelerators"]}
    assert list(found) == registry.names()
    for name, each in found.items():
        tables = tomllib.loads(registry.find(name)[0])["rules"]
        assert sum(each["rules"].values()) == sum(table.get("enabled", True) for table in tables), name
    assert Path(found["mock"]["path"]).name == "mock.toml"
    assert found["mock"]["error"] == ""


@pytest.mark.usefixtures("_broken_package")
def test_a_broken_one_of_another_package_is_listed_with_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search("theirs [- ]+ cannot be used: ", text) and "No module named 'no_such_module_of_others'" in text
    assert cli.main(["accelerators", "show", "theirs"]) == 2
    assert "no_such_module_of_others" in capsys.readouterr().err


def test_a_rule_is_shown_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators", "show", "mine.toml"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("mine.toml   An NPU of ours\n")
    for line in (
        "◇ rows   alignment   pad   [1]",
        "multiple: 1,024; dims: last",
        "only: calls of mm, convolutoin; weights; forward graphs",
        "→ ask the vendor",
        "✘ memory   reject   (off)",
        "max bytes: inf",
        "[1] SDK 2   https://vendor.example/guide",
        '! line 11: no op of torch matches "convolutoin"; did you mean convolution?',
    ):
        assert line in text, line
    assert "unknown" not in text  # it is not in the file


def test_the_rules_as_json_have_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators", "show", "mine.toml", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows, memory = told["rules"]
    assert (rows["kind"], rows["multiple"], rows["severity"], rows["ops"]) == (
        "alignment",
        1024,
        "pad",
        ["mm", "convolutoin"],
    )
    assert (memory["severity"], memory["enabled"], memory["max_bytes"]) == ("reject", False, None)
    assert told["warnings"][0]["line"] == 11


def test_the_file_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators", "show", "mine.toml", "--toml"]) == 0
    assert capsys.readouterr().out == MINE


@pytest.mark.parametrize("name", registry.names())
def test_every_preset_can_be_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["accelerators", "show", name]) == 0
    written = capsys.readouterr().out
    assert written.startswith(name)
    assert all(rule.name in written for rule in parse(registry.find(name)[0]).rules if rule.source)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "mok"], "did you mean mock?"),
        (["show", "nope.toml"], "there is no file nope.toml"),
        (["show", "bad.toml"], "bad.toml:2: "),
        (["show", "bad.toml", "--json"], "bad.toml:2: "),
        (["show", "mock", "--json", "--toml"], "exclude each other"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (folder / "bad.toml").write_text("name = 'x'\nnmae = 'y'\n")
    assert cli.main(["accelerators", *arguments]) == 2
    written = capsys.readouterr()
    assert said in written.err
    if "--json" in arguments:
        assert json.loads(written.out)["status"] == 2
    else:
        assert written.out == ""


@pytest.mark.parametrize("arguments", [["shwo"], ["show"]])
def test_bad_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["accelerators", *arguments])
    assert caught.value.code == 2


def test_a_file_that_is_not_valid_is_printed_as_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.toml").write_text("nmae = 'y'\n")
    assert cli.main(["accelerators", "show", "bad.toml", "--toml"]) == 0
    assert capsys.readouterr().out == "nmae = 'y'\n"
