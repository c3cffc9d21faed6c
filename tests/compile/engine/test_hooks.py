"""The table of hooks: each function exists in this torch, and a compile survives each one missing or failing."""

import secrets
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from types import ModuleType
from typing import Any

import pytest
import torch
import torch._inductor.compile_fx
import torch._inductor.config

from idbg.engine.capture.run import RunCapture, capturing
from idbg.engine.compat import (
    backend_calls,
    bisector,
    caches,
    comparing,
    dynamo,
    hooks,
    inspecting,
    kernels,
    lowering,
    names,
    stages,
    tracing,
)
from idbg.engine.compat.hook_table import FEATURES, HOOKS, TESTED, Hook
from idbg.engine.compat.names import notes_to
from idbg.engine.decisions import record_all
from idbg.schema import events

VERSION = ".".join(torch.__version__.split(".")[:2])
HERE = [hook for hook in HOOKS if VERSION in hook.versions or VERSION not in TESTED]
NUMBERS = count(3600 + secrets.randbelow(10**9))  # of this process alone: others have the same cache


def test_each_function_of_the_table_is_in_the_versions_that_it_names() -> None:
    assert {feature for hook in HOOKS for feature in hook.features} <= set(FEATURES)
    assert all(set(hook.versions) <= set(TESTED) for hook in HOOKS)
    for hook in HOOKS:
        if VERSION in TESTED and VERSION not in hook.versions:
            with pytest.raises(AttributeError):
                hooks.owner_of(hook)
        else:
            hooks.owner_of(hook)


class Stages:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def program(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
    z = (x @ x + y).relu().sum(0) * n
    torch._dynamo.graph_break()
    return z


def compiled() -> list[str]:
    """Compile and run the program with all features on; the notes of the run."""
    notes: list[str] = []
    capture = RunCapture(1, lambda event: notes.append(event.text) if isinstance(event, events.Noted) else None, None)
    x, y = torch.ones(4, 4), torch.ones(4)
    torch._dynamo.reset()
    with ExitStack() as stack:
        contexts = (
            capturing(capture),
            record_all(capture),
            tracing.observed(),
            comparing.observe_graphs(lambda graph: None, notes.append),
            kernels.observe_loads(lambda module: None),
            stages.observe_stages(Stages()),
            caches.graph_cache_bypassed(lambda: ""),
            backend_calls.replace_backend_calls(lambda backend, gm, inputs: backend(gm, inputs)),
            backend_calls.replace_inner_compile(dynamo.lookup_backend("inductor"), lambda inner: inner),
            inspecting._Visited(inspecting.Private()).watched(),
            bisector._Watch(bisector.Applications(), 1).passes(),
            # another key of the FX graph cache, and the same C++
            torch._inductor.config.patch(precompilation_timeout_seconds=next(NUMBERS)),
        )
        for context in contexts:
            stack.enter_context(context)
        for n in (2, 3):  # a recompile
            result = torch.compile(program, backend="inductor", dynamic=False)(x, y, n)
            assert result.tolist() == program(x, y, n).tolist()
        with lowering.observe_aot_parts(lambda *_: lambda arguments, call: call()):
            result = torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(x)
            assert torch.equal(result, x.sin() + 1)
    return notes


@pytest.fixture(scope="module")
def used() -> set[str]:
    """The features that the program turns on, where nothing is wrong."""
    features: set[str] = set()
    called: set[str] = set()
    guarded = hooks._guarded

    def spy(feature: hooks.Feature, hook: Hook, original: Any, wrapper: Any) -> Any:
        features.add(feature.name)

        def note(*args: Any, **kwargs: Any) -> Any:
            called.add(hook.name)
            return wrapper(*args, **kwargs)

        return guarded(feature, hook, original, note)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "_guarded", spy)
        assert compiled() == []
    assert len(called) > 25, called
    return features


