"""Show what the nodes of one module come to: findings, kernels, time, memory, error, and what crosses its border."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.outline import ModuleHeading
from idbg.analysis.provenance import Provenance
from idbg.checking.tally import Tally
from idbg.constraints import Findings
from idbg.format.amounts import NOT_MEASURED, and_unsized, counted, few, figure, size
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.diff import DiffReport
from idbg.schema.graphs import Graph, Node
from idbg.schema.kernel_times import KernelTime
from idbg.schema.violations import Severity
from idbg.views import kernel_times
from idbg.views.facts import Launch, dotted, fact, value_size
from idbg.views.graphs import op_of
from idbg.views.tree import Place, Row, Section, kernel_refs

LARGEST = 5_000
"""Nodes of a module that are looked at one by one: each key press waits for it."""
_MOST = 8  # rows of one label
_OPS = 6


class ModuleContext(NamedTuple):
    """A module of a graph, and what is known of its nodes. `launches` are those of its first `LARGEST` nodes; `report`
    is a comparison of this run. `keys`: the reader can press keys that measure what is not known.
    """

    graph: Graph
    heading: ModuleHeading
    findings: Findings
    has_kernels: bool = False
    launches: Sequence[Launch] = ()
    memory: MemoryProfile | None = None
    report: DiffReport | None = None
    keys: bool = False

    @property
    def nodes(self) -> Sequence[Node]:
        """Its nodes in the graph's order, at most `LARGEST`."""
        return self.graph.nodes[self.heading.first : self.heading.last][:LARGEST]

    def calls(self, provenance: Provenance) -> list[tuple[Kernel, KernelCall]]:
        """The calls of kernels that compute those nodes, each once."""
        uses = (use for node in self.nodes for use in provenance.kernels_of(self.graph.node_id(node.name)))
        by_call = {(kernel.frame, kernel.part, kernel.name, call.line): (kernel, call) for kernel, call in uses}
        return list(by_call.values())

    @property
    def part(self) -> str:
        """Which of its nodes those are, if not all."""
        return f" in its first {LARGEST:,} nodes" if self.heading.last - self.heading.first > LARGEST else ""

    @property
    def totals(self) -> "ModuleTotals":
        """What its launches come to."""
        return ModuleTotals(self.launches)


