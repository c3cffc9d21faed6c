"""A device of others whose package registers with Inductor: its kernels are shown, linked and judged."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.out_of_tree.observed import ERF, PROGRAM, TANH

ROOT = Path(__file__).resolve().parents[3]
LINE = 1 + PROGRAM.splitlines().index("        hidden = nn.functional.gelu(self.first(x))")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """In a process of its own: torch cannot forget a device."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    folders = [str(tmp_path_factory.getbasetemp().parent), str(tmp_path_factory.mktemp("model"))]
    command = [sys.executable, "-m", "tests.harness.out_of_tree.observed", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


def test_its_kernels_are_kept_whole_and_its_extern_calls_are_linked(observed: dict[str, Any]) -> None:
    assert observed["ended"]["failure"] is None
    kernels = {each["name"]: each for each in observed["kernels"]}
    gelu = next(each for name, each in kernels.items() if "gelu" in name)
    assert gelu["language"] == "loops" and gelu["source"].startswith(f"{gelu['name']} = async_compile.loops(")
    assert gelu["source"].count("Loop(") > 20 and gelu["source"].rstrip().endswith("])")
    assert {"erf", "mul_2"} <= {name for call in gelu["calls"] for name in call["nodes"]}
    extern = kernels["extern_kernels.addmm"]
    assert [call["nodes"] for call in extern["calls"]] == [["addmm"], ["addmm_1"]]


def test_the_kernels_object_offers_what_it_was_lowered_to(observed: dict[str, Any]) -> None:
    offered, raised, long, malformed = observed["lowered"]
    (text,) = offered["lowered"]["texts"]
    assert (text["name"], text["language"]) == ("loops", "cpp") and ERF in text["text"]
    assert "ZeroDivisionError" in raised["failure"]["message"] and "idbg_lowered" in raised["failure"]["message"]
    assert "more than the" in long["lowered"]["texts"][0]["text"]
    assert "(name, language, text)" in malformed["failure"]["hint"]


def test_a_kernel_without_a_source_of_its_own_is_edited_as_the_statement_that_defines_it(
    observed: dict[str, Any],
) -> None:
    edit = observed["edited"]["edit"]
    assert TANH in edit["text"] and edit["report"]["verdict"] == "failed"
    assert edit["edited"]["bad"] and not edit["original"]["bad"]


def test_a_correct_program_passes_and_a_wrong_kernel_is_named_with_the_users_line(observed: dict[str, Any]) -> None:
    assert observed["compared"]["verdict"] == "passed"
    wrong = observed["wrong"]
    assert wrong["verdict"] == "failed"
    bad = [each for each in wrong["kernels"] if each["bad"]]
    assert "gelu" in bad[0]["name"] and bad[0]["line"] == LINE, bad
