"""A few programs of the conformance kit on each backend that CI installs; `idbg conform BACKEND` runs them all.

KNOWN has what fails with the versions that docs/conformance.md names: a version that is better is an XPASS.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import idbg.testing
from idbg.conformance.runner import ConformanceRunner, RunControl, conformance
from idbg.schema.conformance import ConformanceProgram, ConformanceRow
from idbg.views import conformance as view

pytestmark = pytest.mark.slow

KNOWN = {
    "openvino": {
        "mutation:input_in_place": "what is written to an input is lost",
        "views:output_is_view_of_input": "outputs are copies, where eager's are views",
    },
    "turbine_cpu": {"control_flow:cond": "no importer of cond", "sizes:empty": "SIGFPE"},
}
FEW = ("products:linear", "custom_ops:functional")

test_aot_eager = idbg.testing.conformance("aot_eager", programs=(*FEW, "training:classifier", "control_flow:cond"))
test_inductor = idbg.testing.conformance("inductor", programs=(*FEW, "sizes:empty"))
test_openvino = idbg.testing.conformance(
    "openvino", programs=(*FEW, *KNOWN["openvino"], "dynamic_shapes:batch_sizes"), known=KNOWN["openvino"]
)
test_turbine_cpu = idbg.testing.conformance(
    "turbine_cpu", programs=("products:linear", "control_flow:cond"), known=KNOWN["turbine_cpu"]
)
