"""Whose is the error of a launch? Planted in the wrapper or its kernels, and asked of the launch that shows it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule
from torch.nn import functional as F

from idbg.engine.kerneldiff.kernel_attribution.node_source import node_source
from idbg.engine.kerneldiff.kernel_attribution.script import launch_script
from idbg.format.attributions import sentence
from tests.harness.owned import Owned, edited

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def chain(x: Tensor, w: Tensor) -> Tensor:
    """Reductions and products between pointwise kernels, so that memory is used again."""
    first = ((x @ w) * 1.25).softmax(-1)
    second = ((first @ w) * 1.0392 + first).softmax(-1)
    return (second @ w) * 1.75


def square() -> tuple[Tensor, Tensor]:
    return torch.randn(48, 48), torch.randn(48, 48)


def test_of_a_clean_program_every_launch_is_nobodys():
    owned = Owned(chain, square())
    for at in range(len(owned.report.kernels)):
        owner = owned.owner(at)
        assert (owner.kind, owner.launch, owner.calls) == ("nobody", at, 4), sentence(owner)
        assert owner.error is not None and owner.error < 1e-6 and owner.eager_error is not None


def test_a_wrong_kernel_is_the_compilers_and_a_launch_behind_it_names_it():
    with edited(lambda text: text.replace("1.0392", "1.5392")) as changed:
        owned = Owned(chain, square())
        assert changed and owned.report.verdict == "failed"
        owner, bad = owned.owner(), owned.report.first_bad_kernel
        assert owner.kind == "compiler" and owner.launch == bad and "softmax" in owner.name
        assert owner.error is not None and owner.eager_error is not None and owner.error > 1e3 * owner.eager_error
        assert sentence(owner).startswith("the compiler's: called alone on its own inputs cpp_fused")
        behind = owned.owner(len(owned.report.kernels) - 1)
    assert (behind.kind, behind.cause) == ("before", bad)
    assert "what it reads is already wrong" in sentence(behind)


def two(x: Tensor) -> Tensor:
    first, second = x @ x, x @ x.t()
    return (first * 1.0393).sin() + (second * 1.0394).cos()


def test_a_buffer_that_was_reused_too_early_names_who_wrote_over_it_and_the_line():
    def reuse(text: str) -> str:
        return re.sub(r"^( +)buf1 = empty_strided_cpu\(.*$", r"\1buf1 = buf0  # reuse", text, count=1, flags=re.M)

    with edited(reuse) as changed:
        owned = Owned(two, (torch.randn(32, 32),))
        accused = owned.owner()
        assert changed and accused.kind == "before" and accused.name == "extern_kernels.mm", sentence(accused)
        assert "but the wrapper gives buf1, which it writes, the memory of buf0, which cpp_fused" in sentence(accused)
        owner = owned.owner("cpp_fused")
        assert owner.kind == "before" and owner.cause == 1
        assert "buf0, which it reads, was no longer as extern_kernels.mm:1" in sentence(owner)
        assert "buf1 was given its memory too early (buf1 = buf0  # reuse)" in sentence(owner)
        written = owned.owner(0)
    assert written.kind == "before" and "buf0, which it wrote, was no longer as it left it" in sentence(written)


def test_what_the_wrapper_itself_changes_is_said_with_its_lines():
    def spoil(text: str) -> str:
        return re.sub(r"^( +)(extern_kernels\.mm\(.*out=buf0\))$", r"\1\2\n\1buf0.mul_(1.01)", text, flags=re.M)

    with edited(spoil) as changed:
        owner = Owned(two, (torch.randn(32, 32),)).owner()
    assert changed and owner.kind == "before" and owner.cause is None
    assert "the wrapper itself changed it, between line" in sentence(owner)


def test_a_launch_that_writes_outside_of_its_memory_is_found_by_looking_after_each():
    def beyond(text: str) -> str:
        """The second product writes into the first one's memory, by an address that is not among its arguments."""
        line = r"\1\2\n\1if True:\n\1    torch.empty(0).set_(STORE[0], 0, (4,), (1,)).fill_(7.0)"
        text = re.sub(r"^( +)(extern_kernels\.mm\(.*out=buf1\))$", line, text, flags=re.M)
        return re.sub(
            r"^( +)(buf0 = empty_strided_cpu\(.*)$", r"\1\2\n\1STORE = [buf0.untyped_storage()]", text, flags=re.M
        )

    with edited(beyond) as changed:
        owner = Owned(two, (torch.randn(32, 32),)).owner()
    assert changed and owner.kind == "before", sentence(owner)
    assert "buf0, which it reads" in sentence(owner)


