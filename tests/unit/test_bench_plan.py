"""What a command line asks for comes to rows: each program on each backend, eager first."""

from pathlib import Path

import pytest

from idbg.bench import plan
from idbg.schema.bench import BenchBackend, BenchCase
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program


def test_eager_comes_first_and_nothing_twice() -> None:
    found = plan.backends(["inductor", "mock", "eager", "inductor", "inductor:max-autotune", "inductor:default"])
    assert [str(backend) for backend in found] == ["eager", "inductor", "mock", "inductor:max-autotune"]
    assert plan.backends([]) == [BenchBackend("eager"), BenchBackend("inductor")]


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadInput, match=r"torch.compile has no mode 'fast'"):
        plan.backends(["inductor:fast"])


def test_the_folder_is_the_list_of_models(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text("def program():\n    pass\n")
    (tmp_path / "a.py").write_text("def program(batch=1):\n    pass\n")
    (tmp_path / "script.py").write_text("import torch\n")
    (tmp_path / "broken.py").write_text("def program(:\n")
    assert list(plan.models(tmp_path)) == ["a", "b"]

    def programs(*wanted: str, everything: bool = False) -> list[str]:
        found = plan.programs([], wanted, tmp_path, everything=everything, argv=(), cwd=str(tmp_path))
        return [program.path for program in found]

    assert programs(everything=True) == ["a.py", "b.py"] and programs("b") == ["b.py"]
    with pytest.raises(BadInput, match="there is no model 'c'") as caught:
        programs("c")
    assert "a, b" in caught.value.hint


def test_the_examples_of_the_issue_are_models() -> None:
    assert {"bert", "resnet", "state_space", "gpt2", "vit", "mlp_train", "attention"} <= plan.models(None).keys()


def test_rows_go_program_by_program_with_the_same_settings() -> None:
    one, two = Program("a.py"), Program("b.py")
    like = BenchCase(program=one, backend=BenchBackend(""), runs=7, dtype="bfloat16")
    found = plan.cases([one, two], plan.backends([]), like)
    assert [(each.program.path, str(each.backend)) for each in found] == [
        ("a.py", "eager"),
        ("a.py", "inductor"),
        ("b.py", "eager"),
        ("b.py", "inductor"),
    ]
    assert all((each.runs, each.dtype) == (7, "bfloat16") for each in found)
