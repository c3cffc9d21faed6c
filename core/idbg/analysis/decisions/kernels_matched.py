"""Match the kernels of two runs by what they compute: names and numbers differ from run to run.

A kernel computes nodes of its post-grad graph. A node is the same in both runs where both graphs have it by this name
and target; else it is what it came from in Dynamo's graph, which is the program's own.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from idbg.analysis.provenance import Provenance
from idbg.schema.code import Kernel
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run

How = Literal["same", "changed", "split", "merged", "regrouped", "gone", "new"]
"""What became of kernels: "changed": the same nodes by other code; "split": of one, several; "merged": of several, one;
"regrouped": several, of other nodes each; "gone" and "new": only one of the two runs has them.
"""

Frames = Mapping[str, str]
"""A frame of the first run, and which of the second it is."""


class KernelChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one kernel, or of several that compute the same. `what` says where code or language differ."""

    how: How
    before: tuple[Kernel, ...] = ()
    after: tuple[Kernel, ...] = ()
    what: str = ""


def matched(before: Run, after: Run, frames: Frames) -> list[KernelChange]:
    """Every kernel of both runs, in the order of the first run's; those that only the second has at the end."""
    found: list[KernelChange] = []
    seen: set[tuple[str, Part]] = set()
    for (frame, part), code in before.codes.items():
        there = after.codes.get((frames.get(frame, ""), part))
        if there is None:
            found += [KernelChange(how="gone", before=(kernel,)) for kernel in code.kernels]
            continue
        seen.add((there.frame, part))
        tokens = _Tokens(before, after, frame, there.frame, part)
        found += _in_code(
            {kernel.name: (kernel, tokens.of(kernel, tokens.before)) for kernel in code.kernels},
            {kernel.name: (kernel, tokens.of(kernel, tokens.after)) for kernel in there.kernels},
        )
    rest = (code for key, code in after.codes.items() if key not in seen)
    return [*found, *(KernelChange(how="new", after=(kernel,)) for code in rest for kernel in code.kernels)]


Named = dict[str, tuple[Kernel, frozenset[Hashable]]]


def _in_code(before: Named, after: Named) -> Iterator[KernelChange]:
    """Of one graph's code."""
    left, right = dict(before), dict(after)
    waiting: defaultdict[frozenset[Hashable], list[str]] = defaultdict(list)
    for name, (_, tokens) in right.items():
        waiting[tokens].append(name)
    pairs: dict[str, KernelChange] = {}
    for name, (kernel, tokens) in before.items():
        if tokens and waiting[tokens]:
            other, _ = right.pop(waiting[tokens].pop(0))
            del left[name]
            pairs[name] = _pair(kernel, other)
    groups = list(_joined(left, right))
    for group in groups:
        pairs |= {member.name: group for member in group.before}
    yielded: set[int] = set()
    for name in before:
        if id(pairs[name]) not in yielded:
            yielded.add(id(pairs[name]))
            yield pairs[name]
    yield from (group for group in groups if not group.before)


def _pair(kernel: Kernel, other: Kernel) -> KernelChange:
    what = _difference(kernel, other)
    return KernelChange(how="changed" if what else "same", before=(kernel,), after=(other,), what=what)


def _difference(kernel: Kernel, other: Kernel) -> str:
    if kernel.language != other.language:
        return f"{kernel.language} became {other.language}"
    if kernel.language == "extern":
        return "" if kernel.name == other.name else f"{kernel.name} became {other.name}"
    if _unnamed(kernel) != _unnamed(other):
        return "its source"
    launches = len(kernel.calls), len(other.calls)
    return "" if launches[0] == launches[1] else f"launched {launches[0]} times, then {launches[1]}"


def _unnamed(kernel: Kernel) -> str:
    """Its source without the names that Inductor numbers in the order in which it writes kernels."""
    return re.sub(rf"\b{re.escape(kernel.name)}\b", "KERNEL", kernel.source)


def _joined(left: Named, right: Named) -> Iterator[KernelChange]:
    """What is left on both sides, joined where they compute a node in common."""
    readers: defaultdict[Hashable, list[str]] = defaultdict(list)
    for name, (_, tokens) in right.items():
        for token in tokens:
            readers[token].append(name)
    owners: defaultdict[Hashable, list[str]] = defaultdict(list)
    for name, (_, tokens) in left.items():
        for token in tokens:
            owners[token].append(name)
    done_left: set[str] = set()
    done_right: set[str] = set()
    for name in left:
        if name in done_left:
            continue
        ours, theirs, waiting = [name], list[str](), [(name, True)]
        done_left.add(name)
        while waiting:
            here, is_left = waiting.pop()
            tokens = (left if is_left else right)[here][1]
            for other in dict.fromkeys(each for token in tokens for each in (readers if is_left else owners)[token]):
                done, found = (done_right, theirs) if is_left else (done_left, ours)
                if other not in done:
                    done.add(other)
                    found.append(other)
                    waiting.append((other, not is_left))
        yield _group(
            [left[each][0] for each in left if each in ours], [right[each][0] for each in right if each in theirs]
        )
    for name in right:
        if name not in done_right:
            yield KernelChange(how="new", after=(right[name][0],))


def _group(ours: list[Kernel], theirs: list[Kernel]) -> KernelChange:
    if not theirs:
        return KernelChange(how="gone", before=tuple(ours))
    how: How = "regrouped"
    if len(ours) == 1:
        how = "split" if len(theirs) > 1 else "changed"
    elif len(theirs) == 1:
        how = "merged"
    what = "computes other nodes" if how == "changed" else ""
    return KernelChange(how=how, before=tuple(ours), after=tuple(theirs), what=what)


class _Tokens:
    """What both runs call a node of the post-grad graph of one frame and part."""

    def __init__(self, before: Run, after: Run, frame: str, there: str, part: Part) -> None:
        self.before = Provenance(before), GraphId(frame, "post_grad", part)
        self.after = Provenance(after), GraphId(there, "post_grad", part)
        one, other = before.graphs.get(self.before[1]), after.graphs.get(self.after[1])
        targets = [{node.name: node.target for node in graph.nodes} if graph else {} for graph in (one, other)]
        self._common = {name for name, target in targets[0].items() if targets[1].get(name) == target}
        self._known = bool(one and other)

    def of(self, kernel: Kernel, side: tuple[Provenance, GraphId]) -> frozenset[Hashable]:
        """What the kernel computes; of one that computes nothing known, its name."""
        return frozenset(self._tokens(kernel.nodes, side)) or frozenset({("kernel", kernel.name)})

    def _tokens(self, names: Iterable[str], side: tuple[Provenance, GraphId]) -> Iterator[Hashable]:
        provenance, graph = side
        for name in names:
            if name in self._common or not self._known:
                yield name
                continue
            origins = provenance.counterparts(NodeId(graph, name), GraphId(graph.frame, "dynamo"))
            yield from (("dynamo", origin.name) for origin in origins)
            if not origins:
                yield ("only", name)