@pytest.mark.parametrize("feature", sorted({feature for hook in HERE for feature in hook.features}))
def test_a_missing_function_turns_its_features_off_with_one_note_each(
    feature: str, used: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for hook in [hook for hook in HERE if feature in hook.features]:  # the last one is missing as the program compiles
        gone = replace(hook, path=f"{hook.path}_renamed")
        monkeypatch.setattr(hooks, "HOOKS", tuple(gone if each is hook else each for each in HOOKS))
        assert all(gone.name in hooks.missing(name) for name in hook.features)
    notes = compiled()
    lost = [] if "skipped frames" in hook.features else [name for name in hook.features if name in used]
    assert len(notes) == len(lost), notes  # skips are recorded by results instead
    for name in lost:
        assert [note for note in notes if note.startswith(f"{FEATURES[name]} are not recorded") and gone.name in note]


@pytest.mark.parametrize("calls", [0, 1], ids=["before", "after"])
def test_each_failing_wrapper_turns_its_feature_off_and_ends_no_compile(
    calls: int, used: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded, turn_off = hooks._guarded, hooks.Feature.turn_off
    failed: set[tuple[str, str]] = set()
    reasons: set[tuple[str, str]] = set()

    def broken(feature: hooks.Feature, hook: Hook, original: Any, wrapper: Any) -> Any:
        def fail(call: Any, *args: Any, **kwargs: Any) -> Any:
            failed.add((feature.name, f"the wrapper of {hook.name} failed: RuntimeError: broken"))
            if calls:
                call(*args, **kwargs)
            raise RuntimeError("broken")

        return guarded(feature, hook, original, fail)

    def turned_off(feature: hooks.Feature, why: str) -> None:
        turn_off(feature, why)
        assert feature.is_off
        reasons.add((feature.name, why))
        feature.is_off = False  # its next function shall fail too

    monkeypatch.setattr(hooks, "_guarded", broken)
    monkeypatch.setattr(hooks.Feature, "turn_off", turned_off)
    notes = compiled()
    assert reasons == failed and len(failed) > 25
    noted = sorted(note.partition(" are not recorded in full")[0] for note in notes)
    assert noted == sorted(FEATURES[name] for name in {feature for feature, _ in failed})


def test_a_trace_that_is_written_in_another_way_ends_no_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    from idbg.engine.capture import trace

    def unreadable(*_: object) -> None:
        raise KeyError("ts")

    monkeypatch.setattr(trace._Reader, "_timed", unreadable)
    (note,) = compiled()
    assert note.startswith("records of torch's trace are not recorded in full: KeyError: 'ts'")


# What a guard does, on a module of this test


@pytest.fixture
def torchs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that stands for one of torch's, with one function in the table."""
    module = ModuleType("torchs")
    exec(
        "def divide(a, b):\n    return a / b\ndef down(n):\n    return down(n - 1) + 1 if n else 0\n"
        "class Owner:\n    @classmethod\n    def made(cls, n):\n        return cls, n\nclass Below(Owner): pass",
        vars(module),
    )
    monkeypatch.setitem(sys.modules, "torchs", module)
    paths = ("divide", "down", "Owner.made", "Below.made")
    monkeypatch.setattr(hooks, "HOOKS", tuple(Hook("torchs", path, (path,)) for path in paths))
    monkeypatch.setattr(names, "FEATURES", {path: path for path in paths})
    return module


def test_errors_of_torch_are_torchs(torchs: ModuleType) -> None:
    notes: list[str] = []
    with notes_to(notes.append), hooks.hooked("divide", {"divide": lambda call, a, b: call(a, b) + 1}):
        assert torchs.divide(4, 2) == 3
        with pytest.raises(ZeroDivisionError):
            torchs.divide(4, 0)
        assert torchs.divide(4, 2) == 3
    assert torchs.divide(4, 2) == 2 and not notes


def test_an_argument_that_torch_names_reaches_a_wrapper_that_names_it_otherwise(torchs: ModuleType) -> None:
    notes: list[str] = []
    wrappers = {"divide": lambda call, upper, lower: call(upper + 2, lower)}
    with notes_to(notes.append), hooks.hooked("divide", wrappers):
        assert torchs.divide(a=4, b=2) == torchs.divide(4, b=2) == 3
    names: list[str] = []
    wrappers = {"divide": lambda call, *args, **kwargs: names.extend(kwargs) or call(*args, **kwargs)}
    with notes_to(notes.append), hooks.hooked("divide", wrappers):
        assert torchs.divide(4, b=2) == 2 and names == ["b"]
    assert not notes


def test_an_error_while_an_error_of_torch_is_handled_is_not_raised(torchs: ModuleType) -> None:
    def wrapper(call: Callable[..., float], a: int, b: int) -> float:
        try:
            return call(a, b)
        finally:
            raise KeyError("ours")

    notes: list[str] = []
    with notes_to(notes.append), hooks.hooked("divide", {"divide": wrapper}):
        with pytest.raises(ZeroDivisionError):
            torchs.divide(4, 0)
        assert torchs.divide(4, 2) == 2
    assert len(notes) == 1 and "KeyError: 'ours'" in notes[0]


def test_an_error_may_be_raised_on_purpose(torchs: ModuleType) -> None:
    def wrapper(call: Callable[..., float], a: int, b: int) -> float:
        raise hooks.RaisedForTorch(LookupError("not now"))

    with hooks.hooked("divide", {"divide": wrapper}), pytest.raises(LookupError, match="not now"):
        torchs.divide(4, 2)


def test_a_function_that_calls_itself_fails_once(torchs: ModuleType) -> None:
    notes: list[str] = []

    def wrapper(call: Callable[..., int], n: int) -> int:
        result = call(n)
        if n == 1:
            raise ValueError
        return result

    with notes_to(notes.append), hooks.hooked("down", {"down": wrapper}):
        assert torchs.down(3) == 3
    assert len(notes) == 1


def test_class_methods_and_inherited_ones_are_wrapped_and_put_back(torchs: ModuleType) -> None:
    def wrapper(call: Callable[..., tuple[type, int]], cls: type, n: int) -> tuple[type, int]:
        return call(cls, n + 1)

    with hooks.hooked("Owner.made", {"Owner.made": wrapper}), hooks.hooked("Below.made", {"Below.made": wrapper}):
        assert torchs.Owner.made(1) == (torchs.Owner, 2)
        assert torchs.Below.made(1) == (torchs.Below, 3)
    assert torchs.Below.made(1) == (torchs.Below, 1) and "made" not in vars(torchs.Below)


def test_features_that_end_in_another_order_leave_no_wrapper_that_acts(torchs: ModuleType) -> None:
    calls: list[str] = []

    def named(name: str) -> Callable[..., float]:
        def wrapper(call: Callable[..., float], *args: int) -> float:
            calls.append(name)
            return call(*args)

        return wrapper

    one, two = (hooks.hooked("divide", {"divide": named(name)}) for name in ("one", "two"))
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    two.__exit__(None, None, None)
    assert torchs.divide(4, 2) == 2 and not calls


def test_a_paused_feature_leaves_torch_alone(torchs: ModuleType) -> None:
    paused = True
    feature = hooks.Feature("divide", is_paused=lambda: paused)
    with hooks.hooked(feature, {"divide": lambda call, a, b: call(a, b) + 1}):
        assert torchs.divide(4, 2) == 2
        paused = False
        assert torchs.divide(4, 2) == 3


def test_hidden_frames_are_those_of_the_functions_own_file(torchs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "HOOKS", (Hook("torchs", "divide", ("divide",), hide_frames=True),))

    def wrapper(call: Callable[..., float], a: int, b: int) -> float:
        return call(a, b)

    with hooks.hooked("divide", {"divide": wrapper}), pytest.raises(ZeroDivisionError) as raised:
        torchs.divide(1, 0)
    files = [entry.frame.code.raw.co_filename for entry in raised.traceback[1:]]
    assert {*files} == {"<string>"} and len(files) == 4, files
