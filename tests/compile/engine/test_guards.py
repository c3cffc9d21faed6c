"""Are the guards that are shown those that torch evaluates, each on its own graph, with its line and its cost?"""

import gc
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.guards
from torch._dynamo.guards import CheckFunctionManager

from idbg.analysis.decisions.guards import share
from idbg.engine.compat import guards as compat
from idbg.render.text import text as text_of
from idbg.schema.decisions.dynamo import FrameCalls, FrameGuards
from idbg.views import guards as report
from tests.harness.guarded import heard, listened

Backend = Callable[..., Any]
FACTOR = 7


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = 3

    def forward(self, x: torch.Tensor, parts: dict[str, torch.Tensor], n: int) -> torch.Tensor:
        return self.linear(x) * self.scale + parts["a"] + n + FACTOR


def _called(backend: Backend) -> None:
    """Sizes, dtypes, an int, a dict, an attribute of a module, a global, and an int that a closure holds."""
    model = torch.compile(Model(), backend=backend)
    parts = {"a": torch.ones(4)}
    for rows in (2, 3, 4):
        model(torch.ones(rows, 4), parts, 5)
    model(torch.ones(3, 4), parts, 6)
    model(torch.ones(3, 4), {"a": torch.ones(4, dtype=torch.int32)}, 6)
    for held in (1, 2):
        torch.compile(_closing_over(held), backend=backend)(torch.ones(3))


def _closing_over(held: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x * held


def test_what_is_shown_is_what_torch_evaluates() -> None:
    with listened() as torchs:
        run = heard(_called)
    assert len(run.decided.last(FrameGuards)) == len(torchs.checks) >= 6
    for frame, told in run.decided.last(FrameGuards).items():
        assert sorted(code for guard in told.guards for code in guard.code) == sorted(torchs.checks[frame])
        assert told.requested == torchs.asked[frame] and not told.dropped


def test_each_has_its_kind_its_source_and_the_users_line() -> None:
    run = heard(_called)
    first = {(guard.kind, guard.source): guard for guard in run.decided.last(FrameGuards)["0/0"].guards}
    lines = [line.strip() for line in Path(__file__).read_text().splitlines()]
    line = 1 + lines.index('return self.linear(x) * self.scale + parts["a"] + n + FACTOR')
    for kind, source in (
        ("TENSOR_MATCH", "L['x']"),
        ("TENSOR_MATCH", "L['parts']['a']"),
        ("EQUALS_MATCH", "L['n']"),
        ("EQUALS_MATCH", "L['self'].scale"),
        ("EQUALS_MATCH", "G['FACTOR']"),
        ("TYPE_MATCH", "L['parts']"),
    ):
        guard = first[kind, source]
        assert (guard.file, guard.line) == (__file__, line), guard
        assert guard.stack[0].function == "forward"
    assert first["EQUALS_MATCH", "L['n']"].code == ("L['n'] == 5",)
    assert first["GLOBAL_STATE", ""].file == ""
    dynamic = {(guard.kind, guard.source): guard for guard in run.decided.last(FrameGuards)["0/1"].guards}
    assert dynamic["SHAPE_ENV", "L['x']"].line == line


def test_what_dynamo_asked_for_and_is_not_evaluated_is_told() -> None:
    told = heard(_called).decided.last(FrameGuards)["0/0"]
    left = {each.kind: each for each in told.left_out}
    assert left["GRAD_MODE"].why == "GLOBAL_STATE checks it" and "TENSOR_MATCH" not in left
    assert not {each.kind for each in told.left_out} & {guard.kind for guard in told.guards}


def test_guards_stand_on_their_own_graph() -> None:
    def broken(x: torch.Tensor, before: int, after: int) -> torch.Tensor:
        y = x * before
        torch._dynamo.graph_break()
        return y + after

    run = heard(lambda backend: torch.compile(broken, backend=backend)(torch.ones(3), 2, 5))
    frames = run.decided.last(FrameGuards)
    assert list(frames) == ["0/0", "1/0"]
    codes = {frame: {code for guard in told.guards for code in guard.code} for frame, told in frames.items()}
    assert "L['before'] == 2" in codes["0/0"] and "L['after'] == 5" not in codes["0/0"]
    assert "L['after'] == 5" in codes["1/0"] and "L['before'] == 2" not in codes["1/0"]


def test_costs_are_measured_and_their_share_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._dynamo.guards, "profile_guard_manager", lambda *_: 3.5)  # microseconds
    run = heard(_called)
    told = run.decided.last(FrameGuards)["0/1"]
    assert told.seconds and told.seconds > 0 and told.cold == pytest.approx(3.5e-6)
    tensors = [guard.seconds for guard in told.guards if guard.kind == "TENSOR_MATCH"]
    assert len(tensors) == 4 and all(tensors)
    assert all(guard.seconds is None for guard in told.guards if guard.kind == "NO_TENSOR_ALIASING")
    often, once = share(run, told), share(run, run.decided.last(FrameGuards)["0/0"])
    assert often is not None and not often.first and 0 < often.part < 1
    assert once is not None and once.first
    # one frame's own sentence: the text of the whole run unfolds only the frames measured as the most expensive
    assert "of the only call, which was the first" in report.cost(run, run.decided.last(FrameGuards)["0/0"])
    assert "of the fastest call" in report.cost(run, told)


def test_a_frame_that_nobody_called_has_no_share() -> None:
    run = heard(_called)
    run.decided.last(FrameCalls).clear()
    assert share(run, run.decided.last(FrameGuards)["0/0"]) is None
    assert "no call of the compiled graph was measured" in text_of(report.view(run))


def test_measuring_fails_no_guard_and_causes_no_recompile() -> None:
    def two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    def call(backend: Backend) -> None:
        compiled = torch.compile(two, backend=backend)
        for _ in range(4):
            compiled(torch.ones(3), torch.ones(3))

    run = heard(call)
    assert list(run.decided.last(FrameGuards)) == ["0/0"] and run.decided.last(FrameCalls)["0/0"].calls == 4
    (entry,) = torch._dynamo.eval_frame._debug_get_cache_entry_list(two.__code__)
    assert entry.guard_manager.root.fail_count() == 0


def test_the_users_values_are_not_held() -> None:
    x = torch.ones(3)
    gone = weakref.ref(x)

    def call(backend: Backend, given: list[torch.Tensor]) -> None:
        torch.compile(lambda x: x + 1, backend=backend)(given.pop())

    given = [x]
    del x
    run = heard(partial(call, given=given))
    assert run.decided.last(FrameGuards)
    gc.collect()
    assert gone() is None


def test_torch_is_left_as_it_was() -> None:
    build, profile = CheckFunctionManager.compile_check_fn, torch._dynamo.guards.profile_guard_manager  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        heard(lambda backend: 1 / 0)
    assert CheckFunctionManager.compile_check_fn is build
    assert torch._dynamo.guards.profile_guard_manager is profile  # type: ignore[attr-defined]


def test_what_cannot_be_read_stops_no_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> None:
        raise AttributeError("torch has no such name")

    monkeypatch.setattr(compat, "_read", unreadable)
    results = []
    run = heard(lambda backend: results.append(torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))))
    assert results[0].tolist() == [2, 2] and not run.decided.last(FrameGuards)
