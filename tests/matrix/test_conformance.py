"""A few programs of the conformance kit on each backend that CI installs; `idbg conform BACKEND` runs them all.

KNOWN has what fails with the versions that docs/conformance.md names: a version that is better is an XPASS.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import idbg.testing
from tests.harness import broken_backend

pytestmark = pytest.mark.slow

FEW = ("products:linear", "custom_ops:functional")
KNOWN = {
    "openvino": {
        "mutation:input_in_place": "what is written to an input is lost",
        "views:output_is_view_of_input": "outputs are copies, where eager's are views",
    },
    "turbine_cpu": {"control_flow:cond": "torch.cond is not imported"},
}

test_aot_eager = idbg.testing.conformance("aot_eager", programs=(*FEW, "training:classifier", "control_flow:cond"))
test_inductor = idbg.testing.conformance("inductor", programs=FEW)
test_openvino = idbg.testing.conformance("openvino", programs=(*FEW, *KNOWN["openvino"]), known=KNOWN["openvino"])
test_turbine_cpu = idbg.testing.conformance(
    "turbine_cpu", programs=("products:linear", "control_flow:cond"), known=KNOWN["turbine_cpu"]
)


def test_a_crash_a_hang_and_an_unknown_backend_are_a_sentence_each_and_stop_nothing(tmp_path: Path) -> None:
    package = tmp_path / "packages"
    (package / "broken-1.0.dist-info").mkdir(parents=True)
    (package / "broken-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    points = "[torch_dynamo_backends]\nbroken = broken_backend:broken\n"
    (package / "broken-1.0.dist-info" / "entry_points.txt").write_text(points)
    shutil.copy(str(broken_backend.__file__), package / "broken_backend.py")

    names = ("products:linear", "custom_ops:functional", "sizes:scalars")
    command = [sys.executable, "-m", "idbg", "conform", "nosuch", "broken", "--json", "--timeout", "12"]
    command += [*(word for name in names for word in ("--program", name)), "--script-seconds", "0"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out"), "--junit", "report.xml", "--html", "report.html"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr
    nosuch, broken = json.loads(done.stdout)["backends"]
    assert nosuch["problem"]["message"] == "there is no backend 'nosuch'" and not nosuch["rows"]
    assert broken["versions"]["broken"] == "1.0"
    reasons = {row["program"]: (row["grade"], row["reason"]) for row in broken["rows"]}
    assert tuple(reasons) == names
    assert {grade for grade, _ in reasons.values()} == {"failed"}
    assert reasons["products:linear"][1].startswith("the process was killed by SIGSEGV")
    assert reasons["custom_ops:functional"][1] == "it had not ended after 12 s, and was stopped"
    assert "out[0] is wrong: " in reasons["sizes:scalars"][1]
    assert (tmp_path / "report.html").read_text().count("products:linear") and (tmp_path / "report.xml").exists()
