"""The command of a run asks for that run."""

import shlex

import pytest

from idbg.cli import parsing
from idbg.cli.commands.diff import reference_of
from idbg.config.arguments import settle
from idbg.config.command_line import split
from idbg.reports.commands import command
from idbg.schema.diff import Comparison
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run

TARGETS = [
    Target(),
    Target(backend="mock", device="cuda:1", strict=True, dynamic=True, accelerator="my npu.toml", cold=True),
    Target(
        backend="inductor",
        dynamic=False,
        options={"max_autotune": True, "a": None, "n": -3, "x": 1.5, "s": "1", "t": "True", "l": [1, "b"]},
        settings={"dynamo.recompile_limit": 2, "functorch.x": "it's"},
        mode="reduce-overhead",
        stance="force_eager",
        dynamic_sources=("L['x']", "L['y']:0"),
    ),
]


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "my model.py").write_text("def net(): ...\n")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.backend)
def test_a_run_is_asked_for_again(target: Target, tmp_path) -> None:
    program = Program("my model.py", name="net", argv=("--epochs", "a b"), cwd=str(tmp_path))
    asked, argv = split(shlex.split(command(Run(1, program, target, 0.0)))[1:])
    settled = settle(parsing.parsed(asked), argv, strict=False)
    assert settled.program == program
    assert settled.target == target


@pytest.mark.parametrize(
    "comparison", [Comparison(), Comparison("float64", True, True, 3, 1e-3, None, 5.0, 7.5, True, True, 4)]
)
def test_a_comparison_is_asked_for_again(comparison: Comparison) -> None:
    run = Run(1, Program("my model.py"), Target(backend="inductor"), 0.0, comparison)
    args = parsing.parsed(shlex.split(command(run))[1:])
    assert args.command.__name__.endswith("diff")
    held = reference_of(args)
    names = ("reference", "backward", "atol", "rtol", "k", "seconds")
    assert [getattr(held, name) for name in names] == [getattr(comparison, name) for name in names]
    searches = ("per_kernel", "runs", "sync", "nan", "steps")
    assert [getattr(args, name) for name in searches] == [getattr(comparison, name) for name in searches]