def test_what_eager_loses_too_is_the_precisions():
    def program(x: Tensor) -> Tensor:
        return ((x + 4096.3) - 4096.3) * 1.0395

    owner = Owned(program, (torch.randn(64, 64),)).owner(0)
    assert owner.kind == "precision", sentence(owner)
    assert owner.error == pytest.approx(owner.eager_error, rel=0.5) and owner.error is not None and owner.error > 1e-5


def test_a_kernel_that_computes_a_wrong_graph_is_the_graphs():
    def wrong(graph: Graph) -> None:
        for node in graph.nodes:
            node.args = tuple(1.0996 if each == 1.0396 else each for each in node.args)

    with torch._inductor.config.patch(post_grad_custom_post_pass=wrong):
        owned = Owned(lambda x: (x * 1.0396).sin(), (torch.randn(64, 64),))
        owner = owned.owner(0)
    assert owned.report.verdict == "failed" and owned.report.first_wrong_stage is not None
    assert owner.kind == "graph" and "wrong since post-grad" in sentence(owner), sentence(owner)


def test_what_is_not_the_same_each_time_is_said():
    def edit(text: str) -> str:
        return re.sub(
            r"(auto tmp\d+ = )static_cast<float>\(1\.0388\);", r"\1static_cast<float>(std::rand() % 7);", text
        )

    with edited(edit) as changed:
        owner = Owned(lambda x: (x * 1.0388).sin() + 3, (torch.randn(64, 64),)).owner(0)
    assert changed and owner.kind == "compiler", sentence(owner)
    assert "the same call gives something else each time" in sentence(owner)


def test_parts_of_a_concatenation_are_called_alone_and_so_are_their_scripts(tmp_path: Path):
    def program(x: Tensor) -> Tensor:
        joined = torch.cat([x.sin(), (x @ x).cos() * 1.0387], 1)
        return joined @ joined.t()

    with edited(lambda text: text.replace("1.0387", "1.1387")):
        owned = Owned(program, (torch.randn(16, 16),))
        owner = owned.owner()
        assert owner.kind == "compiler" and owner.name.startswith("cpp_fused"), sentence(owner)
        script = launch_script(owned.comparison.owner(owned.report, owner.launch), tmp_path)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "WRONG: " in done.stdout, done.stdout + done.stderr
    first = owned.owner(owned.place("cpp_fused"))
    assert first.kind in ("nobody", "compiler") and first.calls == 4, sentence(first)


def test_a_sum_in_parts_says_which_other_launch_it_may_be():
    def edit(text: str) -> str:
        return text.replace("1.0386", "1.2386")

    with edited(edit) as changed:
        owned = Owned(lambda x: (x * 1.0386).sum(), (torch.rand(700, 900),))
        told = [owned.owner(at) for at in range(len(owned.report.kernels))]
    assert changed and any(owner.kind == "compiler" for owner in told), [sentence(owner) for owner in told]


