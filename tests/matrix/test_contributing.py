"""The kind of decision that CONTRIBUTING.md adds works in a copy of the program, and takes as many files as it says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "docs", "idbg_tui", "tests/harness", "tests/real_programs", "themes", "tools")
MOST_FILES = 6
PROGRAM = """
import torch

def program():
    return (lambda a, b: ((a @ b).sin() @ b).cos() @ b @ b), (torch.rand(64, 64), torch.rand(64, 64))
"""


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_kind_of_decision_of_the_page_is_added_with_six_files(tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Add a kind of decision in five minutes")[2].partition("\n## ")[0]
    files = re.findall(r"\d\. Write `([\w/.]+)`.*?```python\n(.*?)\n +```", section, re.DOTALL)
    copy = tmp_path / "copy"
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__", "pictures"))
    for name in ("README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, copy)

    def python(*arguments: str) -> str:
        environ = {**os.environ, "PYTHONPATH": f"{copy / 'core'}:{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=copy, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    before = written(copy)
    for name, text in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(dedent(text) + "\n", encoding="utf-8")
    python("-m", "tools.pages")
    python("-m", "idbg.reports.documents.json.schema")
    changed = {name for name, content in written(copy).items() if before.get(name) != content}
    assert {name for name, _ in files} < changed and len(changed) <= MOST_FILES, changed

    python(
        "-m",
        "pytest",
        "-q",
        "--noconftest",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        f"--rootdir={copy}",
        files[-1][0],
    )
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    report = json.loads(
        python("-m", "idbg", "analyze", str(program), "--type", "reuse", "--json", "--output", str(tmp_path / "out"))
    )
    (reuse, *_) = report["reuse"]
    assert reuse.keys() == {"frame", "part", "buffer", "of"} and reuse["part"] == "inference"
    (saved,) = (tmp_path / "out").iterdir()
    text = python("-m", "idbg", "analyze", str(saved), "--type", "reuse")
    assert f"{reuse['buffer']} is in the memory of {reuse['of']}" in text, "the log has it"
    html = python("-m", "idbg", "report", str(saved), "--format", "html")
    assert "Reused buffers" in html and f"{reuse['buffer']} is in the memory of {reuse['of']}" in html
