"""A search never says that nothing fails where its own run just failed."""

from pathlib import Path

import pytest

from idbg.schema.repros import Minified, Signature
from idbg.views.repros import result_lines
from idbg.worker.minifying import _unshown, _without_passing

NONE = Minified(Signature("none"), whole=8, calls=3, tried=11)
WRONG = Signature("wrong", message="values")


@pytest.mark.parametrize("asked", ["wrong", "failure", "hang"])
def test_a_failure_that_no_script_shows_is_no_clean_run(asked: str) -> None:
    told = _unshown(NONE, WRONG, asked)
    assert (told.signature, told.path, told.reproduced) == (WRONG, "", None)
    lines = "\n".join(result_lines(told))
    assert "nothing fails" not in lines
    assert "no script" in lines
    assert "the run failed so, and no graph of it does by itself" in lines
    assert "the whole failed in none of 11 tries" in lines


def test_a_command_that_passes_is_said_to_pass() -> None:
    assert _unshown(NONE, Signature("check"), "check") is NONE


def test_what_was_shown_stays_as_it_is() -> None:
    found = Minified(WRONG, path="/tmp/repro.py", reproduced=True)
    assert _unshown(found, WRONG, "wrong") is found


def test_a_script_that_passes_is_not_presented(tmp_path: Path) -> None:
    script = tmp_path / "minified-wrong" / "repro.py"
    script.parent.mkdir()
    script.write_text("")
    passes = Minified(WRONG, path=str(script), reproduced=False, status=0, failed=0, tried=11)
    shown = _without_passing(passes)
    assert (shown.path, script.exists()) == ("", False)
    lines = "\n".join(result_lines(shown))
    assert "script:" not in lines and "does not in a fresh one (11 tries)" in lines
    fails = Minified(WRONG, path=str(script), reproduced=True, status=1)
    assert _without_passing(fails) is fails
