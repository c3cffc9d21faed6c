"""Explain fusion: why two nodes or kernels are not fused, and what is computed in more than one kernel.

From the scheduler's recorded decisions. A group is what it fused; a C++ kernel can hold several, each with
loops of its own.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from idbg.analysis.liveness import VIEWS
from idbg.analysis.ops import short_name
from idbg.analysis.provenance import Provenance
from idbg.schema.code import Kernel
from idbg.schema.decisions.inductor import FusionLog, Refusal, SchedulerOp
from idbg.schema.graphs import Graph, GraphId, NodeId, Part
from idbg.schema.runs import Run

Subject = NodeId | Kernel
Kind = Literal[
    "one",  # one group
    "one kernel",  # one C++ function, with loops for each
    "library",  # one of them is a call into a library
    "refused",  # the scheduler looked at both, and says why not
    "between",  # what lies between needs one, and the other needs that
    "apart",  # they have no buffer in common: the scheduler looks at no such pair
    "unlogged",  # they have, and still the scheduler logged nothing of them
    "elsewhere",  # they are in different graphs
    "nothing",  # one of them is computed by no op
    "cached",  # the scheduler did not run
    "none",  # there is no code of Inductor's
]


@dataclass(frozen=True)
class Answer:
    """Why two are not one. `one` and `other` are numbers of groups, -1 where there is none; `refusals` are of this
    pair; `between`: the groups on the way from one to the other; `shared`: buffers that both use.
    """

    kind: Kind
    frame: str = ""
    part: Part = ""
    one: int = -1
    other: int = -1
    refusals: tuple[Refusal, ...] = ()
    between: tuple[int, ...] = ()
    shared: tuple[str, ...] = ()


class Fusion:
    """What was decided of one graph, with what follows."""

    def __init__(self, run: Run, frame: str, part: Part, log: FusionLog) -> None:
        self.run, self.frame, self.part, self.log = run, frame, part, log
        self.ops = {op.name: op for op in log.ops}

    def group(self, number: int) -> list[SchedulerOp]:
        """The ops of a group."""
        return [self.ops[name] for name in self.log.groups[number] if name in self.ops]

    def nodes(self, number: int) -> list[str]:
        """The post-grad nodes that a group computes; one of a graph inside of it as "true_graph_0.sin"."""
        return list(dict.fromkeys(name for op in self.group(number) for name in _named(op)))

    @cached_property
    def of_node(self) -> dict[str, list[int]]:
        """Post-grad node -> the groups that compute it, or compute it again."""
        found: dict[str, list[int]] = {}
        for number in range(len(self.log.groups)):
            for name in self.nodes(number):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def kernels(self) -> list[Kernel | None]:
        """The kernel of each group: the one of whose calls one computes most of its nodes; of those the smallest."""
        code = self.run.codes.get((self.frame, self.part))
        calls = [(kernel, call) for kernel in code.kernels for call in kernel.calls] if code else []
        computing: dict[str, list[int]] = {}
        for at, (_, call) in enumerate(calls):
            for name in call.nodes:
                computing.setdefault(name, []).append(at)
        found: list[Kernel | None] = []
        for number in range(len(self.log.groups)):
            extern = any(op.kind == "extern" for op in self.group(number))
            computed = Counter(at for name in self.nodes(number) for at in computing.get(name, ()))
            fitting = [at for at in computed if (calls[at][0].language == "extern") == extern]
            best = max(fitting, key=lambda at: (computed[at], -len(calls[at][1].nodes), -at), default=None)
            found.append(calls[best][0] if best is not None else None)
        return found

    @cached_property
    def groups_in(self) -> Counter[str]:
        """How many groups each kernel holds, by its name."""
        return Counter(kernel.name for kernel in self.kernels if kernel is not None)

    @cached_property
    def refused(self) -> dict[int, list[Refusal]]:
        """Group -> the refusals that it is part of."""
        found: dict[int, list[Refusal]] = {}
        for refusal in self.log.refusals:
            for number in (refusal.one, refusal.other):
                found.setdefault(number, []).append(refusal)
        return found

    def shared(self, one: int, other: int) -> tuple[str, ...]:
        """The buffers that both read or write."""
        used = [{name for op in self.group(number) for name in (*op.reads, *op.writes)} for number in (one, other)]
        return tuple(sorted(used[0] & used[1]))

    @cached_property
    def readers(self) -> list[list[int]]:
        """Group -> the groups that read what it writes."""
        reads: dict[str, list[int]] = {}
        for number in range(len(self.log.groups)):
            for name in dict.fromkeys(name for op in self.group(number) for name in op.reads):
                reads.setdefault(name, []).append(number)
        written = ({name for op in self.group(at) for name in op.writes} for at in range(len(self.log.groups)))
        return [
            [*dict.fromkeys(reader for name in names for reader in reads.get(name, ()) if reader != at)]
            for at, names in enumerate(written)
        ]

    def between(self, one: int, other: int) -> tuple[int, ...]:
        """The groups on a way from one to the other, either way round, that is no direct step; empty where none is."""
        return self._way(one, other) or self._way(other, one)

    def _way(self, start: int, end: int) -> tuple[int, ...]:
        came: dict[int, int] = {}
        waiting = deque(number for number in self.readers[start] if number != end)
        came.update(dict.fromkeys(waiting, start))
        while waiting:
            here = waiting.popleft()
            for reader in self.readers[here]:
                if reader == end:
                    return _walked(came, here, start)
                if reader not in came and reader != start:
                    came[reader] = here
                    waiting.append(reader)
        return ()

    def recomputed(self) -> dict[str, list[int]]:
        """Node -> the groups that each compute it, where these are several. Views and constants cost nothing, and do
        not count; nor does the second half of a reduction that was split.
        """
        graph = self.run.graph(self.frame, "post_grad", self.part)
        gives = {buffer: _named(op)[-1] for op in self.log.ops if op.nodes for buffer in op.writes}
        found: dict[str, list[int]] = {}
        for name, numbers in self.of_node.items():
            if len(numbers) < 2 or graph is None or not _costs(graph, name):
                continue
            ops = ((number, op) for number in numbers for op in self.group(number) if name in _named(op))
            again = dict.fromkeys(number for number, op in ops if _computes(op, name, gives))
            if len(again) > 1:
                found[name] = list(again)
        return found

    def compared(self, one: int, other: int) -> Answer:
        """Why two groups are not one."""
        refusals = tuple(each for each in self.refused.get(one, ()) if other in (each.one, each.other))
        between, shared = self.between(one, other), self.shared(one, other)
        kernels = self.kernels[one], self.kernels[other]
        kind: Kind
        if one == other:
            kind = "one"
        elif kernels[0] is not None and kernels[0] is kernels[1] and kernels[0].language == "cpp":
            kind = "one kernel"
        elif "extern" in {op.kind for number in (one, other) for op in self.group(number)}:
            kind = "library"
        elif refusals:
            kind = "refused"
        elif between:
            kind = "between"
        else:
            kind = "unlogged" if shared else "apart"
        return Answer(kind, self.frame, self.part, one, other, refusals, between, shared)


def fusions(run: Run) -> Iterator[Fusion]:
    """The recorded decisions of each graph."""
    for (frame, part), log in run.decided.last(FusionLog).items():
        yield Fusion(run, frame, part, log)


def fusion_of(run: Run, frame: str, part: Part) -> Fusion | None:
    """The recorded decisions of this graph; None where the scheduler did not run."""
    log = run.decided.last(FusionLog).get((frame, part))
    return Fusion(run, frame, part, log) if log is not None else None


_LIKELIEST: tuple[Kind, ...] = ("one", "one kernel", "refused", "library", "between", "unlogged", "apart")


def why_not(run: Run, one: Subject, other: Subject) -> Answer:
    """Why these two, of whichever stages, are not one kernel. Of what is computed in several, the nearest answer."""
    places = [_lowest(run, subject) for subject in (one, other)]
    if not all(places):
        return Answer("nothing" if run.codes else "none")
    both = [key for key in places[0] if key in places[1]]
    if not both:
        return Answer("elsewhere")
    frame, part = both[0]
    found = fusion_of(run, frame, part)
    if found is None:
        return Answer("cached" if (frame, part) in run.codes else "none", frame, part)
    groups = [_groups(found, subject, at[frame, part]) for subject, at in zip((one, other), places, strict=True)]
    if not all(groups):
        return Answer("nothing", frame, part)
    answers = [found.compared(left, right) for left in groups[0] for right in groups[1]]
    return min(answers, key=lambda answer: _LIKELIEST.index(answer.kind))


def from_cache(run: Run) -> list[tuple[str, Part]]:
    """The graphs that have code and no recorded decisions: their code came from a cache."""
    return [key for key in run.codes if key not in run.decided.last(FusionLog)]


def _lowest(run: Run, subject: Subject) -> dict[tuple[str, Part], list[str]]:
    """The post-grad nodes that a subject is, by frame and part."""
    match subject:
        case Kernel():
            return {(subject.frame, subject.part): list(subject.nodes)}
        case NodeId(graph=GraphId(stage="post_grad")):
            return {(subject.graph.frame, subject.graph.part): [subject.name]}
        case _:
            pass
    provenance = Provenance(run)
    below = [graph for graph in run.graphs if graph.stage == "post_grad" and graph.frame == subject.graph.frame]
    found = {(each.frame, each.part): [node.name for node in provenance.counterparts(subject, each)] for each in below}
    return {key: names for key, names in found.items() if names}


def _groups(found: Fusion, subject: Subject, names: Iterable[str]) -> list[int]:
    if isinstance(subject, Kernel):
        return [at for at, kernel in enumerate(found.kernels) if kernel is not None and kernel.name == subject.name]
    return list(dict.fromkeys(number for name in names for number in found.of_node.get(name, ())))


def _walked(came: dict[int, int], here: int, start: int) -> tuple[int, ...]:
    way: list[int] = []
    while here != start:
        way.append(here)
        here = came[here]
    return tuple(way[::-1])


def _named(op: SchedulerOp) -> tuple[str, ...]:
    return tuple(f"{op.graph}.{name}" for name in op.nodes) if op.graph else op.nodes


def _computes(op: SchedulerOp, name: str, gives: dict[str, str]) -> bool:
    """Whether an op computes this node of its nodes, and reads neither its value nor the first half of its own.
    `gives`: what each buffer holds.
    """
    read = {gives[buffer] for buffer in op.reads if buffer in gives}
    return op.kind not in ("extern", "nop") and name not in read and _named(op)[-1] not in read


def _costs(graph: Graph, name: str) -> bool:
    node = graph.by_name.get(name)
    if node is None or not node.op.startswith("call") or not node.inputs:
        return False
    return short_name(node.target) not in (*VIEWS, "reshape", "getitem")
