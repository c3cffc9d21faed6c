"""What Triton kernels do, by their source: of a real compile on an H100, held against the numbers that torch noted."""

import re
from pathlib import Path

from idbg.analysis.decisions.fusion import from_cache
from idbg.analysis.decisions.kernel_facts import kernel_facts
from idbg.schema.runs import Run, fold
from idbg.views.fusion import facts_words
from tests.harness.event_lines import events_of

RECORDING = Path(__file__).parents[2] / "recordings" / "mlp_train_cuda.jsonl"


def recorded() -> Run:
    return next(reversed(fold(events_of(RECORDING.read_bytes().splitlines())).runs.values()))


def test_loads_and_stores_are_those_that_torch_counts():
    run = recorded()
    kernels = [kernel for kernel in run.kernels if kernel.language == "triton"]
    assert len(kernels) > 3
    for kernel in kernels:
        facts = kernel_facts(run, kernel)
        noted = dict(re.findall(r"'num_(load|store)': (\d+)", kernel.source))
        assert (facts.loads, facts.stores) == (int(noted["load"]), int(noted["store"])), kernel.name
        assert dict(facts.sizes).keys() >= {"xnumel"}
        assert facts.kind in ("pointwise", "persistent_reduction", "reduction")
        assert facts.writes, kernel.name
        assert (facts.reductions > 0) == ("reduction" in facts.kind)


def test_what_is_computed_nowhere_is_read_as_what_it_is_a_view_of():
    run = recorded()
    norm = next(kernel for kernel in run.kernels if "native_layer_norm_0" in kernel.name)
    facts = kernel_facts(run, norm)
    assert {buffer.node for buffer in facts.reads} == {"addmm", "primals_4", "primals_5"}
    assert "persistent_reduction, xnumel 32, r0_numel 128; 3 loads, 3 stores" in facts_words(facts)


def test_a_run_of_before_says_that_the_scheduler_was_from_cache():
    assert from_cache(recorded())
