"""Who is the cause, on real torch: a pass, a lowering, an option. Each try is a process, and a crash is a result."""

from pathlib import Path

import pytest

from idbg.bisect.job import bisected
from idbg.bisect.options import of_texts
from idbg.engine.bisection import drawn
from idbg.engine.compat import bisector
from idbg.engine.program.option_types import checked
from idbg.render.text import text
from idbg.schema.bisection import PYTHON, Bisected, Question
from idbg.schema.programs import Program, Target
from idbg.views.bisection import answer_sentence, view
from tests.harness.crashing import NOWHERE, PLANT
from tests.harness.git_history import GitHistory

MODEL = """
import torch
import torch._inductor.config


def model(x, w):
    h = x @ w
    return (h.sin() + 1).relu().sum(1)  # here


def program():
    torch.manual_seed(0)
    return model, (torch.randn(8, 8), torch.randn(8, 8))
"""
WRONG_PASS = """

def other_op(graph):
    for node in graph.nodes:
        if node.target is torch.ops.aten.sin.default:
            node.target = torch.ops.aten.cos.default


torch._inductor.config.post_grad_custom_post_pass = other_op
"""
RAISING_PASS = """

def refuses(graph):
    raise ValueError("this graph is refused by a pass")


torch._inductor.config.joint_custom_post_pass = refuses
"""


def program(folder: Path, text: str) -> Program:
    (folder / "p.py").write_text(text)
    return Program("p.py", cwd=str(folder))


def searched(folder: Path, text: str) -> Bisected:
    return bisected(Question("compiler", program(folder, text), Target(backend="inductor")))


@pytest.mark.slow
def test_a_wrong_pass_is_found_with_the_graph_around_it(tmp_path: Path) -> None:
    found = searched(tmp_path, MODEL + WRONG_PASS)
    assert found.signature is not None
    assert found.signature.kind == "wrong"
    part = found.part
    assert part is not None
    assert part.application is not None
    assert (part.backend, part.subsystem) == ("inductor", "post_grad_passes")
    assert (part.application.what, part.application.graph) == ("post_grad_custom_post_pass", "inference")
    assert part.application.frame == "0/0"
    assert part.first == part.application.number <= part.of
    assert "aten.sin" in part.before
    assert "aten.cos" not in part.before
    assert "aten.cos" in part.after
    changed = [line for line in text(view(found)).splitlines() if line.strip().startswith(("-   ", "+   "))]
    assert len(changed) == 2
    passes = [one for one in found.tried if "post_grad_passes 1 to" in one.what]
    told = {one.what.split("1 to ")[1].split()[0]: one.outcome for one in passes}
    assert told[str(part.application.number)] == "fails"
    assert told[str(part.application.number - 1)] == "passes"


@pytest.mark.slow
def test_a_pass_that_raises_is_found(tmp_path: Path) -> None:
    found = searched(tmp_path, MODEL + RAISING_PASS)
    assert "this graph is refused" in found.words
    assert found.part is not None
    assert found.part.application is not None
    assert (found.part.subsystem, found.part.application.what) == ("joint_graph_passes", "joint_custom_post_pass")
    assert "aten.sin" in found.part.before
    assert not found.others


@pytest.mark.slow
def test_a_kernel_that_kills_its_process_is_of_a_lowering(tmp_path: Path) -> None:
    found = searched(tmp_path, PLANT.format(mark=".sin()", code=NOWHERE) + MODEL)
    assert found.signature is not None
    assert (found.signature.kind, found.signature.type) == ("died", "SIGSEGV")
    assert found.part is not None
    assert found.part.subsystem == "lowerings"
    assert found.part.application is not None
    assert "sin" in found.part.application.what
    assert "aten.sin" in found.part.before


@pytest.mark.slow
def test_a_program_that_fails_by_itself_accuses_no_compiler(tmp_path: Path) -> None:
    found = searched(tmp_path, MODEL.replace("h = x @ w", "h = x @ w.repeat(2, 2)"))
    assert found.part is not None
    assert found.part.backend == PYTHON
    sentence = answer_sentence(found)
    assert sentence.startswith("the program itself is the cause: it fails without torch.compile too")


@pytest.mark.slow
def test_of_two_option_sets_the_option_that_matters(tmp_path: Path) -> None:
    bad = of_texts(["cpp.inject_relu_bug_TESTING_ONLY=accuracy", "max_fusion_size=32", "functorch.cse=false"])
    good = of_texts(["max_fusion_size=16"])
    question = Question(
        "options", program(tmp_path, MODEL), Target(backend="inductor"), sets=(bad, good), names=("bad", "good")
    )
    found = bisected(question)
    assert found.signature is not None
    assert found.signature.kind == "wrong"
    assert (
        answer_sentence(found) == "it fails with cpp.inject_relu_bug_TESTING_ONLY='accuracy' alone (of 3 differences)"
    )


def test_torchs_table_of_backends_is_as_the_search_takes_it() -> None:
    parts = {each.name: [one.name for one in each.subsystems] for each in bisector.parts()}
    assert next(iter(parts)) == "eager"
    assert list(parts)[-1] == "inductor"
    assert {"joint_graph_passes", "post_grad_passes", "lowerings"} <= set(parts["inductor"])
    settings = [one for each in bisector.parts() for one in each.subsystems if one.setting]
    assert {one.config for one in settings} <= {"inductor", "aot_eager_decomp_partition"}


def test_drawn_options_are_inductors_and_the_same_for_a_seed() -> None:
    first = drawn(3)
    assert first == drawn(3)
    assert first != drawn(4)
    assert len(first) > 20
    assert checked(first) == first
    assert not any("TESTING_ONLY" in name for name in first)


@pytest.mark.slow
def test_the_commit_since_which_a_program_computes_wrongly(tmp_path: Path) -> None:
    history = GitHistory(tmp_path / "repo")
    history.commit("it works", MODEL)
    history.commit("it cannot run", f"import no_such_module\n{MODEL}")
    history.commit("it works again", f"{MODEL}\n# again\n")
    history.commit("a pass", f"{MODEL}{WRONG_PASS}")
    history.commit("a comment", f"# of the pass\n{MODEL}{WRONG_PASS}")
    before = history.state()
    question = Question(
        "commits",
        Program("p.py", cwd=str(history.folder)),
        Target(backend="inductor"),
        good=history.names["it works"],
        bad="HEAD",
    )
    found = bisected(question)
    assert found.signature is not None
    assert found.signature.kind == "wrong"
    assert found.commit is not None
    assert [commit.subject for commit in found.commit.commits] == ["a pass"]
    assert history.state() == before