class ModuleTotals:
    """What the launches that compute a module's nodes come to together."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._launches = launches

    @cached_property
    def by_kernel(self) -> list[list[Launch]]:
        """The launches of each kernel, those of the slowest first, else in the order of the launches."""
        of_kernel: dict[tuple[str, ...], list[Launch]] = {}
        for each in self._launches:
            of_kernel.setdefault(kernel_refs(each.kernel), []).append(each)
        return sorted(of_kernel.values(), key=lambda launches: ModuleTotals(launches).microseconds or 0.0, reverse=True)

    @cached_property
    def times(self) -> list[KernelTime]:
        """Those of the launches that were timed."""
        return [each.time for each in self._launches if each.time is not None]

    @cached_property
    def microseconds(self) -> float | None:
        """How long they take in a run; None where none was timed."""
        return sum(time.run_us for time in times) if (times := self.times) else None

    @cached_property
    def worst(self) -> Launch | None:
        """The observed launch whose own error is largest; None where none was observed."""
        return max(self._observed, key=lambda each: (each.error and each.error.error) or 0.0, default=None)

    @cached_property
    def wrong(self) -> int:
        """How many launches are wrong by themselves."""
        return sum(bool(each.error and each.error.bad) for each in self._observed)

    @property
    def _observed(self) -> Iterator[Launch]:
        return (each for each in self._launches if each.error is not None and each.error.observed)


NO_TOTALS = ModuleTotals(())
"""Of a module that no kernel computes."""


def view(about: ModuleContext) -> Section:
    """Its totals, then what crosses its border."""
    known = facts(about)
    return Section("Module", "", len(known), body=known)


def facts(about: ModuleContext) -> tuple[Row, ...]:
    """The rows of the section."""
    return (
        *_what(about),
        *_findings(about),
        *_kernels(about),
        *_memory(about),
        *_error(about),
        *_where(about.nodes),
        *_inside(about),
        *_border(about),
    )


def _what(about: ModuleContext) -> Iterator[Row]:
    heading = about.heading
    yield fact("module", dotted(heading.key, heading.kind, str(about.graph.id)), "strong")
    ops = Counter(map(op_of, about.nodes))
    most = [f"{op} {count:,}" for op, count in ops.most_common()]
    yield fact("nodes", dotted(f"{heading.last - heading.first:,}", few(most, _OPS)) + about.part)
    yield from _alike(about)


def _alike(about: ModuleContext) -> Iterator[Row]:
    """The modules that do the same, and each node that does not make the same tensors."""
    heading, nodes = about.heading, about.graph.nodes
    if not heading.twin:
        if heading.alike:
            yield fact("alike", f"{counted(heading.alike, 'module')} from here on do the same")
        return
    each = f"{counted(heading.alike, 'module')}, each " if heading.alike else ""
    same = "but for these nodes" if heading.differing else "and shapes and dtypes"
    yield fact("alike", f"{each}the same operators as {heading.twin}, {same}")
    length = (heading.last - heading.first) // max(heading.alike, 1)
    for number, index in enumerate(heading.differing[:_MOST]):
        node, before = nodes[index], nodes[heading.model + (index - heading.first) % length]
        text = f"{node.name}  {_values(node)}; {before.name} in {heading.twin}: {_values(before)}"
        yield fact("" if number else "differ", text, node=about.graph.node_id(node.name))
    if len(heading.differing) > _MOST:
        yield fact("", f"and {counted(len(heading.differing) - _MOST, 'other node')}", "dim")


def _values(node: Node) -> str:
    return ", ".join(f"{tensor}{f' stride {tensor.stride}' if tensor.stride else ''}" for tensor in node.tensors)


def _findings(about: ModuleContext) -> Iterator[Row]:
    """Each severity with its rules; a rule leads to the first node that breaks it."""
    heading, graph = about.heading, about.graph
    counts = Tally(about.findings).within(heading.first, heading.last)
    if not counts:
        yield fact("findings", "no rule is broken", "dim")
    by_rule: dict[tuple[Severity, str], list[int]] = {}
    for group in about.findings.groups if counts else ():
        here = [index for index in group.nodes if heading.first <= index < heading.last]
        if here:
            by_rule.setdefault((group.rule.severity, group.rule.name), []).extend(here)
    for severity, count in counts.items():
        yield fact(f"{SEVERITY_SIGNS[severity]} {severity}", counted(count, "violation"), severity)
        for (of, rule), indices in by_rule.items():
            if of == severity:
                first = graph.nodes[min(indices)].name
                yield fact("", f"{rule}  {len(indices):,}, first {first}", node=graph.node_id(first))


def _kernels(about: ModuleContext) -> Iterator[Row]:
    """How many kernels compute its nodes and how long they take together; each kernel, the slowest first."""
    if not about.has_kernels:
        return
    if not about.launches:
        yield fact("kernels", f"none computes a node of it{about.part}", "dim")
        return
    ordered = about.totals.by_kernel
    yield fact("kernels", dotted(counted(len(ordered), "kernel"), counted(len(about.launches), "launch")) + about.part)
    for launches in ordered[:_MOST]:
        took = kernel_times.sum_words(times) if (times := ModuleTotals(launches).times) else ""
        many = counted(len(launches), "launch") if len(launches) > 1 else ""
        yield fact("", "  ".join(filter(None, (launches[0].kernel.name, dotted(many, took)))), launch=launches[0])
    if len(ordered) > _MOST:
        yield fact("", f"and {counted(len(ordered) - _MOST, 'other kernel')}", "dim")
    yield from _time(about)


def _time(about: ModuleContext) -> Iterator[Row]:
    times = about.totals.times
    if not times:
        yield fact("time", NOT_MEASURED + (": R times each kernel" if about.keys else ""), "dim")
    else:
        left = len(about.launches) - len(times)
        untimed = f"; {counted(left, 'launch')} {NOT_MEASURED}" if left else ""
        yield fact("time", f"{kernel_times.sum_words(times)}, with what the kernels compute beside it{untimed}")


def _memory(about: ModuleContext) -> Iterator[Row]:
    """The most that is in memory while it runs, beside the graph's peak; what it makes, and the weights it reads."""
    profile, heading, graph = about.memory, about.heading, about.graph
    if profile is not None:
        live = profile.live_bytes[heading.first : heading.last]
        most = max(live, default=0)
        at = graph.nodes[heading.first + live.index(most)].name if live else ""
        unsized = "at least " if profile.unsized else ""
        of = "the graph's peak" if most == profile.peak_bytes else f"the graph's peak is {size(profile.peak_bytes)}"
        yield fact("memory", f"{at}  {unsized}{size(most)} live while it runs; {of}", node=graph.node_id(at))
    weights = [node for node in _read_from_outside(about) if node.role in ("weight", "buffer")]
    if weights:
        known = [node.tensor.nbytes if node.tensor else None for node in weights]
        total = and_unsized(sum(nbytes or 0 for nbytes in known), known.count(None))
        yield fact("weights", dotted(counted(len(weights), "tensor"), total) + about.part)


