"""`idbg diff`: which outputs and gradients agree with the reference, with an exit status that says so."""

import json
from pathlib import Path

import pytest

from idbg import cli
from idbg.schema import events
from idbg.session.reading import load

pytestmark = pytest.mark.usefixtures("warm")

GOOD = """
import torch
def program():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh())
    return model, (torch.randn(3, 8),), lambda out: out.square().sum()
"""
WRONG = """
import torch
from tests.harness.traced import is_traced
def program():
    def model(x):
        return (x * 2, x + 1 if is_traced() else x + 1.001)
    return model, (torch.randn(40, 64),)
"""
SCRIPT = """
import torch
def double(x):
    return x * 2
class Half(torch.nn.Module):
    def forward(self, x):
        return {"half": x / 2}
compiled, half, own, forward = torch.compile(double), torch.compile(Half()), Half(), torch.compile(Half().forward)
own.compile()
for _ in range(2):
    print(compiled(torch.ones(4)).sum().item(), half(x=torch.ones(4))["half"].sum().item())
    own(torch.ones(4)), forward(torch.ones(4))
"""
NO_TENSOR = """
import torch
def program():
    return lambda x: None, (torch.ones(2),)
"""
NO_CPP = """
import torch
from torch._inductor.async_compile import AsyncCompile
compile_cpp = AsyncCompile.cpp_pybinding
def edited(self, types, source, **options):
    return compile_cpp(self, types, source.replace("float", "flot"), **options)
AsyncCompile.cpp_pybinding = edited
def program():
    return lambda x: (x * 1.7771).sin(), (torch.randn(64),)
"""
LINES = """
import torch
def model(x):
    y = x + 1
    return y.sin() * 3
def program():
    return model, (torch.ones(4, 4) / 3,)
"""
BROKEN = """
import torch
def program():
    return lambda x: x @ x, (torch.ones(2, 3),)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def diff(folder: Path, text: str, *options: str) -> int:
    (folder / "model.py").write_text(text)
    return cli.main(["diff", "model.py", "--backend", "aot_eager", *options])


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    assert isinstance(found, dict)
    return found


def test_outputs_the_loss_and_gradients_agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(folder, GOOD, "--json") == 0
    found = report(capsys)
    assert (found["verdict"], found["test"], found["reference"]) == ("passed", "aot_eager", "eager")
    assert [one["name"] for one in found["outputs"]] == ["out", "loss"]  # type: ignore[attr-defined]
    names = [one["name"] for one in found["gradients"]]  # type: ignore[attr-defined]
    assert names == ["grad(0.weight)", "grad(0.bias)"]
    assert [one["name"] for one in found["sides"]] == ["eager", "aot_eager", "float64"]  # type: ignore[attr-defined]


def test_a_wrong_output_fails_by_name_and_the_other_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(folder, WRONG) == 1
    said = capsys.readouterr().out
    assert said.startswith("✘ 1 tensor failed   aot_eager against eager   held against float64")
    assert "✔ out[0]" in said
    assert "✘ out[1]  f32[40,64]" in said


@pytest.mark.slow
def test_a_tolerance_is_the_users_to_choose(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(folder, WRONG, "--atol", "0.01") == 0
    assert "by tolerance" in capsys.readouterr().out


@pytest.mark.slow
def test_each_function_of_a_script_is_compared_at_its_first_call(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(folder, SCRIPT, "--json") == 0
    captured = capsys.readouterr()
    outputs = json.loads(captured.out)["outputs"]
    assert [one["name"] for one in outputs] == [
        "double: out",
        *(f'{name}: out["half"]' for name in ("Half", "Half 2", "Half 3")),
    ]
    assert captured.err.count("8.0 2.0") == 2, "the script itself runs on, and prints what it prints"
    (session,) = (folder / "debug_artifacts").iterdir()
    *before, last = [event.report.verdict for event in load(session) if isinstance(event, events.Compared)]
    assert set(before) == {"waiting"} and last == "passed", "what the script compiles later is not known before its end"


@pytest.mark.slow
def test_a_later_session_is_compared_with_what_an_earlier_one_gave(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(folder, GOOD) == 0
    (session,) = (folder / "debug_artifacts").iterdir()
    assert diff(folder, GOOD, "--against", str(session)) == 0
    assert f"against session {session.name}" in capsys.readouterr().out
    assert diff(folder, GOOD.replace("Tanh", "Sigmoid"), "--against", str(session), "--atol", "0.001") == 1
    assert "by tolerance" in capsys.readouterr().out
    assert diff(folder, GOOD.replace("seed(0)", "seed(1)"), "--against", str(session)) == 1
    assert "its inputs and weights were not the ones that this run has" in capsys.readouterr().out


@pytest.mark.slow
def test_a_side_that_fails_is_told_with_the_other_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(folder, BROKEN, "--json") == 1
    found = report(capsys)
    assert found["verdict"] == "error"
    failures = {one["name"]: one["failure"] for one in found["sides"]}  # type: ignore[attr-defined]
    assert "mat1 and mat2" in failures["eager"]["message"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--runs", "0"), "--runs is 0"),
        (("--atol", "-1"), "--atol is -1"),
        (("--rtol", "nan"), "--rtol is nan"),
        (("--timeout", "0"), "--timeout is 0"),
        (("--factor", "0.5"), "--factor is 0.5"),
        (("--against", "."), "the session . has no outputs"),
    ],
)
def test_a_number_or_a_session_that_means_nothing_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, str], said: str
) -> None:
    assert diff(folder, GOOD, *options) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_backend_that_there_is_not_is_bad_usage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.py").write_text(GOOD)
    assert cli.main(["diff", "model.py", "--backend", "bogus"]) == 2
    assert "there is no backend 'bogus'" in capsys.readouterr().out


def test_help_says_what_this_command_does_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["diff", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert words.count("--backend BACKEND") == 1 and "torch's by name (the side that is tested; inductor)" in words
    assert "by name (aot)" not in words


@pytest.mark.parametrize("backend", ["inductor", "mock"])
def test_numerics_that_are_not_applied_are_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str], backend: str
) -> None:
    (folder / "chip.toml").write_text('name = "chip"\n[numerics]\ncompute = "bf16"\n')
    # a file stands where sessions would be kept: nothing is run after the warning
    assert diff(folder, GOOD, "--backend", backend, "--accelerator", "chip.toml", "--output", "model.py") == 2
    said = "the [numerics] of chip.toml are not applied by the backend inductor: they work with --backend mock only"
    assert (said in capsys.readouterr().err) == (backend == "inductor")


@pytest.mark.slow
def test_a_program_that_gives_nothing_to_compare_is_told_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    diff(folder, NO_TENSOR)
    assert capsys.readouterr().out.startswith("⚠ nothing was compared   aot_eager against eager\n")


@pytest.mark.slow
def test_a_compilers_thousand_lines_are_told_in_a_few_and_kept_in_the_session(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(folder, NO_CPP, "--backend", "inductor", "--per-kernel") == 1
    said = capsys.readouterr().out
    assert "error: ‘flot’ does not name a type" in said and len(said) < 2500
    (session,) = (folder / "debug_artifacts").iterdir()
    assert len((session / "events.jsonl").read_text()) > 10_000


@pytest.mark.slow
def test_where_no_kernel_can_be_observed_the_first_bad_node_is_named_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "chip.toml").write_text('name = "chip"\n[numerics]\ncompute = "bf16"\n')
    assert diff(folder, LINES, "--backend", "mock", "--accelerator", "chip.toml", "--per-kernel") == 1
    said = capsys.readouterr().out
    assert "✘ the first bad node (bisected): y (model.py:4)" in said
    assert "kernel launch" not in said and "first bad kernel" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SCRIPT + "import sys; sys.exit(3)\n", "it did not come to its end: the program ended itself with sys.exit(3)"),
        ("import torch\ndef program():\n    return lambda x: None, (torch.ones(3),)\n", "nothing was compared"),
    ],
    ids=["a script that exits after it", "nothing compared"],
)
def test_only_what_was_compared_to_its_end_exits_with_0(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert diff(folder, text) == 1
    out = capsys.readouterr().out
    assert said in out
    assert "double: out" in out or "nothing" in out


@pytest.mark.slow
def test_eager_held_against_eager_is_no_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\n@torch.compiler.disable\ndef hidden(x):\n    return x + 1\n"
    text += "def program():\n    return lambda x: hidden(x), (torch.ones(3),)\n"
    assert diff(folder, text, "--backend", "inductor") == 1
    assert capsys.readouterr().out.startswith("⚠ nothing was compiled   inductor against eager\n")


@pytest.mark.slow
def test_a_module_of_a_package_in_the_current_folder_is_compared(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "half.py").write_text("def half(x):\n    return x / 2\n")
    (folder / "package" / "train.py").write_text(
        "import torch\nfrom .half import half\nprint(torch.compile(half)(torch.ones(4)).sum().item())\n"
    )
    assert cli.main(["diff", "-m", "package.train", "--json"]) == 0
    assert report(capsys)["verdict"] == "passed"
