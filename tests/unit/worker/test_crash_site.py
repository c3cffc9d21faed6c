"""Where a process crashed is read from its stacks; where they are torn, from the launch that ran in a first call."""

from pathlib import Path

import msgspec
import pytest

from idbg.schema.faults import CrashSite
from idbg.worker.crash_site import LAUNCHES, STACKS, crash_site

LAUNCH = CrashSite(
    cause="", kernel="cpp_fused_sin_0", wrapper="/cache/a.py", wrapper_line=7, file="/me/train.py", line=4
)
RETURNED = CrashSite(cause="", wrapper="/cache/a.py")
HEAD = "Fatal Python error: Aborted\n\n"
THREAD = 'Thread 0x00007f7430fddb80 (most recent call first):\n  File "/me/load.py", line 9 in run\n'
WHOLE = HEAD + THREAD + "\nExtension modules: numpy (total: 1)\n"


def left(folder: Path, stacks: str, *launches: CrashSite) -> None:
    (folder / STACKS).write_text(stacks)
    (folder / LAUNCHES).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in launches))


@pytest.mark.parametrize("torn", ["", "Fatal Python", HEAD, HEAD + THREAD])
def test_torn_stacks_leave_the_launch_that_ran(tmp_path: Path, torn: str) -> None:
    """Of several threads that abort, the second ends the process while Python writes the stacks."""
    left(tmp_path, torn, LAUNCH)
    site = crash_site(tmp_path, "SIGABRT")
    assert site is not None and (site.cause, site.kernel, site.line) == ("SIGABRT", "cpp_fused_sin_0", 4)


def test_torn_stacks_after_a_wrapper_returned_name_nothing(tmp_path: Path) -> None:
    left(tmp_path, HEAD + THREAD, LAUNCH, RETURNED)
    assert crash_site(tmp_path, "SIGABRT") is None


def test_whole_stacks_count_before_the_last_launch(tmp_path: Path) -> None:
    left(tmp_path, WHOLE, LAUNCH)
    site = crash_site(tmp_path, "SIGABRT")
    assert site is not None and (site.kernel, site.file, site.line) == ("", "/me/load.py", 9)


def test_a_signal_that_leaves_no_stacks_names_nothing(tmp_path: Path) -> None:
    left(tmp_path, "", LAUNCH)
    assert crash_site(tmp_path, "SIGKILL") is None
