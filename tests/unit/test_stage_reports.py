"""Stages of other compilers in the command line's, the reports' and the protocol's answers, from a recorded session."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from idbg import cli
from idbg.reports import decisions
from idbg.schema.errors import BadInput
from idbg.schema.runs import Run, fold
from idbg.session.reading import read
from idbg.views import stages

RECORDING = Path(__file__).parents[1] / "recordings" / "foreign.jsonl"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "foreign"
    folder.mkdir()
    shutil.copy(RECORDING, folder / "events.jsonl")
    return folder


@pytest.fixture
def runs(session: Path) -> dict[int, Run]:
    return fold(read(session).events).runs


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = cli.main(list(arguments))
    return status, capsys.readouterr().out


def test_the_stages_are_listed_with_their_sizes_and_links(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(capsys, "stage", str(session), "--run", "1")
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert status == 0 and lines["flow"][1:3] == ["inference", "mlir"] and "69" in lines["flow"]
    assert list(lines)[2:] == [
        *("torch", "input", "global-optimization", "flow", "stream", "executable-sources", "executable-targets"),
        *("hal", "vm"),
    ]


def test_a_stage_is_printed_with_the_nodes_of_its_lines(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(capsys, "stage", str(session), "flow", "--run", "1")
    (line,) = [line for line in text.splitlines() if "linalg.softmax" in line]
    assert status == 0 and line.endswith("← _softmax")


def test_a_stage_as_json_has_its_text_and_links(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(capsys, "stage", str(session), "after transformations", "--json")
    report = json.loads(text)
    assert status == 0 and report["schema"] == "idbg.stage/1" and report["run"] == 3
    assert report["stage"]["text"].startswith("<?xml") and report["stage"]["graph"]["stage"] == "dynamo"
    assert ["hidden", "relu"] in [link["nodes"] for link in report["stage"]["links"]]


def test_the_sessions_json_has_every_stage_with_text_and_links(runs: dict[int, Run]) -> None:
    first = msgspec.to_builtins(stages.as_json(runs[1]))[0]
    assert (first["compiler"], first["name"], first["origin"]) == ("iree", "torch", "dump")
    assert first["text"] and first["links"]
    assert isinstance(decisions.as_json("stages", runs[1]), list)


def test_a_stage_whose_text_is_a_file_that_is_gone_says_so(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(capsys, "stage", str(session), "executable-targets", "--run", "2")
    assert status == 0 and "its text cannot be read: No such file or directory" in text


@pytest.mark.parametrize(
    ("name", "why"), [("exec", "2 stages have 'exec' in their name"), ("nonsense", "there is no stage 'nonsense'")]
)
def test_a_name_that_means_none_or_several_is_a_sentence(runs: dict[int, Run], name: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        stages.named(runs[1], name)


def test_a_unique_part_of_a_name_is_enough(runs: dict[int, Run]) -> None:
    assert stages.named(runs[1], "global").name == "global-optimization"
    assert stages.named(runs[1], "iree: vm").name == "vm"


def test_a_run_without_stages_says_how_one_gets_some(runs: dict[int, Run]) -> None:
    runs[1].let_go()
    section = stages.view(runs[1])
    assert section.summary == stages.NOTHING and section.count == 0


def test_the_protocols_tool_answers_a_page_of_a_stage(session: Path) -> None:
    from idbg.mcp import tools
    from idbg.mcp.command import Done
    from idbg.mcp.tools import stage

    run = fold(read(session).events).runs[1]
    found = stages.named(run, "flow")
    report = json.loads(msgspec.json.encode(stages.listing(run, found, found.text)))
    answer = stage.summarize(stage.Arguments(name="flow"), Done((), report, 0, ""))
    assert answer.summary.startswith("iree: flow: lines 1 to ") and "first_line=" in answer.more
    assert "← addmm" in str(answer.facts["text"])
    last = json.loads(msgspec.json.encode(stages.listing(run, found, found.text)))
    with pytest.raises(BadInput, match="has no line 9,999"):
        stage.summarize(stage.Arguments(name="flow", first_line=9999), Done((), last, 0, ""))
    every = json.loads(msgspec.json.encode(stages.listing(run)))
    assert tools.tools()["stage"].summarize(stage.Arguments(), Done((), every, 0, "")).summary == "9 stages"
