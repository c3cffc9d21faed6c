"""Whatever fails a compile, also code of the user's that the compiler calls, ends in a script that shows it alone."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import warm
from tests.harness.failing_compiles import FAILING

FAST = {  # one for each way that code is carried
    *("lowering raises", "a pass with values of its own asserts", "a pattern's replacement raises"),
    *("speedup_by_fusion raises", "fake kernel raises", "backend of AOTAutograd raises", "the model raises"),
}
ROOT = Path(__file__).parents[3]
SHOWN = [name for name, case in FAILING.items() if case.raises]
REFUSED = [name for name, case in FAILING.items() if case.refuses]


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {
        "PYTHONPATH": str(ROOT),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "caches"),
        warm.CHILDREN: "1",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environ, capture_output=True, text=True, timeout=300
    )


def written(folder: Path, name: str, *how: str) -> dict[str, object]:
    done = ran(folder, str(ROOT / "tests/harness/failing_child.py"), name, str(folder), *how)
    lines = done.stdout.strip().splitlines()
    assert lines and lines[-1].startswith("{"), done.stdout + done.stderr
    told = json.loads(lines[-1])
    assert isinstance(told, dict)
    return told


def marked(names: list[str]) -> list[object]:
    return [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", marked(SHOWN))
def test_a_failing_compile_has_a_script_that_fails_so_in_another_process(tmp_path: Path, name: str) -> None:
    told = written(tmp_path, name)
    assert "script" in told, told
    script = Path(str(told["script"]))
    done = ran(tmp_path, str(script))
    assert done.returncode == 1, script.read_text() + done.stdout + done.stderr
    assert re.search(rf"^REPRODUCED .*{FAILING[name].raises}", done.stdout, re.MULTILINE), done.stdout
    assert "import idbg" not in script.read_text(), "who has torch needs nothing of ours"


@pytest.mark.parametrize("name", marked(REFUSED))
def test_what_is_no_compilers_failure_is_refused_in_its_own_words(tmp_path: Path, name: str) -> None:
    told = written(tmp_path, name)
    assert re.search(FAILING[name].refuses, str(told.get("refused"))), told


MINIFIED = [
    "lowering asserts",
    "lowering put into the table raises",
    "C++ written by a patched CppOverrides",
    "post-grad pass is wrong",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MINIFIED)
def test_the_smallest_script_carries_the_compilers_code_too(tmp_path: Path, name: str) -> None:
    told = written(tmp_path, name, "minify")
    assert (told.get("size"), told.get("reproduced")) == (1, True), told
    assert ran(tmp_path, str(told["script"])).returncode == 1


@pytest.mark.slow
def test_code_that_the_compiler_calls_is_whole_in_the_smallest_script(tmp_path: Path) -> None:
    """It finds the table by an import of its own, and reads what the table had before."""
    (tmp_path / "model.py").write_text("import torch\n" + FAILING["lowering put into the table dies"].text)
    done = ran(tmp_path, "-m", "idbg", "minify", "model.py")
    out = done.stdout + done.stderr
    assert "killed by SIGSEGV" in out and "script: " in out, out
    script = tmp_path / out.partition("script: ")[2].splitlines()[0]
    text = script.read_text()
    assert "it fails again in a fresh process" in out, out
    assert "before = lowerings[" in text and "return before(x)" in text
    assert ran(tmp_path, str(script)).returncode == 1