def _error(about: ModuleContext) -> Iterator[Row]:
    """The launch whose own error is largest, and how many are wrong by themselves."""
    if not about.launches:
        return
    if about.report is None or not about.report.kernels:
        yield fact("error", "not compared" + (": D compares each kernel" if about.keys else ""), "dim")
        return
    totals = about.totals
    launch, bad = totals.worst, totals.wrong
    if launch is None or launch.error is None:
        yield fact("error", "none of its kernels was observed", "dim")
        return
    wrong = f"{counted(bad, 'launch')} wrong by itself; " if bad else ""
    text = f"{wrong}at most {figure(launch.error.error or 0.0)} of a kernel's RMS: {launch.kernel.name}"
    yield fact("error", text, "reject" if bad else "", launch=launch)


def _where(nodes: Sequence[Node]) -> Iterator[Row]:
    first = next((node for node in nodes if node.file), None)
    if first is not None:
        yield fact("from", first.code.strip(), place=Place(first.file, first.line), placed=True)


def _inside(about: ModuleContext) -> Iterator[Row]:
    """The modules right below it, with their first nodes."""
    path = f"{about.heading.path}."
    firsts: dict[str, Node] = {}
    counts: Counter[str] = Counter()
    for node in about.nodes:
        if node.module.startswith(path):
            name = node.module[len(path) :].partition(".")[0]
            firsts.setdefault(name, node)
            counts[name] += 1
    for number, (name, node) in enumerate([*firsts.items()][:_MOST]):
        kind = node.module_class if node.module == path + name else ""
        text = "  ".join((name, dotted(kind, counted(counts[name], "node"))))
        yield fact("" if number else "modules", text, node=about.graph.node_id(node.name))
    if len(firsts) > _MOST:
        yield fact("", f"and {counted(len(firsts) - _MOST, 'other module')}", "dim")


def _read_from_outside(about: ModuleContext) -> list[Node]:
    by_name = about.graph.by_name
    own = {node.name for node in about.nodes}
    outside = dict.fromkeys(name for node in about.nodes for name in node.inputs if name not in own)
    return [by_name[name] for name in outside if name in by_name]


def _border(about: ModuleContext) -> Iterator[Row]:
    """The values that it reads from outside, without weights, and those of its own that are read outside."""
    if about.part:
        return
    own = {node.name for node in about.nodes}
    reads = [node for node in _read_from_outside(about) if node.role not in ("weight", "buffer")]
    returned = [node for node in about.nodes if any(user not in own for user in about.graph.users.get(node.name, ()))]
    for label, nodes in (("reads", reads), ("returns", returned)):
        for number, node in enumerate(nodes[:_MOST]):
            value = "  ".join(filter(None, (node.name, dotted(str(node.tensor or ""), value_size(node)))))
            yield fact("" if number else label, value, node=about.graph.node_id(node.name))
        if len(nodes) > _MOST:
            yield fact("", f"and {counted(len(nodes) - _MOST, 'other value')}", "dim")
