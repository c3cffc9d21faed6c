"""`idbg analyze`: what the compiler decided, of a program or of a saved session; and --fail-on for machines."""

import json
import shutil
from pathlib import Path

import pytest

from idbg import cli
from idbg.reports import decisions
from idbg.schema import events
from idbg.schema.runs import Run, fold
from tests.harness.recorded import RECORDINGS, log

BREAKS = """
import torch

@torch.compile
def f(x, n):
    y = x + n
    print("here")
    return y * 2

for n in (2, 3):
    f(torch.ones(4), n)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def a_run(recording: str = "mlp_train") -> Run:
    """A run that was recorded."""
    history = fold(log(recording))
    assert history.last is not None
    return history.last


@pytest.mark.parametrize("name", decisions.TYPES)
def test_each_type_tells_a_run_that_was_recorded_as_lines_and_as_json(name: str) -> None:
    run = a_run()
    assert all(isinstance(line, str) for line in decisions.text(name, run))
    from idbg.schema.strict_json import encode

    json.loads(encode(decisions.as_json(name, run)))


@pytest.mark.parametrize("name", decisions.TYPES)
def test_each_type_tells_a_run_in_which_nothing_was_compiled(name: str) -> None:
    run = Run(1, a_run().program, a_run().target, 0.0)
    run.apply(events.RunEnded(run=1, verdict="empty", seconds=1.0))
    assert list(decisions.text(name, run)), "an empty answer is no answer"


def test_graphs_are_told_by_frame_with_the_ops_that_they_have() -> None:
    graphs = decisions.as_json("graphs", a_run())
    assert isinstance(graphs, list)
    forward = next(graph for graph in graphs if graph["stage"] == "forward")
    assert forward["ops"]["addmm"] == 2 and forward["nodes"] > 4


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_program_its_session_and_what_must_not_happen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "breaks.py").write_text(BREAKS)
    assert cli.main(["analyze", "breaks.py", "--type", "summary", "--type", "graphs"]) == 0
    told = capsys.readouterr().out
    assert "1 recompile" in told and "\ngraphs\n" in told
    (session,) = Path("debug_artifacts").glob("breaks-*")
    assert cli.main(["analyze", str(session), "--json", "--fail-on", "break", "--fail-on", "recompile"]) == 1
    report = capsys.readouterr()
    assert json.loads(report.out)["summary"]["recompiles"] == 1
    assert "idbg: break: breaks.py:7: " in report.err
    assert report.err.count("idbg: recompile: ") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_why_two_nodes_are_not_one_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.py").write_text(
        "import torch\n\ndef f(x):\n    return (x @ x).sin()\n\ntorch.compile(f)(torch.ones(5, 5))\n"
    )
    asked = ["analyze", "model.py", "--backend", "inductor", "--option", "fx_graph_cache=false"]
    assert cli.main([*asked, "--nodes", "mm", "sin"]) == 0
    assert (
        "mm and sin:\nnot fused: one of them is a library call, which Inductor does not fuse" in capsys.readouterr().out
    )
    (session,) = map(str, Path("debug_artifacts").glob("model-*"))
    assert cli.main(["analyze", session, "--nodes", "sin", "nobody", "--json"]) != 0
    assert "the run has no node or kernel nobody" in capsys.readouterr().err
    assert cli.main(["analyze", session, "--nodes", "sin", "mm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pair"]["answer"]["kind"] == "library"


def test_a_folder_that_is_no_session_is_refused_in_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    assert cli.main(["analyze", "empty"]) != 0
    assert capsys.readouterr().err.startswith("idbg: ")


@pytest.mark.parametrize("direction", ["up", "down"])
def test_rows_are_sorted_by_the_column_that_is_named(
    direction: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = folder / "session"
    session.mkdir()
    shutil.copy(RECORDINGS / "resnet.jsonl", session / "events.jsonl")
    assert cli.main(["analyze", str(session), "--type", "constraints", "--sort", f"count:{direction}"]) == 0
    _, _, modules = capsys.readouterr().out.partition("\nmodule")
    counts = [int(line.split()[-1]) for line in modules.splitlines()[1:] if line.split()[-1:][0].isdigit()]
    assert len(set(counts)) > 1 and counts == sorted(counts, reverse=direction == "down")
    for wrong, hint in (("speed", "the columns are"), ("nodes", "name a table")):
        types = ["--type", "constraints"] if wrong == "speed" else []
        assert cli.main(["analyze", str(session), *types, "--sort", wrong]) == 2
        assert hint in capsys.readouterr().err
