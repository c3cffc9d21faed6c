"""A saved session goes on: an edited kernel is tried in it, and is in its log beside all that was there before."""

from pathlib import Path

import pytest

from idbg.config.settings import Keeping
from idbg.schema import events
from idbg.schema.code import Kernel
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.runs import Run
from idbg.session import files
from idbg.session.reading import load, read
from idbg.session.session import Session
from tests.harness.fake_sessions import FAKE
from tests.harness.sessions import killed_session_of, session_of


def edited(folder: Path, more: str) -> tuple[Run, Kernel]:
    """The run of the session after this was added to the source of its first kernel, and tried."""
    with Session.resume(folder, command=FAKE) as session:
        (run,) = session.history.runs.values()
        kernel = next(kernel for kernel in run.kernels if kernel.source)
        session.edit_kernel(run.number, kernel, kernel.source + more)
        assert session.wait(60)
        return run, kernel


def test_versions_are_added_to_the_log_and_written_as_files(tmp_path):
    folder = session_of("resnet", tmp_path)
    before = (folder / files.LOG).read_bytes()
    run, kernel = edited(folder, "// one\n")
    edited(folder, "// two\n")
    assert (folder / files.LOG).read_bytes().startswith(before)
    again = load(folder)
    versions = [event.edit for event in again if isinstance(event, events.KernelEdited)]
    assert [(one.version, one.text) for one in versions] == [
        (1, kernel.source + "// one\n"),
        (2, kernel.source + "// two\n"),
    ]
    (written,) = folder.glob(f"run-*/*/kernels/*/{kernel.name}.v2.cpp")
    assert written.read_text() == versions[1].text
    with Session.open(folder) as session:
        assert session.history.runs[run.number].edits_of(*kernel.key) == versions
        with pytest.raises(BadInput, match="read from disk"):
            session.edit_kernel(run.number, kernel, kernel.source + "// three\n")


def test_a_version_that_kills_the_worker_is_kept_and_the_next_is_tried(tmp_path):
    folder = session_of("resnet", tmp_path)
    run, kernel = edited(folder, "// crash\n")
    (crashed,) = run.edits_of(*kernel.key)
    assert crashed.verdict == "failed" and crashed.failure is not None and "SIGSEGV" in crashed.failure.message
    run, _ = edited(folder, "// fine\n")
    assert [edit.failure is None for edit in run.edits] == [False, True] and run.editing is None


def test_what_a_killed_writer_left_of_a_line_is_not_in_the_way(tmp_path):
    folder = killed_session_of("resnet", tmp_path)
    with (folder / files.LOG).open("ab") as log:
        log.write(b'{"type":"noted","at":1.0,"le' + b"x" * 100_000)
    edited(folder, "// one\n")
    found, missing = read(folder)
    assert not missing and isinstance(found[-1], events.KernelEdited)


def test_a_session_that_is_live_damaged_or_full_is_not_added_to(tmp_path):
    folder = session_of("resnet", tmp_path)
    with Session.resume(folder, command=FAKE), pytest.raises(OutputError, match="another process writes"):
        Session.resume(folder, command=FAKE)
    whole = (folder / files.LOG).read_bytes()
    (folder / files.LOG).write_bytes(whole + b"{}\n{}\n")
    with pytest.raises(OutputError, match="nothing can be added"):
        Session.resume(folder, command=FAKE)
    (folder / files.LOG).write_bytes(whole)
    with Session.resume(folder, command=FAKE, keeping=Keeping(session_size=len(whole))) as session:
        (run,) = session.history.runs.values()
        kernel = next(kernel for kernel in run.kernels if kernel.source)
        session.edit_kernel(run.number, kernel, kernel.source + "// one\n")
        assert session.wait(60)
        assert "nothing is saved" in session.history.missing[-1]
    assert not [event for event in load(folder) if isinstance(event, events.KernelEdited)]
