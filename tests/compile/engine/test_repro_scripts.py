"""A script of every check exits as it should, and reads like one that somebody wrote."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from idbg.engine.repro.draft import (
    MARK,
    Breaks,
    Check,
    Dies,
    Differs,
    Draft,
    FailsCommand,
    Hangs,
    Heading,
    Input,
    Raises,
    Runs,
)
from idbg.engine.repro.script import render
from tests.harness import warm
from tests.harness.repro_bench import ANY_DTYPE, run

RUFF = (sys.executable, "-m", "ruff")  # also where the environment is not activated
formatted = pytest.mark.skipif(find_spec("ruff") is None, reason="formats with ruff, which comes with .[dev]")
HEADING = Heading("It fails: so", "idbg and torch", source="/tmp/subject.py:3")
ARGUMENTS = (Input("x", (4, 6), (6, 1), "cpu"), Input("y", (6, 4), (1, 6), "cpu"), Input("n", literal="2"))
LINES = (
    "# /tmp/subject.py:3: y = x.relu() @ y",
    "relu = torch.relu(x)",
    "mm = operator.matmul(relu, y)",
    "# /tmp/subject.py:4: return (y + n).sin().sum(1, keepdim = True)",
    "add = operator.add(mm, n)",
    f"sin = add.sin(){MARK}",
    "total = sin.sum(1, keepdim = True)",
)
WRONG = """\
def wrong_backend(gm, inputs):
    return lambda *args: tuple(CHANGED for out in gm(*args))
"""
FAILING = """\
def failing_backend(gm, inputs):
    RAISED
"""


def draft(check: Check, how: str = 'backend="eager"', definition: str = "", **more: object) -> Draft:
    made = Draft(
        check, ARGUMENTS, LINES, "(total,)", how, "the program's own", definitions=(definition,) * bool(definition)
    )
    return replace(made, **more)  # type: ignore[arg-type]


def written(folder: Path, made: Draft) -> Path:
    torch.manual_seed(0)
    save_file({"x": torch.randn(24), "y": torch.randn(24)}, folder / "tensors.safetensors")
    path = folder / "repro.py"
    path.write_text(render(made, HEADING))
    return path


def status(folder: Path, made: Draft, says: str = "") -> object:
    code, out = run(written(folder, made))
    assert says in out, out
    return code


def differing(changed: str, wrong: str = "values", **more: object) -> Draft:
    return draft(Differs(wrong, 1e-6), "backend=wrong_backend", WRONG.replace("CHANGED", changed), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "wrong", "exits", "says"),
    [
        ("out", "values", 0, "output'][0]: error"),
        ("out * 1.001", "values", 1, "REPRODUCED values"),
        ("out / 0", "nan", 1, "REPRODUCED nan"),
        ("out / 0", "values", 2, "OTHER nan"),
        ("out.double()", "form", 1, "REPRODUCED form"),
        ("out[:1]", "values", 2, "OTHER form"),
        ("out.nothing()", "values", 2, "OTHER AttributeError: 'Tensor' object has no attribute 'nothing'"),
    ],
)
def test_a_wrong_result_is_told_by_its_kind(tmp_path: Path, changed: str, wrong: str, exits: int, says: str) -> None:
    assert status(tmp_path, differing(changed, wrong), says) == exits


@pytest.mark.parametrize(
    ("changed", "wrong", "exits", "says"),
    [
        ("out", "lost", 0, "It is right"),
        ("out.nan_to_num(0, 0, 0)", "lost", 1, "REPRODUCED lost"),
        ("-out", "lost", 1, "REPRODUCED lost"),
        ("out.masked_fill(out < 1, torch.nan)", "nan", 1, "REPRODUCED nan"),
    ],
)
def test_a_nan_that_only_eager_has_is_a_wrong_result(
    tmp_path: Path, changed: str, wrong: str, exits: int, says: str
) -> None:
    odd = ("low = torch.tensor([0.0, 1.0, -1.0, 0.5]) / torch.tensor([0.0, 0.0, 0.0, 1.0]) + x[0, 0] * 0",)
    assert status(tmp_path, differing(changed, wrong, statements=odd, result="(low,)"), says) == exits


def test_a_result_of_16_bits_is_judged_by_float64(tmp_path: Path) -> None:
    rounded = ("half = operator.add(x, n).to(torch.float16)", "low = half.sin()")
    alike = differing("out", statements=rounded, result="low")
    assert status(tmp_path, alike, "eager 0.000") == 0
    assert status(tmp_path, differing("out * 1.01", statements=rounded, result="low"), "REPRODUCED values") == 1


def test_a_wrong_gradient_and_a_wrong_argument_are_wrong_results(tmp_path: Path) -> None:
    trained = (replace(ARGUMENTS[0], requires_grad=True), *ARGUMENTS[1:])
    good = differing("out", arguments=trained)
    assert status(tmp_path, good) == 0
    detached = differing("out * 2 - out.detach()", arguments=trained)
    assert status(tmp_path, detached, "['gradient'][0]: error 1") == 1
    in_place = differing("out", statements=("y.add_(1) if torch.compiler.is_compiling() else y",), result="(x,)")
    assert status(tmp_path, in_place, "['argument'][1]: error") == 1


def test_what_is_another_program_in_float64_is_held_against_eager(tmp_path: Path) -> None:
    random = ("drawn = torch.rand(4, 6)", "out = torch.add(x, drawn)")
    assert "it is another program" in render(differing("out", statements=random, result="out"), HEADING)
    assert status(tmp_path, differing("out", statements=random, result="out")) == 0
    assert status(tmp_path, differing("out * 1.001", statements=random, result="out"), "limit 1.3e-06") == 1
    bits = ("low = x.view(torch.int16)", "out = low.sum()")
    assert status(tmp_path, differing("out + 1", statements=bits, result="out"), "limit 0") == 1


def raising(raised: str, check: Check) -> Draft:
    return draft(check, "backend=failing_backend", FAILING.replace("RAISED", raised))


@pytest.mark.parametrize(
    ("raised", "check", "exits"),
    [
        ("raise KeyError('what it says')", Raises("KeyError", "what it says"), 1),
        ("raise KeyError('another')", Raises("KeyError", "what it says"), 2),
        ("return gm", Raises("KeyError", "what it says"), 0),
        ("assert not gm", Raises("AssertionError", "", function="failing_backend"), 1),
        ("assert not gm", Raises("AssertionError", "", function="another"), 2),
    ],
)
def test_an_exception_is_told_by_its_message_or_where_it_is_raised(
    tmp_path: Path, raised: str, check: Check, exits: int
) -> None:
    says = {0: "", 1: "REPRODUCED", 2: "OTHER "}
    assert status(tmp_path, raising(raised, check), says[exits]) == exits


def test_an_exception_of_the_backward_is_one_of_the_program(tmp_path: Path) -> None:
    source = """\
