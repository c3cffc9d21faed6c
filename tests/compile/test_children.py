"""Each process that a program starts and that compiles has a log of its own, and the program notices nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from idbg.schema import events
from idbg.schema.programs import Program
from idbg.schema.runs import History
from idbg.session import processes, summaries
from idbg.session.store import Store
from idbg.startup.sitecustomize.passing import environment
from tests.harness import warm
from tests.harness.children import every_way


def new_session(output: Path) -> Path:
    program = Program(path="every_way.py")
    store = Store.create(output, program)
    store.append(events.SessionOpened(version="0", program=program, folder=str(store.folder)))
    store.close()
    return store.folder


def run(script: Path, *args: str, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(script), *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)


def histories(session: Path) -> dict[str, History]:
    """What each process compiled, by its name without the number."""
    found = {}
    for name in processes.names(session):
        folder = processes.find(session, name)
        assert folder is not None
        found[re.sub(r"-\d+$", "", name)] = summaries.read_whole(folder)[1]
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, list[subprocess.CompletedProcess[str]]]":
    """The session of a program that starts children in every way, and what it printed without idbg and with it."""
    folder = tmp_path_factory.mktemp("children")
    script, text = folder / "every_way.py", Path(every_way.__file__).read_text(encoding="utf-8")
    (folder / "own").mkdir()
    (folder / "own" / "sitecustomize.py").write_text("MINE = 'the user has one'\n")
    env = {**os.environ, **warm.COLD, "PYTHONPATH": str(folder / "own")}
    session = new_session(folder)
    # what compiles prints is the function's own result: without idbg, Dynamo says nothing that the program would see
    script.write_text(text.replace('torch.compile(double_relu, backend="eager")', "double_relu"))
    plain = run(script, "a", env=env)
    script.write_text(text)
    return session, [plain, run(script, "a", env=environment(str(session), env))]


def test_what_it_prints_returns_and_sees_is_as_without_idbg(
    both: "tuple[Path, list[subprocess.CompletedProcess[str]]]",
) -> None:
    plain, captured = both[1]
    assert plain.returncode == 0, plain.stderr
    assert "the user has one" in plain.stdout
    assert plain.stdout.count("8.0") == 7
    assert captured.stdout == plain.stdout
    assert captured.stderr == plain.stderr
    assert captured.returncode == plain.returncode


def test_each_that_compiles_has_a_log_and_no_other(
    both: "tuple[Path, list[subprocess.CompletedProcess[str]]]",
) -> None:
    session, _ = both
    found = processes.names(session)
    named = sorted(name.rpartition("-")[0] for name in found)
    assert [name for name in named if name != "child"] == [
        *("Engine_fork", "Engine_forkserver", "Engine_spawn", "Failing")
    ]
    assert named.count("child") == 3  # cleared, system, killed: none of those that compile nothing
    for history in histories(session).values():
        assert history.last is not None
        assert len(history.last.graphs) == 1
        assert history.last.backend == "eager"
        assert history.process is not None
        assert history.process.how == "idbg"


def test_the_end_of_each_is_in_its_log(both: "tuple[Path, list[subprocess.CompletedProcess[str]]]") -> None:
    session, _ = both
    ended = histories(session)
    for name in ("Engine_spawn", "Engine_fork", "Engine_forkserver"):
        run = ended[name].last
        assert run is not None
        assert run.ended == "compiled"
    unended = [
        name
        for name in processes.names(session)
        if (folder := processes.find(session, name)) and (last := summaries.read_whole(folder)[1].last)
        if last.ended is None
    ]
    assert len(unended) == 1  # the one that is killed
    notes = {file.read_text() for file in (session / "processes" / ".pids").iterdir()}
    assert f"{unended[0]}\n9" in notes
    assert [note.partition("-")[0] for note in notes if note.endswith("\n1792")] == ["Failing"]  # exit status 7
