"""Programs that have broken us, or could: each compiles as it would without us, and nothing of it is lost."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from idbg.accelerators import registry
from idbg.engine.capture.run import current
from idbg.engine.program import load
from idbg.schema import events
from idbg.schema.graphs import GraphId
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run, fold
from idbg.session.session import Session
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, WriteRepro


def run(
    folder: Path, text: str, jobs: Jobs | None = None, told: list[events.SessionEvent] | None = None, **target: Any
) -> Run:
    told = [] if told is None else told
    jobs = jobs or Jobs(told.append)
    jobs.emit = told.append
    path = folder / "subject.py"
    path.write_text(text)
    rules = str(target.pop("rules", "")) or registry.find("mock")[0]
    program, chosen = Program(str(path), cwd=str(folder)), Target(**{"backend": "mock", "rules": rules, **target})
    told.append(events.RunStarted(run=1, program=program, target=chosen))
    told.append(jobs.compile(Compile(1, program, chosen, str(folder / "repros"))))
    assert current() is None
    return fold(told).runs[1]


def test_a_reset_of_dynamo_in_the_program_loses_no_frame(tmp_path: Path):
    found = run(
        tmp_path,
        "import torch\nf = torch.compile(lambda x: x.sin())\ng = torch.compile(lambda x: x.cos())\n"
        "f(torch.ones(3))\ntorch._dynamo.reset()\ng(torch.ones(3))\n",
    )
    assert list(found.frames) == ["0/0", "0/0#2"]
    assert {graph.frame for graph in found.graphs} == {"0/0", "0/0#2"}
    assert len([link for link in found.links if link.below.frame == "0/0#2"]) == 1


def test_a_frame_that_torch_traces_anew_counts_once(tmp_path: Path):
    """A float that is a symbol at first, and that no op can take as a tensor: AOT makes Dynamo start again."""
    text = (
        "import torch\ndef f(x, eps):\n"
        "    return torch.nn.functional.batch_norm(x.double(), None, None, training=True, eps=eps).sin()\n"
        "def program():\n    return f, (torch.randn(4, 6, requires_grad=True), 0.25), lambda out: out.sum()\n"
    )
    told: list[events.SessionEvent] = []
    found = run(tmp_path, text, told=told, dynamic=True, strict=False)
    assert sum(isinstance(event, events.FrameStarted) for event in told) == 2, "torch traced it once: another trigger"
    assert len(found.violations) == len(set(found.violations)) > 0
    joint = found.graphs[GraphId("0/0", "joint")]
    assert any(node.storages for node in joint.nodes), "read before the graphs that know its memory were there"
    assert {links.below.stage for links in found.links if links.above.stage == "dynamo"} >= {"joint", "forward"}


def test_a_compile_in_another_thread_is_captured_and_checked(tmp_path: Path):
    found = run(
        tmp_path,
        "import threading, torch\nf = torch.compile(lambda x: x.double() + 1)\n"
        "t = threading.Thread(target=lambda: f(torch.ones(3)))\nt.start(); t.join()\n",
        strict=False,
    )
    assert found.verdict == "violations"
    assert {violation.rule for violation in found.violations} == {"dtype"}


def test_what_torch_cond_holds_is_captured_and_checked(tmp_path: Path):
    text = (
        "import torch\ndef f(x):\n"
        "    return torch.cond(x.sum() > 0, lambda a: a.double().float(), lambda a: a.cos(), (x,))\n"
        "def program():\n    return f, torch.ones(3)\n"
    )
    found = run(tmp_path, text)
    assert any(violation.rule == "dtype" and "." in violation.node.name for violation in found.violations)


def test_a_nested_tensor_compiles_as_it_does_without_us(tmp_path: Path):
    text = (
        "import torch\ndef program():\n"
        "    x = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged)\n"
        "    return (lambda t: t.sin() + 1), x\n"
    )
    found = run(tmp_path, text)
    assert found.failure is None, found.failure
    assert found.graphs


def test_fullgraph_of_a_compiled_model_still_holds(tmp_path: Path):
    text = (
        "import torch\ndef f(x):\n    print('hi')\n    return x + 1\n"
        "def program():\n    return torch.compile(f, fullgraph=True), torch.ones(3)\n"
    )
    assert run(tmp_path, text).verdict == "failed"


def test_a_script_sees_its_own_file_and_arguments(tmp_path: Path):
    text = (
        "import os, sys, torch\nassert os.path.isabs(__file__) and os.listdir(os.path.dirname(__file__))\n"
        "torch.compile(lambda x: x + 1)(torch.ones(2))\n"
    )
    assert run(tmp_path, text).failure is None


def test_gradients_of_inputs_do_not_add_up_over_runs(tmp_path: Path):
    text = (
        "import torch\nx = torch.ones(3, requires_grad=True)\n"
        "def program():\n    return (lambda x: x * 2), (x,), lambda out: out.sum()\n"
    )
    jobs = Jobs(lambda event: None)
    for _ in range(2):
        assert run(tmp_path, text, jobs).failure is None
    (leaf,) = jobs.programs._workload.args
    assert leaf.grad is None


@pytest.mark.parametrize(
    ("text", "rule", "stage", "target"),
    [
        ("lambda x: x.topk(3)[0] * 1", "alignment", "dynamo", "getitem"),
        ("lambda x: x.reshape(x.shape[0] * 2, -1) + 1", "alignment", "inference", "view"),
        ("lambda x: x.sum() * 2", "dtype", "inference", "mul"),
    ],
)
def test_a_repro_takes_tuples_symbolic_sizes_and_scalars(tmp_path: Path, text: str, rule: str, stage: str, target: str):
    rules = '[[rules]]\nkind = "alignment"\nmultiple = 7\n[[rules]]\nkind = "dtype"\nallowed = ["int8", "int64"]\n'
    jobs = Jobs(lambda event: None)
    program = f"import torch\ndef program():\n    return ({text}), torch.randn(6, 4)\n"
    found = run(tmp_path, program, jobs, rules=rules, dynamic=True)
    assert found.failure is None, found.failure
    violation = next(
        violation
        for violation in found.violations
        if violation.rule == rule
        and violation.node.graph.stage == stage
        and target in found.graphs[violation.node.graph].by_name[violation.node.name].target
    )
    ended = jobs.do(WriteRepro(1, str(tmp_path / "repros"), violation.node, rule))
    assert isinstance(ended, events.ReproEnded)
    assert ended.failure is None, ended.failure
    assert ended.reproduced, ended.output


def test_bad_targets_are_refused_in_a_sentence(tmp_path: Path):
    text = "import torch\ndef program():\n    return torch.nn.Linear(2, 2), torch.ones(1, 2)\n"
    for target, says in (
        ({"device": "banana"}, "no device 'banana'"),
        ({"options": {"max_autotun": True}}, "no option 'max_autotun'"),
        ({"backend": "nosuch"}, "no backend 'nosuch'"),
    ):
        found = run(tmp_path, text, **target)
        assert found.failure.type == "BadInput"
        assert says in found.failure.message


@pytest.mark.slow
def test_a_second_script_meets_nothing_of_the_first(tmp_path: Path):
    leak = "import torch, os\ntorch._dynamo.config.cache_size_limit = 3\nos.environ['LEAK'] = '1'\n"
    check = "import torch, os\nassert 'LEAK' not in os.environ and torch._dynamo.config.cache_size_limit != 3\n"
    use = "torch.compile(lambda x: x + 1)(torch.ones(2))\n"
    path = tmp_path / "subject.py"
    path.write_text(leak + use)
    program = Program(str(path), cwd=str(tmp_path))
    with Session(program, Target(backend="eager"), output=tmp_path / "out") as session:
        session.run()
        assert session.wait(120)
        path.write_text(check + use)
        session.run()
        assert session.wait(120)
        runs = session.history.runs
    assert [runs[number].failure for number in (1, 2)] == [None, None]


@pytest.mark.slow
def test_a_cache_that_plain_torch_filled_does_not_hide_kernels_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    text = "import torch\ntorch.compile(lambda x: x.sin() + x.cos())(torch.ones(8))\n"
    (tmp_path / "plain.py").write_text(text)
    subprocess.run([sys.executable, str(tmp_path / "plain.py")], check=True, capture_output=True)
    found = run(tmp_path, text, backend="aot")
    assert found.failure is None
    assert all(kernel.nodes for kernel in found.kernels)
    assert found.kernels


@pytest.mark.parametrize("where", ["", "    return torch.compile(inner)(x)\n"], ids=["eager", "compiled"])
@pytest.mark.parametrize("base", ["Exception", "RuntimeError"])
@pytest.mark.parametrize("raised", ["RuntimeError", "SystemExit"])
def test_an_exception_that_cannot_say_itself_is_the_program_s_own_failure(
    tmp_path: Path, where: str, base: str, raised: str
):
    text = (
        f"import torch\nclass Mute({base}):\n    def __str__(self):\n        raise {raised}('no words')\n"
        "    __repr__ = __str__\n    def __eq__(self, other):\n        raise RuntimeError('no equality')\n"
        "def inner(x):\n    raise Mute()\n"
        f"def f(x):\n{where}    raise Mute()\ndef program():\n    return f, torch.ones(3)\n"
    )
    found = run(tmp_path, text)
    assert found.verdict == "failed" and found.failure is not None
    assert found.failure.kind == "user" and f"whose own __str__ raised {raised}" in found.failure.message


def test_a_program_that_exits_with_what_has_no_words_is_told(tmp_path: Path):
    text = "import sys\nclass Code:\n    def __repr__(self):\n        raise ValueError\nsys.exit(Code())\n"
    found = run(tmp_path, text)
    assert found.failure is not None and "sys.exit(a Code)" in found.failure.message


def test_a_program_that_is_edited_twice_in_a_second_is_imported_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    for rows in (4, 6):  # as long as before, and of the same time: Python's bytecode would be up to date
        path.write_text(f"ROWS = {rows}\n")
        os.utime(path, (1.8e9, 1.8e9))
        assert vars(load.imported(Program(str(path))))["ROWS"] == rows
    assert os.listdir(tmp_path) == ["edited.py"]
