"""A session that was recorded on an H200 opens anywhere: Triton kernels beside the nodes that they compute."""

from idbg.analysis.provenance import Provenance
from idbg_tui.state.state import State
from tests.harness.recorded import state_of


def cuda() -> State:
    return state_of("mlp_train_cuda")


def test_triton_kernels_of_forward_and_backward_are_linked_to_nodes() -> None:
    run = cuda().history.last
    assert run is not None
    triton = [kernel for kernel in run.kernels if kernel.language == "triton"]
    assert {kernel.part for kernel in triton} == {"forward", "backward"}
    provenance = Provenance(run)
    for kernel in triton:
        wrapper = run.codes[kernel.frame, kernel.part].text.splitlines()
        assert all(kernel.name in wrapper[call.line - 1] for call in kernel.calls)
        assert "@triton.jit" in kernel.source
        for node in provenance.nodes_of(kernel):
            assert kernel in [found for found, _ in provenance.kernels_of(node)]


def test_tensors_say_that_they_are_on_the_gpu() -> None:
    run = cuda().history.last
    assert run is not None
    devices = {node.tensor.device for graph in run.graphs.values() for node in graph.nodes if node.tensor}
    assert "cuda:0" in devices
