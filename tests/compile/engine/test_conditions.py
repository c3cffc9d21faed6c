"""What a target says beside Inductor's options holds for models and scripts alike, and leaves torch as it was."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch._functorch.config
import torch.compiler.config

from idbg.engine.compat import caches, kernels, settings
from idbg.engine.program.option_types import checked_settings
from idbg.schema.programs import OptionValue
from idbg.schema.runs import Run

Runner = Callable[..., Run]

SIZES = """\
import torch
f = torch.compile(lambda x: x.sin() + 1)
for size in (3, 4, 5, 6):
    f(torch.ones(size))
"""
MODEL = """\
import torch
def program():
    return torch.nn.Linear(4, 4), (torch.ones(2, 4),)
"""


def frames(run: Run) -> list[str]:
    assert run.failure is None, run.failure
    return list(run.frames)


def test_settings_hold_for_the_run_and_no_longer(ran: Runner):
    before = torch._dynamo.config.automatic_dynamic_shapes, torch._dynamo.config.recompile_limit
    assert frames(ran(SIZES, backend="eager")) == ["0/0", "0/1"]
    assert frames(ran(SIZES, backend="eager", settings={"dynamo.automatic_dynamic_shapes": False})) == [
        "0/0",
        "0/1",
        "0/2",
        "0/3",
    ]
    limited = {"dynamo.automatic_dynamic_shapes": False, "dynamo.recompile_limit": 2}
    assert frames(ran(SIZES, backend="eager", settings=limited)) == ["0/0", "0/1"]
    assert (torch._dynamo.config.automatic_dynamic_shapes, torch._dynamo.config.recompile_limit) == before


def test_a_settings_value_wins_over_what_the_script_sets_before_it_compiles(ran: Runner):
    own = "import torch\ntorch._dynamo.config.automatic_dynamic_shapes = True\n"
    found = frames(ran(own + SIZES, backend="eager", settings={"dynamo.automatic_dynamic_shapes": False}))
    assert found == ["0/0", "0/1", "0/2", "0/3"]
    assert torch._dynamo.config.automatic_dynamic_shapes is True  # which is what the script made it


def test_what_a_script_sets_after_it_compiled_is_told(ran: Runner):
    run = ran(SIZES + "torch._dynamo.config.recompile_limit = 5\n", settings={"dynamo.recompile_limit": 3})
    (note,) = run.notes  # type: ignore[attr-defined]
    assert "dynamo.recompile_limit was 5 at the end" in note
    assert torch._dynamo.config.recompile_limit == 5


@pytest.mark.parametrize("backend", ["eager", "mock"])
def test_dynamic_sources_are_dynamic_from_the_start(ran: Runner, backend: str):
    assert frames(ran(SIZES, backend=backend, dynamic_sources=("L['x']",))) == ["0/0"]
    assert torch.compiler.config.dynamic_sources == ""


def test_a_stance_holds_for_the_run_and_no_longer(ran: Runner):
    run = ran(SIZES, backend="eager", stance="eager_then_compile")
    assert frames(run) == ["0/0"]  # the first call ran in eager, and told which size varies
    nothing = ran(MODEL, backend="eager", stance="force_eager")
    assert nothing.failure is not None
    assert "with the stance force_eager nothing was compiled" in nothing.failure.message
    refused = ran(SIZES, backend="eager", stance="fail_on_recompile")
    assert refused.failure is not None
    assert "fail_on_recompile" in refused.failure.message
    assert frames(ran(MODEL, backend="eager")) == ["0/0"]


def test_a_mode_is_the_options_that_it_stands_for(ran: Runner, monkeypatch: pytest.MonkeyPatch):
    given: list[dict[str, object]] = []

    def compile_fx(gm: torch.fx.GraphModule, inputs: object, inner: object, options: dict[str, object]) -> object:
        given.append(dict(options))
        return gm.forward

    monkeypatch.setattr("idbg.engine.compat.lowering.compile_fx", compile_fx)
    own = "import torch\ntorch.compile(lambda x: x + 1, mode='reduce-overhead')(torch.ones(3))\n"
    ran(own, backend="inductor")
    ran(own, backend="inductor", mode="max-autotune-no-cudagraphs", options={"max_autotune": False})
    ran(own, backend="inductor", mode="default")
    ran(MODEL, backend="inductor", mode="reduce-overhead")
    assert given == [
        {"triton.cudagraphs": True},
        {"max_autotune": False, "coordinate_descent_tuning": True},
        {},
        {"triton.cudagraphs": True},
    ]


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ({"mode": "max-autotun"}, "torch has no mode 'max-autotun'", "did you mean max-autotune?"),
        ({"stance": "eager"}, "torch has no stance 'eager'", "did you mean force_eager?"),
        ({"stance": "zzz"}, "torch has no stance 'zzz'", "it is one of default, "),
        ({"settings": {"dynamo.recompile_limits": 2}}, "torch has no setting", "did you mean dynamo.recompile_limit?"),
        ({"settings": {"recompile_limit": 2}}, "torch has no setting", "did you mean dynamo.recompile_limit?"),
        ({"settings": {"inductor.max_autotune": True}}, "torch has no setting", "--option max_autotune=VALUE"),
        ({"settings": {"max_autotune": True}}, "torch has no setting", "--option max_autotune=VALUE"),
        ({"settings": {"dynamo.recompile_limit": "x"}}, "cannot be 'x'", "it is a whole number"),
        ({"settings": {"dynamo.reorderable_logging_functions": "x"}}, "cannot be 'x'", "a set"),
        ({"settings": {"functorch.enable_autograd_cache": True}}, "idbg's own while it watches", "leave it out"),
        ({"dynamic_sources": ("",)}, "'' is no source", "--dynamic-source"),
    ],
)
def test_what_torch_does_not_have_is_one_sentence_before_anything_compiles(
    ran: Runner, target: dict[str, object], message: str, hint: str
):
    run = ran("raise SystemExit(3)", backend="inductor", **target)
    assert run.failure is not None
    assert run.failure.kind == "input"
    assert message in run.failure.message
    assert hint in run.failure.hint


def test_a_mode_does_nothing_to_a_backend_that_has_none_and_that_is_said(ran: Runner):
    run = ran(MODEL, backend="eager", mode="max-autotune")
    assert "eager has no modes: max-autotune does nothing" in run.notes  # type: ignore[attr-defined]


def test_every_plain_setting_takes_what_it_is_now():
    values = {name: settings.value_of(name) for name in settings.names() - settings.OURS}
    plain: dict[str, OptionValue] = {
        name: value for name, value in values.items() if isinstance(value, (bool, int, float, str))
    }
    assert len(plain) > 150
    assert checked_settings(plain) == plain


@pytest.fixture
def user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "users"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    return folder


def written(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_cold_run_finds_nothing_and_leaves_nothing(ran: Runner, user_cache: Path):
    warm = ran(MODEL, backend="inductor")
    assert frames(warm) == ["0/0"]
    before = written(user_cache)
    assert before
    again = ran(MODEL, backend="inductor", cold=True)
    assert [kernel.source for kernel in again.kernels] == [kernel.source for kernel in warm.kernels]
    assert caches._folder.last is not None
    built = Path(caches._folder.last.name)
    assert written(user_cache) == before
    assert list(built.glob("fxgraph/*/*/*"))  # it missed, and was compiled
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(user_cache)
    assert "TRITON_CACHE_DIR" not in os.environ
    wrapper = next(kernels.wrapper_modules(), None)
    assert wrapper is not None and str(wrapper.__file__).startswith(str(built))  # it can still be asked about
    ran(MODEL, backend="eager")
    assert not built.exists()
    assert next(kernels.wrapper_modules(), None) is None
    assert frames(ran(MODEL, backend="inductor")) == ["0/0"]


def test_freezing_folds_weights_although_dynamo_asks_for_it_before_the_options_are_given(ran: Runner):
    script = """\
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
with torch.no_grad():
    torch.compile(model)(torch.ones(2, 4))
"""
    plain, frozen = (ran(script, backend="aot", options=options) for options in ({}, {"freezing": True}))
    arguments = [
        sum(
            node.op == "placeholder"
            for graph in run.graphs.values()
            if graph.id.stage == "inference"
            for node in graph.nodes
        )
        for run in (plain, frozen)
    ]
    assert arguments == [3, 1]
    assert torch._inductor.config.freezing is False
