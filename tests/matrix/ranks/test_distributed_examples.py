"""The examples of distributed jobs run on gloo ranks: replicas are equal, stages of a pipeline are not."""

import sys
from pathlib import Path

import pytest
import torch.distributed as dist

from idbg.schema.runs import fold
from idbg.session.reading import load
from tests.harness.jobs import compare_script, run_command, run_script

EXAMPLES = Path(__file__).parents[3] / "examples" / "distributed"
WITH_GLOO = pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no gloo")
pytestmark = [pytest.mark.slow, WITH_GLOO]


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "tensor_parallel"])
def test_replicas_and_shards_compile_and_compute_the_same(tmp_path: Path, name: str) -> None:
    found = compare_script(EXAMPLES / f"{name}.py", tmp_path)
    assert found.status == 0, found.output[-3000:]
    assert {each["kind"] for each in found.record["differences"]} <= {"time"}
    assert any(row["groups"][0][1].get("kernels") for row in found.record["frames"])
    assert all(each["collectives"]["default_pg"] for each in found.record["ranks"])
    assert [each["numbers"] for each in found.record["ranks"]] == ["agree", "agree"]
    run = fold(load(found.folder / "processes" / "rank1")).last
    assert run is not None and run.diff is not None and run.backends == ("inductor",)
    assert run.diff.outputs and run.diff.gradients and run.diff.float64_missing == ""


def test_stages_of_a_pipeline_differ_and_nothing_stops(tmp_path: Path) -> None:
    found = run_script(EXAMPLES / "pipeline.py", tmp_path)
    assert found.status == 0, found.output[-3000:]
    first = found.differences("graph")[0]
    assert "relu" in first["sentence"] and "sigmoid" in first["sentence"]
    assert first["place"][0].endswith("pipeline.py")


def test_a_job_that_torchrun_starts(tmp_path: Path) -> None:
    torchrun = ["torchrun", "--standalone", "--nproc-per-node", "2", str(EXAMPLES / "tensor_parallel.py")]
    found = run_command([sys.executable, "-m", "idbg", "run", "--", *torchrun], tmp_path)
    assert found.status == 0, found.output[-3000:]
    assert [each["rank"] for each in found.record["ranks"]] == [0, 1]
