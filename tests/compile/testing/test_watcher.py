"""What a test says of what it compiles holds, or fails with the places and a session; torch is left as it was."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import cast

import pytest
import torch

import idbg
from idbg.engine.capture.run import current
from idbg.schema import events
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program
from idbg.session.session import Session
from idbg.testing import Found, Watcher
from idbg.testing.recording import Recording
from idbg.testing.run_report import RunReport, attach
from tests.harness.traced import is_traced

NPU = 'name = "by 16"\n[[rules]]\nkind = "alignment"\nmultiple = 16\nseverity = "{severity}"\n'


def square(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ x)


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print("between two graphs")
    return y * 2


@pytest.fixture
def watcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    monkeypatch.chdir(tmp_path)
    for severity in ("reject", "pad"):
        (tmp_path / f"{severity}.toml").write_text(NPU.format(severity=severity))
    made = Watcher(Program("test_it.py", name=":test_it", cwd=str(tmp_path)), tmp_path / "kept", "test_it")
    torch._dynamo.reset()
    yield made
    made.close()
    torch._dynamo.reset()


def kept(found: Found) -> Session:
    assert found.session is not None and f"idbg-tui kept/{found.session.name}" in str(found)
    return Session.open(found.session)


def test_what_any_backend_compiles_is_seen_and_a_test_that_holds_keeps_nothing(watcher: Watcher) -> None:
    before = torch.compile(square, backend="aot_eager")  # long before the watch begins
    with watcher.watched() as seen:
        before(torch.ones(4, 4))
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
        torch.compile(lambda x: x - 1, backend=lambda gm, inputs: gm.forward)(torch.ones(3))
    assert seen.run is not None and seen.run.verdict == "compiled"
    assert [graph.stage for graph in seen.run.graphs] == ["dynamo", "inference", "dynamo", "dynamo"]
    assert seen.run.target.backend == "aot_eager"
    assert not Path("kept").exists() and watcher.recording.folder is None


def test_a_break_fails_with_its_line_and_a_session_that_opens(watcher: Watcher) -> None:
    with pytest.raises(Found, match=r"break: .*test_watcher.py:\d+: print\(\)") as failed, watcher.watched():
        torch.compile(broken, backend="eager")(torch.ones(3))
    session = kept(failed.value)
    assert session.history.last.times_broken == 1 and session.program.label == "test_it.py::test_it"
    assert [found.kind for found in failed.value.diagnostics] == ["break"]


def twice(compiled: Callable[..., object]) -> None:
    compiled(torch.ones(4, 4))
    compiled(torch.ones(4, 4, dtype=torch.float64))


def test_compiling_anew_fails(watcher: Watcher) -> None:
    with pytest.raises(Found, match=r"recompile: .*square is compiled again"), watcher.watched(fail_on=["recompile"]):
        twice(torch.compile(square, backend="eager"))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_rules_are_asked_on_each_graph_that_there_is(watcher: Watcher, backend: str) -> None:
    with (
        pytest.raises(Found, match=r"reject: .*reject.toml: dim 0 is 5") as failed,
        watcher.watched(accelerator="reject.toml", fail_on=["reject"]),
    ):
        torch.compile(square, backend=backend)(torch.ones(5, 5))
    stages = {node.graph.stage for found in failed.value.diagnostics for node in found.nodes}
    assert stages == ({"dynamo"} if backend == "eager" else {"dynamo", "inference"})
    with watcher.watched(accelerator="pad.toml", fail_on=["fallback"]):
        torch._dynamo.reset()
        torch.compile(square, backend=backend)(torch.ones(5, 5))


def test_that_nothing_was_compiled_is_not_green_unless_it_may_be(watcher: Watcher) -> None:
    with pytest.raises(Found, match="nothing was compiled while it was watched"), watcher.watched():
        square(torch.ones(3, 3))
    with watcher.watched(must_compile=False):
        square(torch.ones(3, 3))


def test_a_backend_of_ours_keeps_its_own_rules_and_its_own_list(watcher: Watcher) -> None:
    own = idbg.backend("mock", strict=False, accelerator="reject.toml")
    with pytest.raises(Found, match="reject: "), watcher.watched(fail_on=["reject"]):
        torch.compile(square, backend=own)(torch.ones(5, 5))
    assert len(own.violations) > 1
    torch._dynamo.reset()
    strict = idbg.backend("mock", strict=True, accelerator="reject.toml", repros="repros")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as refused, watcher.watched(accelerator="pad.toml"):
        torch.compile(square, backend=strict)(torch.ones(5, 5))
    assert any("idbg: session: " in note for note in refused.value.__notes__)


def interrupted(_: object) -> None:
    raise KeyboardInterrupt


def test_the_test_s_own_exception_is_raised_with_the_session_and_a_skip_is_no_failure(watcher: Watcher) -> None:
    with pytest.raises(ZeroDivisionError) as failed, watcher.watched():
        print(torch.compile(square, backend="eager")(torch.ones(3, 3)), 1 // 0)
    assert failed.value.__notes__[0].startswith("idbg: session: kept/test_it-")
    assert watcher.recording.history.last.verdict == "failed"
    with pytest.raises(pytest.skip.Exception), watcher.watched() as seen:
        pytest.skip(str(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))))
    assert seen.run.verdict == "waiting", "what the rest of the test compiles is not known"
    with pytest.raises(KeyboardInterrupt), watcher.watched() as seen:
        interrupted(torch.compile(lambda x: x + 2, backend="eager")(torch.ones(3)))
    assert seen.run.verdict == "waiting" and seen.diagnostics == []
    with pytest.raises(pytest.skip.Exception), watcher.watched() as seen:
        pytest.skip("before anything")
    assert seen.run is None


def test_a_watch_in_a_watch_has_what_is_compiled_for_itself(watcher: Watcher) -> None:
    with watcher.watched() as outer:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
        with watcher.watched(fail_on=[]) as inner:
            torch.compile(broken, backend="eager")(torch.ones(3))
        torch.compile(lambda x: x + 2, backend="eager")(torch.ones(3))
    assert (len(outer.run.graphs), outer.run.times_broken) == (2, 0)
    assert (len(inner.run.graphs), inner.run.times_broken) == (2, 1)


def test_dynamo_reset_in_a_watch_is_no_recompile(watcher: Watcher) -> None:
    with watcher.watched() as seen:
        for _ in range(2):
            torch.compile(square, backend="eager")(torch.ones(3, 3))
            torch._dynamo.reset()
    assert len(seen.run.frames) == 2


def test_torch_is_left_as_it_was(watcher: Watcher) -> None:
    import logging

    from torch._dynamo.output_graph import OutputGraph
    from torch._inductor import compile_fx

    def state() -> tuple[object, ...]:
        trace = logging.getLogger("torch.__trace")
        configs = torch._dynamo.config, torch._inductor.config, torch._functorch.config
        values = [str(config.get_config_copy()) for config in configs]  # type: ignore[attr-defined]
        compiles = torch.compile, OutputGraph.call_user_compiler, compile_fx.compile_fx
        return *values, *compiles, [*trace.handlers], trace.propagate, torch.get_rng_state().tolist(), current()

    before = state()
    with watcher.watched():
        torch.compile(square, backend="aot_eager")(torch.ones(3, 3))
    assert state() == before
    compiled = torch.compile(square, backend="eager")
    compiled(torch.ones(7, 7))
    watcher.assert_no_breaks(square, torch.ones(7, 7))
    watcher.assert_accepts(compiled, torch.ones(16, 16), accelerator="reject.toml")
    with watcher.watched(must_compile=False) as seen:
        compiled(torch.ones(7, 7))
    assert seen.run is None, "what was compiled is still there, and fits"


def test_no_breaks_and_no_recompiles_are_asserted_of_any_function(watcher: Watcher) -> None:
    watcher.assert_no_breaks(torch.nn.Linear(4, 4), torch.ones(2, 4))
    with pytest.raises(Found, match=r"break: .*print"):
        watcher.assert_no_breaks(broken, torch.ones(3))
    watcher.assert_no_recompiles(square, [(torch.ones(4, 4),), (torch.ones(4, 4),)])
    watcher.assert_no_recompiles(square, [(torch.ones(4, 4),), (torch.ones(6, 6),)], dynamic=True)
    with pytest.raises(Found, match=r"recompile: .*size 0 of x") as failed:
        watcher.assert_no_recompiles(square, [(torch.ones(4, 4),), (torch.ones(6, 6),)], dynamic=False)
    assert len(kept(failed.value).history.runs) == 5


def test_an_accelerator_accepts_pads_or_rejects(watcher: Watcher) -> None:
    watcher.assert_accepts(square, torch.ones(16, 16), accelerator="reject.toml", at_worst="accept")
    watcher.assert_accepts(square, torch.ones(5, 5), accelerator="pad.toml")
    with pytest.raises(Found, match="pad: "):
        watcher.assert_accepts(square, torch.ones(5, 5), accelerator="pad.toml", at_worst="accept")
    weights = torch.ones(5, 5, requires_grad=True)
    with pytest.raises(Found, match="reject: ") as failed:
        watcher.assert_accepts(square, weights, accelerator="reject.toml")
    assert {"forward", "backward"} <= {graph.stage for graph in kept(failed.value).history.last.graphs}


def test_numbers_agree_or_the_output_is_named(watcher: Watcher) -> None:
    watcher.assert_same_numbers(square, torch.ones(4, 4), backend="aot_eager")

    def otherwise(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if is_traced() else x + 2

    with pytest.raises(Found, match=r"mismatch: .* differs from eager's") as failed:
        watcher.assert_same_numbers(otherwise, torch.ones(4), backend="aot_eager")
    last = kept(failed.value).history.last
    assert last.verdict == "wrong" and last.diff is not None and last.graphs


def test_a_callable_is_a_backend_too(watcher: Watcher) -> None:
    def exact(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        return gm.forward

    def one_percent_off(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        return lambda *given: tuple(result * 1.01 for result in gm(*given))

    watcher.assert_same_numbers(square, torch.ones(4, 4), backend=exact, reference=exact)
    with pytest.raises(Found, match=r"mismatch: .* differs from eager's") as failed:
        watcher.assert_same_numbers(square, torch.ones(4, 4), backend=one_percent_off)
    last = kept(failed.value).history.last
    assert "one_percent_off" in last.target.backend and last.verdict == "wrong" and last.graphs


def test_what_cannot_be_meant_is_refused(watcher: Watcher) -> None:
    with pytest.raises(BadInput, match="nothing called 'brake'") as refused, watcher.watched(fail_on=["brake"]):
        pass
    assert refused.value.hint == "did you mean break?"
    with pytest.raises(BadInput), watcher.watched(accelerator="none/such.toml"):
        pass
    with pytest.raises(ValueError, match="at_worst is 'never'"):
        watcher.assert_accepts(square, torch.ones(3), accelerator="reject.toml", at_worst="never")
    assert watcher.recording.history.runs == {}


def test_a_folder_that_cannot_be_written_is_said_and_the_finding_stands(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    watcher = Watcher(Program("test_it.py"), tmp_path / "file", "test_it")
    with pytest.raises(Found, match=r"break: (.|\n)*idbg: the session is not kept: cannot write to the output folder"):
        watcher.assert_no_breaks(broken, torch.ones(3))
    live = Watcher(Program("test_it.py"), tmp_path / "file", "test_it", live=True)
    with live.captured():
        assert torch.equal(torch.compile(lambda x: x * 3, backend="eager")(torch.ones(3)), torch.full((3,), 3.0))


def test_what_several_threads_tell_goes_to_one_session_whole_and_in_order(tmp_path: Path) -> None:
    recording = Recording(Program("test_it.py"), tmp_path, "test_it", live=True)
    told = [
        Thread(target=lambda: [recording.emit(events.Noted(level="info", text=str(n))) for n in range(50)])
        for _ in range(8)
    ]
    for thread in told:
        thread.start()
    for thread in told:
        thread.join()
    recording.close()
    (folder,) = tmp_path.iterdir()
    assert sum(isinstance(event, events.Noted) for event in Session.open(folder).events) == 8 * 50


@pytest.mark.parametrize(
    ("known", "said"), [("", "1 session could not be kept"), ("no/known.json", "FAILED cannot write")]
)
def test_a_run_whose_sessions_or_baseline_cannot_be_written_is_judged_and_not_green(
    known: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    live = Watcher(Program("test_it.py"), tmp_path / "file", "test_it", live=True)
    with live.captured():
        torch.compile(broken, backend="eager")(torch.ones(3))
    report = cast("pytest.TestReport", SimpleNamespace(nodeid="test_it.py::test_it"))
    attach(report, live)
    run = RunReport(tmp_path / "run", frozenset({"break"}), tmp_path / known if known else None, bool(known))
    run.pytest_runtest_logreport(report)
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    run.pytest_sessionfinish(cast("pytest.Session", session))
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED
    assert any(said in line for line in run._lines())


def test_a_test_that_compiles_nothing_is_no_session_also_where_it_fails(watcher: Watcher) -> None:
    def fails(*compiled: Callable[..., object]) -> None:
        with watcher.captured():
            for function in compiled:
                function(torch.ones(3, 3))
            raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        fails()
    assert watcher.recording.history.runs == {}
    with pytest.raises(ValueError, match="its own"):
        fails(torch.compile(square, backend="eager"))
    assert watcher.recording.history.runs[2].verdict == "failed"
