"""A hostile session is written in every format, as text, and nothing lands outside of the files that were named."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from idbg import cli
from idbg.reports.documents import document, formats
from idbg.schema import event_log, events
from idbg.schema.programs import Program
from tests.harness.hostile import TEXT, happened


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """As it lies on disk, with a name of its own kind."""
    folder = tmp_path / "a session ]]> & <b> `x`"
    folder.mkdir()
    opened = events.SessionOpened(version="0.1.0", program=Program(f"{TEXT}.py"), folder="../../x")
    lines = (event_log.encode(event) + b"\n" for event in (opened, *happened()))
    (folder / "events.jsonl").write_bytes(b"".join(lines))
    return folder


@pytest.mark.parametrize("name", formats())
def test_every_format_tells_it(name: str, session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = Path(f"report{document(name).SUFFIXES[0]}")
    assert cli.main(["report", str(session), "-o", str(file)]) == 0
    assert sorted(tmp_path.rglob("*")) == sorted(
        (session, session / "events.jsonl", tmp_path / "here", file.absolute())
    )
    text = file.read_text(encoding="utf-8")
    assert "\x1b" not in text
    if name in ("json", "sarif"):
        json.loads(text)
    if name == "junit":
        ElementTree.fromstring(text)
    if name == "html":
        assert "<b onmouseover" not in text
