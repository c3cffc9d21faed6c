"""A session is named by a path, by its name in the output folder, or as the last one."""

from pathlib import Path

import pytest

from idbg.config import places
from idbg.schema.errors import OutputError
from idbg.session.index import find, named
from tests.harness.sessions import small_log


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two sessions, and a working directory beside it."""
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")
    small_log(tmp_path / "out" / "old-1", at=1.0)
    small_log(tmp_path / "out" / "new-2", at=2.0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "out"


@pytest.mark.parametrize("text", ["new-2", "last", "{}/new-2", "{}/new-2/", "{}/new-2/events.jsonl"])
def test_a_session_is_found_by_each_of_its_names(output: Path, text: str) -> None:
    assert find(text.format(output), output) == output / "new-2"


def test_a_path_comes_before_a_name_and_last_is_no_path(output: Path) -> None:
    small_log(Path("new-2"), at=0.0)
    small_log(Path("last"), at=0.0)
    assert find("new-2", output) == Path("new-2")
    assert find("last", output) == output / "new-2"
    assert find("./last", output) == Path("last")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("new-3", "there is no session new-3", "did you mean new-2?"),
        ("zzz", "there is no session zzz", "idbg list names those in "),
        ("", "no session is named", "idbg list names those in "),
        ("a\0b", "there is no session", "idbg list names those in "),
        (".", "is not a session: it has no events.jsonl", "idbg list names those in "),
        ("../out/../../etc", "there is no session", "idbg list names those in "),
    ],
)
def test_what_is_no_session_is_said_with_what_there_is(output: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises(OutputError) as refused:
        find(text, output)
    assert message in refused.value.message and refused.value.hint.startswith(hint)


def test_a_name_does_not_lead_out_of_the_output_folder(output: Path) -> None:
    small_log(output.parent / "beside", at=3.0)
    assert named("old-1/../../beside", output) is None
    assert named("..", output) is None


def test_where_there_is_no_session_there_is_no_last_one(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no session in"):
        find("last", tmp_path / "nowhere")