class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in the backward")
"""
    trained = (replace(ARGUMENTS[0], requires_grad=True),)
    made = draft(Raises("ValueError", "in the backward"), definition=source)
    made = replace(made, arguments=trained, statements=("out = Broken.apply(x)",), result="out")
    assert status(tmp_path, made, "REPRODUCED ValueError in the backward") == 1


@pytest.mark.parametrize(("subject", "exits"), [("node", 1), ("input", 1), ("graph", 1)])
def test_a_broken_rule_stands_in_the_script(tmp_path: Path, subject: str, exits: int) -> None:
    made = draft(Breaks("dtype", subject), rules='name = "\\\\ \\"\\"\\""\n' + ANY_DTYPE)  # type: ignore[arg-type]
    assert status(tmp_path, made, "REPRODUCED") == exits
    mended = replace(made, rules=ANY_DTYPE.replace("float8_e5m2", "float32"))
    assert status(tmp_path, mended) == 0


def test_a_script_of_nothing_wrong_says_how_far_both_are_apart(tmp_path: Path) -> None:
    assert status(tmp_path, draft(Runs()), "['output'][0]: compiled is 0 of its size away from eager") == 0
    assert status(tmp_path, raising("raise KeyError('no')", Runs()), "OTHER KeyError") == 2


@pytest.mark.parametrize(
    ("does", "check", "exits", "says"),
    [
        ("os.kill(os.getpid(), 11)", Dies("SIGSEGV"), 1, "REPRODUCED SIGSEGV"),
        ("os.kill(os.getpid(), 6)", Dies("SIGSEGV"), 2, "OTHER SIGABRT"),
        ("import time; time.sleep(60)", Dies("SIGSEGV", 2.0), 2, "OTHER hang"),
        ("import time; time.sleep(60)", Hangs(2.0), 1, "REPRODUCED hang"),
        ("raise KeyError('no')", Hangs(60.0), 2, "OTHER KeyError"),
        ("return gm", Dies("SIGSEGV"), 0, ""),
    ],
)
def test_a_death_and_a_hang_happen_in_a_process_of_their_own(
    tmp_path: Path, does: str, check: Check, exits: int, says: str
) -> None:
    path = written(tmp_path, replace(raising(does, check), imports=frozenset({"os"})))
    environ = {**os.environ, warm.CHILDREN: "1"}
    command = [sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environ)
    assert (done.returncode, says in done.stdout) == (exits, True), done.stdout + done.stderr


@pytest.mark.parametrize(("asked", "exits"), [("total.sum() > 1e9", 3), ("total.isnan().any()", 3), ("True", 0)])
def test_a_command_imports_the_program_and_its_inputs(tmp_path: Path, asked: str, exits: int) -> None:
    check = tmp_path / "check.py"
    check.write_text(
        "import runpy, sys\nscript = runpy.run_path(sys.argv[-1])\n"
        f"(total,) = script['program'](*script['inputs']())\nsys.exit(0 if {asked} else 3)\n"
    )
    made = draft(FailsCommand((sys.executable, str(check)), 3))
    code, _ = run(written(tmp_path, made))
    assert code == (1 if exits else 0)
    assert run(written(tmp_path, replace(made, check=FailsCommand((sys.executable, str(check)), 4))))[0] == (
        2 if exits else 0
    )


def test_a_command_that_runs_the_script_does_not_begin_again(tmp_path: Path) -> None:
    path = written(tmp_path, replace(raising("raise KeyError('no')", FailsCommand((sys.executable,), 1))))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=120)
    assert "exit status" in done.stdout
    assert done.stderr.count("KeyError: 'no'") == 1


CHECKS: dict[str, Draft] = {
    "raises": draft(Raises("KeyError", "what it says")),
    "in": draft(Raises("KeyError", "", function="f")),
    "node": draft(Breaks("dtype"), rules=ANY_DTYPE),
    "input": draft(Breaks("dtype", "input"), rules=ANY_DTYPE),
    "differs": draft(Differs("values", 1e-6)),
    "lost": draft(Differs("lost")),
    "gradient": draft(Differs(), arguments=(replace(ARGUMENTS[0], requires_grad=True), *ARGUMENTS[1:])),
    "dies": draft(Dies("SIGSEGV")),
    "hangs": draft(Hangs(30.0)),
    "command": draft(FailsCommand(("python", "check.py"), 1)),
    "runs": draft(Runs()),
    "modes": draft(Differs(), modes=('torch.autocast("cpu", dtype=torch.bfloat16)', "torch.no_grad()")),
    "arrays": draft(Differs(), arguments=(replace(ARGUMENTS[0], is_array=True), *ARGUMENTS[1:])),
}


@formatted
@pytest.mark.parametrize("name", CHECKS)
def test_it_is_formatted_imports_what_it_uses_and_is_short(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, CHECKS[name])
    for asked in (["format", "--diff", "--line-length", "120"], ["check", "--isolated", "--select", "F"]):
        done = subprocess.run([*RUFF, *asked, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(path.read_text().splitlines()) < {"modes": 90, "lost": 86}.get(name, 80)


LONG = "l_self_modules_layer1_modules_0_modules_conv1_parameters_weight_"


@formatted
def test_long_lines_are_laid_out_as_a_formatter_does(tmp_path: Path) -> None:
    names = [f"{LONG}{number}" for number in range(4)]
    given = tuple(Input(name, (4, 6), (1, 4), "cpu", requires_grad=True, dtype="torch.float32") for name in names)
    lines = (
        f"out = torch.cat(({', '.join(names)}), dim = 1)",
        f"both = torch.addmm({', '.join(names)}){MARK}",
        f"few = torch.add({names[0]}, {names[1]})",
        f"def branch({', '.join(names)}):",
        f"    inner = torch.add({names[0]}, {names[1]}, alpha = 2, out = None)",
        "    def below(x):",
        "        return x ** 2",
        "    return below(inner)",
        "item = out[(slice(None, None, None), 'a', \"it's\")]",
        f"made = torch.full([{', '.join(['2'] * 60)}], 1e-05, device=device(type='cpu'), pin_memory=False)",
    )
    made = Draft(Breaks("dtype"), given, lines, f"({', '.join(names)})", "backend='mock'", rules=ANY_DTYPE)
    path = tmp_path / "repro.py"
    path.write_text(render(made, HEADING))
    command = [*RUFF, "format", "--diff", "--line-length", "120", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
