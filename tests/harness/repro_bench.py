"""A program compiled in this process, and repros of it, run here: a fresh process for each would take minutes."""

import contextlib
import io
import logging
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch._inductor import config

from idbg.schema import events
from idbg.schema.graphs import Graph, Node, Stage
from idbg.schema.programs import Program, Target
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, WriteRepro

ANY_DTYPE = '[[rules]]\nkind = "dtype"\nallowed = ["float8_e5m2"]\n'  # which every node breaks
HEAD = "import torch\ntorch.manual_seed(0)\n"


class Bench:
    def __init__(self, folder: Path, text: str, rules: str = ANY_DTYPE, **target: Any) -> None:
        self.folder = folder
        self.rules = rules
        self.told: list[events.SessionEvent] = []
        self.jobs = Jobs(self.told.append)
        path = folder / "subject.py"
        path.write_text(HEAD + text)
        made = Target(**{"rules": rules, "backend": "mock", **target})
        with contextlib.redirect_stdout(io.StringIO()):
            request = Compile(1, Program(str(path), cwd=str(folder)), made, str(folder / "repros"))
            self.ended = self.compiled(request)

    def compiled(self, request: Compile) -> events.RunEnded:
        return self.jobs.compile(request)

    def graph(self, stage: Stage) -> Graph:
        graphs = (graph for frame in self.jobs.last.frames.values() for graph in frame.graphs.values())
        return next(graph for graph in graphs if graph.id.stage == stage)

    def script(self, graph: Graph | None = None, node: Node | None = None, rule: str = "dtype") -> Path:
        """The repro of one node's violation; with none, of the failed compile."""
        chosen = graph.node_id(node.name) if graph and node else None
        return self.jobs._write(WriteRepro(1, str(self.folder / "repros"), chosen, rule if chosen else ""))


def run(script: Path) -> tuple[object, str]:
    """Its exit status, and what it printed, with the warnings that Python prints where nobody set logging up."""
    torch._dynamo.reset()
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        _logged(logging.StreamHandler(out)),
        config.patch(force_disable_caches=config.force_disable_caches),  # a script may set it for its own process
    ):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            return end.code, out.getvalue()
    return None, out.getvalue()


@contextlib.contextmanager
def _logged(handler: logging.Handler) -> Iterator[None]:
    """pytest sets logging up, so Python's handler of last resort prints nothing in a test."""
    log = logging.getLogger("idbg")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
