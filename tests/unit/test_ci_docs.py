"""What the pages on CI and pytest tell people to paste is what our commands take, and does what they say."""

import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml

from idbg.cli import parsing
from idbg.config.command_line import split
from idbg.reports import baseline

DOCS = Path(__file__).parents[2] / "docs"
CI, PYTEST = ((DOCS / name).read_text(encoding="utf-8") for name in ("ci.md", "pytest.md"))


def fenced(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def commands(lines: str) -> list[list[str]]:
    return [shlex.split(line, comments=True)[1:] for line in lines.splitlines() if line.startswith("idbg ")]


def workflow() -> Any:
    (text,) = fenced(CI, "yaml")
    return yaml.safe_load(text)


def steps() -> list[dict[str, Any]]:
    (job,) = workflow()["jobs"].values()
    return job["steps"]


def test_our_own_workflows_run_what_everybody_runs() -> None:
    """GitHub's CI is `.ci/run`: its first tier on each Python and torch, and each night all. A release has no token."""
    ours = {path.stem: yaml.safe_load(path.read_text()) for path in (DOCS.parent / ".github/workflows").glob("*.yml")}
    job, nightly = ours["ci"]["jobs"]["ci"], ours["nightly"]["jobs"]["exhaustive"]
    for each in (job, nightly):
        assert [step["run"] for step in each["steps"] if "run" in step] == [".ci/run"]
    assert job["steps"][-1]["env"] == {"TORCH": "${{ matrix.torch }}", "TIER": "first"}
    assert {each["torch"] for each in job["strategy"]["matrix"]["include"]} == {"2.14", "2.11"}
    assert nightly["strategy"]["matrix"]["torch"] == ["newest", "2.14", "2.11"]
    folders = " ".join(nightly["strategy"]["matrix"]["shard"])
    assert all(f"tests/{name}" in folders for name in ("unit", "screen", "compile", "matrix"))
    publish = ours["release"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"} and "password" not in str(publish)


def test_the_workflow_is_one_and_may_do_what_it_does() -> None:
    told = workflow()
    assert {"pull_request", "push"} == set(told[True]), "YAML reads `on` as true"
    assert told["permissions"] == {"contents": "read", "security-events": "write"}
    assert all(("run" in step) != ("uses" in step) for step in steps())
    uses = {step["uses"].partition("@")[0] for step in steps() if "uses" in step}
    assert {"actions/checkout", "github/codeql-action/upload-sarif", "actions/upload-artifact"} <= uses
    written = {word for step in steps() for command in commands(step.get("run", "")) for word in command}
    upload = next(step for step in steps() if "upload-sarif" in step.get("uses", ""))
    assert upload["with"]["sarif_file"] in written


RUN = [command for step in steps() for command in commands(step.get("run", ""))]
PASTED = [command for page in (CI, PYTEST) for block in fenced(page, "sh") for command in commands(block)]
TABLE = [shlex.split(cell)[1:] for cell in re.findall(r"^\| `(idbg [^`]*)` \|", CI, re.MULTILINE)]


@pytest.mark.parametrize("command", [*RUN, *PASTED, *TABLE], ids=" ".join)
def test_each_command_is_one_that_our_parser_takes(command: list[str]) -> None:
    parsing.parsed(split(command)[0])


def test_there_are_commands_on_the_page_and_all_kinds_of_verbs() -> None:
    verbs = {command[0] for command in (*RUN, *PASTED, *TABLE)}
    assert verbs == {"check", "run", "diff", "report", "bench", "analyze"} and len(RUN) == 4


def test_the_baseline_on_the_page_is_one(tmp_path: Path) -> None:
    (text,) = fenced(CI, "json")
    (tmp_path / "known.json").write_text(text)
    known = baseline.load(tmp_path / "known.json")
    assert baseline.encode(known).decode() == text


def test_the_tests_on_the_page_hold_and_its_flags_are_flags(tmp_path: Path, warm: None) -> None:
    text, conformance = fenced(PYTEST, "python")
    compile(conformance, "<page>", "exec")
    (tmp_path / "test_page.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    installed = any(each.name == "idbg" for each in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "idbg.testing.plugin")
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "--tb=short", "--show-capture=no"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert "3 passed" in done.stdout, done.stdout[-3000:]
    assert not (tmp_path / "debug_artifacts").exists()
    (flags,) = fenced(PYTEST, "sh")
    known = (DOCS.parent / "core" / "idbg" / "testing" / "plugin.py").read_text()
    assert set(re.findall(r"--idbg[\w-]*", flags)) <= set(re.findall(r'"(--idbg[\w-]*)"', known))
