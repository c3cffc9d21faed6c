"""Find the smallest script of a graph that fails: fewer nodes, then less of each, checked in a fresh process."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from idbg.engine.minify.candidates import CandidateBuilder
from idbg.engine.minify.oracle import Oracle
from idbg.engine.minify.problem import Problem, SuspectGraph
from idbg.engine.minify.running import RATE_TRIES
from idbg.engine.minify.search_base import Emit, ScriptSearch
from idbg.engine.minify.shrink import shrunk
from idbg.engine.repro.draft import Candidate, FailsCommand, Runs
from idbg.reduce.nodes import Flow, reduce_nodes
from idbg.schema.repros import Budget, Minified, OtherFailure, Signature

RATE_SECONDS, FEW_TRIES = 60.0, 3  # if RATE_TRIES take longer, the failure rate is estimated from fewer


class GraphSearch(ScriptSearch[Candidate]):
    """Searches the graphs of a problem."""

    def __init__(self, problem: Problem, oracle: Oracle, known: Path, budget: Budget, emit: Emit) -> None:
        super().__init__(oracle, known, budget, emit)
        self.problem, self.oracle = problem, oracle

    def search(self) -> None:
        fixed = self.problem.fixed
        if fixed is not None and isinstance(fixed.draft.check, Runs):  # nothing fails: only the script is wanted
            self._keep(fixed, len(fixed.draft.statements))
            return
        if fixed is not None:  # the failing node is known
            self.whole = 1
            self.tries.begin(fixed)
            if self.fails(fixed):
                self._keep(fixed, 1)
                self.minimal = True
        elif (begun := self._first()) is not None and not self.budget.first:
            self._fewer_nodes(*begun)
            self.minimal = True
        if self.oracle.best is not None and not self.budget.first:
            shrunk(self.oracle.best, self.fails, self.better, self.say)

    def better(self, candidate: Candidate) -> None:
        lines = sum(not line.lstrip().startswith("#") for line in candidate.draft.statements)
        self._keep(candidate, min(self.size, lines))

    def _keep(self, candidate: Candidate, size: int) -> None:
        self.size = size or self.size
        self.oracle.better(candidate)

    def ended(self, stopped: str) -> Minified:
        found = self.oracle.best is not None
        passes = self.problem.signature.kind == "none" or not (found or stopped or self.others)
        guarantee = _guarantee(self.minimal, stopped) if found or stopped else _other_failure(self.others)
        minified = self.minified(Signature("none") if passes else self.problem.signature, guarantee)
        self.say("a fresh process")
        minified = self.oracle.finished(minified, self.others)
        return replace(minified, seconds=self.tries.seconds)

    def _first(self) -> tuple[CandidateBuilder, frozenset[str]] | None:
        """The graph that fails, and the nodes to begin with; None if no graph fails."""
        graphs = self.problem.graphs
        self.whole = max(len(one.builder.flow.reads) for one in graphs)
        for graph in graphs:
            for suspects in graph.suspects:
                if self._begins(graph, suspects, "what the accused kernel computes"):
                    return graph.builder, graph.builder.flow.closed(suspects)
        for graph in graphs:
            self._set_exit_status(graph.builder)
            if self._begins(graph, graph.nodes, "the whole"):
                return graph.builder, graph.nodes
        return next(((graph.builder, graph.nodes) for graph in graphs if self._begins_at_times(graph)), None)

    def _set_exit_status(self, builder: CandidateBuilder) -> None:
        """Search for the exit status with which the user's command fails on the whole."""
        check = builder.template.check
        if isinstance(check, FailsCommand):
            status = self.exit_status(builder.candidate(frozenset(builder.flow.reads)))
            if status is not None:
                builder.template = dataclasses.replace(builder.template, check=FailsCommand(check.command, status))

    def _begins(self, graph: SuspectGraph, names: frozenset[str], doing: str) -> bool:
        self.say(doing, 1)
        kept = graph.builder.flow.closed(names)
        candidate = graph.builder.candidate(kept)
        self.tries.begin(candidate)
        if self.fails(candidate):
            self._keep(candidate, len(kept))
            return True
        return False

    def _begins_at_times(self, graph: SuspectGraph) -> bool:
        """Whether a whole graph that passed once fails in some of more tries."""
        whole = graph.builder.candidate(graph.nodes)
        judged = self.tries(whole)
        if judged.outcome != "passes":
            return False
        if not self.fails_at_times(whole, RATE_TRIES if judged.seconds * RATE_TRIES < RATE_SECONDS else FEW_TRIES):
            return False
        self.size = len(graph.nodes)
        return True

    def _fewer_nodes(self, builder: CandidateBuilder, kept: frozenset[str]) -> None:
        """Leave out nodes until each is needed."""
        whole = builder.flow
        reads = {
            name: tuple(read for read in whole.reads[name] if read in kept) for name in whole.reads if name in kept
        }
        reduced = reduce_nodes(
            Flow(reads, whole.bound & kept),
            lambda nodes: self._outcome(builder, nodes) == "same",
            better=lambda nodes: self._keep(builder.candidate(nodes), len(nodes)),
            doing=self.say,
            passes=lambda nodes: self._outcome(builder, nodes) == "passes",
        )
        if reduced.passing:
            lacks = tuple(name for name in reads if name in reduced.kept - reduced.passing)
            self.oracle.nearest(builder.candidate(reduced.passing), lacks)

    def _outcome(self, builder: CandidateBuilder, nodes: frozenset[str]) -> str:
        """The outcome of these nodes; "other" if no script can hold them."""
        try:
            candidate = builder.candidate(nodes)
        except ValueError:
            return "other"
        return self.tries(candidate).outcome


def _guarantee(minimal: bool, stopped: str) -> str:
    if minimal:
        rest = f"; it may still have plainer values or shapes: {stopped}" if stopped else ""
        return f"1-minimal: no single node can be left out{rest}"
    return f"not known to be minimal: {stopped}" if stopped else ""


def _other_failure(others: Sequence[OtherFailure]) -> str:
    return f"no graph shows it by itself: it fails otherwise there ({others[0].signature})" if others else ""
