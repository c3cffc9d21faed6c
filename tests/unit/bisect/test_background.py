"""A session's search for the guilty: each try is an event, the answer is the run's, and cancel ends it in order."""

import sys
from pathlib import Path

import pytest

from idbg.schema import events
from idbg.schema.bisection import Question
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.session.session import Session
from tests.harness.fake_sessions import FAKE_CHILD
from tests.harness.git_history import eight_commits


@pytest.fixture
def session(tmp_path: Path) -> Session:
    history = eight_commits(tmp_path / "repo")
    (history.folder / "clean.py").write_text("")
    program = Program("clean.py", cwd=str(history.folder))
    return Session(program, Target(), output=tmp_path / "out", command=(sys.executable, str(FAKE_CHILD)))


def commits(session: Session, check: str) -> Question:
    cwd = session.program.cwd
    return Question(
        "commits", Program("p.py", cwd=cwd), command=(sys.executable, "-c", check), good="HEAD~5", bad="HEAD"
    )


def test_each_try_is_told_and_the_answer_is_the_runs(session: Session) -> None:
    with session:
        session.run()
        session.bisect(commits(session, "import runpy; runpy.run_path('p.py')"))
        assert session.wait(60)
        told = [event for event in session.events if isinstance(event, events.BisectProgressed)]
        assert told[0].tried is None
        assert told[1].tried is not None
        run = session.history.runs[1]
        assert run.bisected is not None
        assert run.bisected.commit is not None
        assert run.bisected.commit.commits[0].subject == "five"
        assert run.bisected == Session.open(session.folder).history.runs[1].bisected


def test_cancel_ends_it_with_what_is_known(session: Session) -> None:
    with session:
        session.run()
        session.subscribe(
            lambda event: session.cancel() if isinstance(event, events.BisectProgressed) and event.tried else None
        )
        session.bisect(commits(session, "import time; time.sleep(1); raise SystemExit(1)"))
        assert session.wait(60)
        ended = session.events[-1]
        assert isinstance(ended, events.BisectEnded)
        assert ended.failure is not None
        assert ended.failure.kind == "cancelled"
        assert ended.bisected is not None
        assert ended.bisected.stopped


def test_what_cannot_be_asked_ends_with_a_failure(session: Session) -> None:
    with session:
        session.run()
        session.bisect(Question("commits", Program("p.py", cwd="/"), command=("true",), good="a", bad="b"))
        assert session.wait(60)
        ended = session.events[-1]
        assert isinstance(ended, events.BisectEnded)
        assert ended.failure is not None
        assert "is in no git checkout" in ended.failure.message


def test_nothing_was_run(session: Session) -> None:
    with session, pytest.raises(BadInput, match="no failure to bisect"):
        session.bisect()
