"""A session's repros, as a fold of its events: what is in hand, what was found, what was written by itself."""

from idbg.schema import events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.repros import Minified, MinifyProgress, Signature, Sought
from idbg.schema.runs import fold
from idbg.schema.session_repros import SessionRepro
from idbg.schema.violations import Severity, Violation

NODE = NodeId(GraphId("0/0", "dynamo"), "cumsum")
CANCELLED = Failure(kind="cancelled", message="cancelled")
FOUND = Minified(
    Signature("violation", type="alignment", message="cumsum"), path="/s/min.py", reproduced=True, status=1
)


def kept(*told: SessionEvent) -> list[SessionRepro]:
    return fold(told).repros


def test_a_repro_is_in_hand_until_it_ends_and_then_has_its_path_and_proof() -> None:
    asked = events.ReproStarted(run=1, node=NODE, rule="alignment", at=5.0)
    (repro,) = kept(asked)
    assert (repro.run, repro.at, repro.ended, repro.path) == (1, 5.0, 0.0, "")
    assert repro.sought == Sought("violation", NODE, "alignment")
    ended = events.ReproEnded(run=1, path="/s/repro.py", reproduced=False, status=0, output="", seconds=2.0, at=7.0)
    (repro,) = kept(asked, ended)
    assert (repro.path, repro.reproduced, repro.status, repro.ended) == ("/s/repro.py", False, 0, 7.0)


def test_a_search_shows_its_progress_then_what_it_came_to() -> None:
    begun = events.MinifyStarted(run=2, sought=Sought(), at=1.0)
    on_way = events.MinifyProgressed(run=2, progress=MinifyProgress("prefix", size=5, whole=9, best="/s/5.py"))
    (repro,) = kept(begun, on_way)
    assert (repro.progress, repro.path, repro.reproduced) == (on_way.progress, "/s/5.py", None)
    (repro,) = kept(begun, on_way, events.MinifyEnded(run=2, minified=FOUND, at=4.0))
    assert (repro.path, repro.reproduced, repro.minified, repro.seconds) == ("/s/min.py", True, FOUND, 3.0)
    assert not repro.stopped


def test_what_failed_until_a_search_was_killed_is_kept_and_nobody_says_that_it_was_tried() -> None:
    begun = events.MinifyStarted(run=2, sought=Sought())
    on_way = events.MinifyProgressed(run=2, progress=MinifyProgress("prefix", best="/s/5.py"))
    (repro,) = kept(begun, on_way, events.MinifyEnded(run=2, failure=CANCELLED))
    assert (repro.path, repro.reproduced, repro.stopped) == ("/s/5.py", None, True)


def test_what_strict_rules_wrote_is_there_once() -> None:
    failure = Failure(kind="constraints", message="1 violation", repro="/s/strict/repro.py")
    caught = events.FrameFailed(run=1, frame="0/0", failure=failure)
    (repro,) = kept(caught, events.RunEnded(run=1, verdict="violations", seconds=1.0, failure=failure))
    assert (repro.origin, repro.path, repro.reproduced) == ("strict", "/s/strict/repro.py", None)
    assert not kept(events.RunEnded(run=1, verdict="failed", seconds=1.0, failure=CANCELLED))


def test_what_strict_rules_wrote_is_of_the_first_violation_that_rejects() -> None:
    def broken(rule: str, severity: Severity) -> Violation:
        return Violation(rule=rule, severity=severity, node=NODE, found="17", wanted="a multiple of 8")

    failure = Failure(kind="constraints", message="2 violations", repro="/s/strict/repro.py")
    history = fold(
        [
            events.RunStarted(run=1, program=Program("m.py"), target=Target()),
            events.ViolationsFound(run=1, violations=(broken("layout", "slow"), broken("alignment", "reject"))),
            events.RunEnded(run=1, verdict="violations", seconds=1.0, failure=failure),
        ]
    )
    assert [repro.sought for repro in history.repros] == [Sought("violation", NODE, "alignment")]


def test_a_launchs_script_reproduces_where_it_says_what_was_said_of_the_launch() -> None:
    def owned(**known: object) -> SessionRepro:
        owner = KernelAttribution(launch=3, name="k", sentence="", script="/s/k.py", **known)  # type: ignore[arg-type]
        (repro,) = kept(events.OwnerEnded(run=1, owner=owner))
        assert repro.sought == Sought("wrong", launch=3)
        return repro

    assert owned(kind="compiler", status=1).reproduced
    assert owned(kind="compiler", status=0).reproduced is False
    assert owned(kind="nobody", status=0).reproduced
    assert owned(kind="compiler", status=None).reproduced is None
    nothing = KernelAttribution(launch=3, name="k", kind="nobody", sentence="")
    assert not kept(events.OwnerEnded(run=1, owner=nothing))


def test_an_end_without_a_beginning_changes_nothing() -> None:
    assert not kept(events.MinifyEnded(run=1, minified=FOUND), events.ReproEnded(run=1, path="/s"))