def test_extern_calls_are_replayed_and_a_wrong_argument_is_the_compilers():
    def program(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return torch.addmm(x[0, 0], x[0, 0], x[0, 0], alpha=0.5193), F.conv2d(x, w).relu(), x.sort(-1)[0]

    inputs = torch.randn(2, 3, 16, 16), torch.randn(4, 3, 3, 3)
    with edited(lambda text: text.replace("0.5193", "0.5293")):
        owned = Owned(program, inputs)
        owner = owned.owner()
        assert (owner.kind, owner.name) == ("compiler", "extern_kernels.addmm"), sentence(owner)
        others = [owned.owner(name) for name in ("sort", "extern_kernels.convolution")]
    assert {other.kind for other in others} == {"nobody"}, [sentence(each) for each in others]
    assert [other.name for other in others] == ["torch.ops.aten.sort.stable", "extern_kernels.convolution"]


def loss(out: Tensor) -> Tensor:
    return out.square().sum()


def test_a_kernel_that_writes_in_place_and_one_of_the_backward():
    model = nn.Sequential(nn.BatchNorm2d(4, momentum=0.0793), nn.Conv2d(4, 4, 3))
    with edited(lambda text: text.replace("0.0793", "0.0893")):
        owned = Owned(model, (torch.randn(4, 4, 8, 8),), loss=loss)
        owner = owned.owner()
        assert owner.kind == "compiler" and owner.node.startswith("copy_"), sentence(owner)
        for at, kernel in enumerate(owned.report.kernels):
            if kernel.part == "backward" and kernel.observed:
                assert owned.owner(at).kind == "nobody", sentence(owned.owner(at))


def test_a_wrong_kernel_of_the_backward_with_symbolic_sizes():
    def program(x: Tensor) -> Tensor:
        return ((x @ x.t()) * 1.0397).sin() @ x

    def edit(text: str) -> str:
        return text.replace("1.0397", "1.1397") if "_backward']" in text[:200] else text

    with edited(edit) as changed:
        owned = Owned(program, (torch.randn(24, 12, requires_grad=True),), loss=loss, dynamic=True)
        owner = owned.owner()
    assert changed and owner.kind == "compiler", sentence(owner)
    assert owned.report.kernels[owner.launch].part == "backward"


def test_rows_that_nobody_writes_depend_on_what_was_there():
    def edit(text: str) -> str:
        return re.sub(
            r"x0<static_cast<int64_t>\((\d+)L\)", lambda m: f"x0<static_cast<int64_t>({int(m[1]) - 16}L)", text
        )

    with edited(edit) as changed:
        owner = Owned(lambda x: (x * 1.0398).sin() + 3, (torch.randn(64, 65),)).owner(0)
    assert changed and owner.kind == "compiler", sentence(owner)
    assert "what it gives depends on what was in its memory before" in sentence(owner)


def test_what_was_compiled_is_compiled_again_where_torch_has_forgotten_it():
    owned = Owned(lambda x: (x * 1.0399).sin() @ x, (torch.randn(16, 16),))
    torch._dynamo.reset()
    assert [owned.owner(at).kind for at in (0, 1, 0)] == ["nobody"] * 3


def test_a_launch_that_draws_random_numbers_is_not_judged():
    owned = Owned(lambda x: F.dropout(x, 0.5, True) * 1.0391, (torch.randn(16, 16),))
    at = next(at for at, kernel in enumerate(owned.report.kernels) if not kernel.observed)
    owner = owned.owner(at)
    assert owner.kind == "unjudged" and owner.error is None and "not known" in sentence(owner)


def test_a_script_registers_the_ops_that_are_inductors_own() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    wide = graph.call_function(torch.ops.prims.convert_element_type.default, (x, torch.float32))
    assert not node_source(GraphModule(nn.Module(), graph)).imports
    graph.call_function(torch.ops.prims.prepare_softmax_online.default, (wide, -1))
    told = node_source(GraphModule(nn.Module(), graph))
    registering = [f"import {each}" for each in told.imports]
    script = "\n".join(["import torch", *registering, "floating = lambda it: it", "x = torch.ones(2, 3)", *told.lines])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
