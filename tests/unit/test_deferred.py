"""Of a long log what is large is left on disk, and reads as if it were in memory."""

from pathlib import Path

import pytest

from idbg.schema.runs import Run, fold
from idbg.session import deferred
from idbg.session.deferred import CodeInLog, GraphInLog
from idbg.session.importing import Import
from idbg.session.reading import load
from tests.harness.traces import recordings, unpacked


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deferred")
    importing = Import(unpacked(recordings("train")[0], folder / "trace"), folder / "out")
    importing.read()
    return importing.folder


def run_of(session: Path) -> Run:
    run = fold(load(session)).last
    assert run is not None
    return run


def test_it_reads_as_in_memory(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_of(session)
    monkeypatch.setattr(deferred, "WHOLE", 0)
    monkeypatch.setattr(deferred, "LOADED", 10_000)  # less than one graph: each is loaded anew
    left = run_of(session)
    assert all(isinstance(graph, GraphInLog) for graph in left.graphs.values())
    assert all(isinstance(code, CodeInLog) for code in left.codes.values())
    for key, graph in whole.graphs.items():
        there = left.graphs[key]
        assert there.nodes == graph.nodes and there.code == graph.code and there.by_name == graph.by_name
        assert there.users == graph.users and there == graph
    assert [code.text for code in left.codes.values()] == [code.text for code in whole.codes.values()]
    assert [kernel.source for kernel in left.kernels] == [kernel.source for kernel in whole.kernels]
    assert [links.pairs for links in left.links] == [links.pairs for links in whole.links]


def test_what_is_loaded_is_bounded(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "WHOLE", 0)
    monkeypatch.setattr(deferred, "LOADED", 10_000)
    run = run_of(session)
    graphs = list(run.graphs.values())
    first = graphs[0].nodes
    assert graphs[0].nodes is first  # just loaded
    for graph in graphs[1:]:
        assert graph.nodes
    assert graphs[0].nodes is not first and graphs[0].nodes == first
