"""Show what was fused into each kernel, what was not and why, what each kernel does, and what is computed twice."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

from idbg.analysis.decisions.fusion import Answer, Fusion, Subject, from_cache, fusion_of, fusions, why_not
from idbg.analysis.decisions.kernel_facts import Buffer, KernelFacts, kernel_facts
from idbg.format.amounts import and_unsized, counted, few
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.schema.code import Kernel
from idbg.schema.decisions.inductor import JUDGED, SILENT, FusionLog, Refusal
from idbg.schema.errors import BadInput
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run
from idbg.views import records
from idbg.views.frame_graphs import compile_words, nodes_of
from idbg.views.tree import (
    NO_OPTIONS,
    Cell,
    Column,
    Options,
    Refs,
    Row,
    Section,
    Table,
    kernel_refs,
    words,
)

TITLE = "Fusion"
NONE = "no fusion: nothing was compiled, or the backend makes no Inductor kernels"
NOT_RECORDED = "fusion decisions unknown: the code came from a cache, so the scheduler did not run (--cold runs it)"
_NAMES = 6  # in a line
_MANY = 40  # kernels of a graph from which each is folded on the screen at first
_COLUMNS = (
    Column("loops", "count", 1),
    Column("loads", "count", 2),
    Column("stores", "count", 2),
    Column("reads", "bytes", 3),
    Column("writes", "bytes", 3),
    Column("not fused", "count", 4),
)
_MEANINGS = (
    ("memory deps did not match", "the second reads the buffer at other indices than the first writes it"),
    ("intermediate nodes between", "another kernel must run between them"),
    ("will create cycle", "the fused kernel would depend on its own result (a cycle)"),
    ("no shared data due to indexing", "both use the same buffer, but with different indexing, so no load is shared"),
    ("no shared data", "they share no loads, so fusing saves no memory traffic"),
    ("exceeds max fusion", "the fused kernel would have more ops than max_fusion_size allows"),
    ("Fusion will increase peak memory", "the fused kernel would raise peak memory"),
    ("score_fusion_memory_threshold", "fusing would save less memory traffic than score_fusion_memory_threshold"),
    ("Nodes are too far away", "many kernels run between them, so fusing would keep buffers alive longer"),
    ("fusion_prevent_too_many", "the fused kernel would use more buffers than max_fusion_unique_io_buffers allows"),
    ("numel/rnumel mismatch", "different loop ranges"),
    ("nodes numel", "different loop ranges"),
    ("tiling mismatch", "incompatible tilings"),
    ("invalid tiling for reduction", "the loop of one cannot be tiled as the other's reduction requires"),
    ("node1 is extern", "the first is a library call, which is never fused"),
    ("node2 is extern", "the second is a library call, which is never fused"),
    ("node1 must go before node2", "the first depends on the second"),
    ("template epilogue not satisfied", "the template does not accept this op as its epilogue (epilogue_fusion)"),
    ("prologue", "the template does not accept this op as its prologue (prologue_fusion)"),
    ("device mismatch", "they run on different devices"),
    ("fusion for buffer explicit disabled", "the program or a pass disables fusion for this buffer"),
    ("Split scan", "a split scan is never fused with a reduction"),
    (JUDGED, "legal, but the fused kernel was measured slower, or the layouts conflict (torch does not report which)"),
)


@dataclass(frozen=True)
class _Graph:
    """One graph's code; `fusion` is None where the scheduler did not run."""

    run: Run
    frame: str
    part: Part
    fusion: Fusion | None

    @cached_property
    def twice(self) -> frozenset[str]:
        """The nodes that are computed more than once."""
        return frozenset(self.fusion.recomputed()) if self.fusion is not None else frozenset()

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """Kernel -> the groups that it computes, by their numbers."""
        return by_kernel(self.fusion) if self.fusion is not None else {}


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a graph; below it each kernel with what it does, its nodes, and what it was not fused with."""
    if not run.codes:
        return Section(TITLE, NONE)
    graphs = [_Graph(run, found.frame, found.part, found) for found in recorded(run)]
    graphs += [_Graph(run, frame, part, None) for frame, part in from_cache(run)]
    kernels = sum(len(kernels_in(run, each.frame, each.part)) for each in graphs)
    summary = f"{counted(kernels, 'kernel')}, {counted(count(run), 'pair')} not fused"
    return Section(TITLE, summary, count(run), "ok", (Table(_COLUMNS, list(map(_graph, graphs)), "kernel"),))


def count(run: Run) -> int:
    """Pairs whose fusion was rejected."""
    return sum(len({(each.one, each.other) for each in log.refusals}) for log in run.decided.last(FusionLog).values())


def recorded(run: Run) -> Iterator[Fusion]:
    """What was decided of each graph; what follows from it takes time, and is computed once."""
    for found in fusions(run):
        yield _once(_Same(found))


class _Same:
    """A graph's fusion, the same as long as its log and code are."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self._of = fusion.log, fusion.run.codes.get((fusion.frame, fusion.part))

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._of)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and all(
            one is another for one, another in zip(self._of, other._of, strict=True)
        )


@lru_cache(maxsize=200)
def _once(same: _Same) -> Fusion:
    return same.fusion


def _graph(graph: _Graph) -> Row:
    known = graph.run.frames.get(graph.frame)
    text = headline(graph.fusion) if graph.fusion is not None else ""
    return Row(
        ("graph", graph.frame, graph.part),
        (*compile_words(graph.run, graph.frame, graph.part), *words((f"  {text}", "dim") if text else "")),
        rows=partial(_in_graph, graph),
        open="all",
        refs=Refs(frame=graph.frame, file=known.file if known else "", line=known.line if known else 0),
        opens="fold",
        copied=text,
    )


def _in_graph(graph: _Graph) -> Iterator[Row]:
    key = ("graph", graph.frame, graph.part)
    if graph.fusion is None:
        at = graph.run.graph(graph.frame, "post_grad", graph.part)
        called = tuple(at.node_id(node.name) for node in at.nodes if node.op.startswith("call")) if at else ()
        text = records.why(graph.run, "fusion") or NOT_RECORDED
        yield Row((key, "unknown"), words((text, "fallback")), refs=Refs(nodes=called, frame=graph.frame))
    kernels = kernels_in(graph.run, graph.frame, graph.part)
    for number, kernel in enumerate(kernels):
        yield _kernel_row(graph, kernel, number, many=len(kernels) > _MANY)
    for number, (line, names) in enumerate(recomputed(graph.fusion) if graph.fusion is not None else ()):
        shown = words((f"{SEVERITY_SIGNS['fallback']} {line}", "fallback"))
        nodes = nodes_of(graph.run, graph.frame, graph.part, names)
        yield Row((key, "twice", number), shown, refs=Refs(nodes=nodes, frame=graph.frame), opens="node")


def _kernel_row(graph: _Graph, kernel: Kernel, number: int, *, many: bool) -> Row:
    """A kernel; below it what it does, its nodes, and what it was not fused with."""
    key = ("kernel", kernel.frame, kernel.part, kernel.name, number)
    facts = kernel_facts(graph.run, kernel)
    again = sum(name in graph.twice for name in dict.fromkeys(kernel.nodes))
    extern = facts.language == "extern"
    own = (Cell(""),) * 3 if extern else (Cell(facts.nests), Cell(facts.loads), Cell(facts.stores))
    return Row(
        key,
        words(
            (kernel.name, "strong"),
            (f"  {counted(len(set(kernel.nodes)), 'node')}", "dim"),
            (f"  {SEVERITY_SIGNS['fallback']} {again} computed again" if again else "", "fallback"),
        ),
        (
            *own,
            *(_bytes(graph, kernel, buffers) for buffers in (facts.reads, facts.writes)),
            Cell(_not_fused(graph, kernel)),
        ),
        rows=partial(_in_kernel, graph, kernel, facts, key),
        open="text" if many else "all",
        refs=Refs(frame=kernel.frame, kernel=kernel_refs(kernel)),
        opens="kernel",
    )


def _not_fused(graph: _Graph, kernel: Kernel) -> int | None:
    """With how many groups of others; None where that is not known."""
    groups = graph.groups.get(kernel.name, [])
    if graph.fusion is None or not groups:
        return None
    refusals = [refusal for group in groups for refusal in graph.fusion.refused.get(group, ())]
    return len({other for refusal in refusals for other in (refusal.one, refusal.other)} - set(groups))


def _bytes(graph: _Graph, kernel: Kernel, buffers: Sequence[Buffer]) -> Cell:
    """Nothing where it is not known what the kernel computes."""
    at = graph.run.graph(kernel.frame, "post_grad", kernel.part)
    if at is None or not any(name in at.by_name for name in kernel.nodes):
        return Cell(None)
    known = [buffer.nbytes for buffer in buffers if buffer.nbytes is not None]
    return Cell(sum(known) if len(known) == len(buffers) else None)


def _in_kernel(graph: _Graph, kernel: Kernel, facts: KernelFacts, key: tuple[object, ...]) -> Iterator[Row]:
    yield Row((*key, "facts"), words((facts_words(facts), "dim")))
    groups = graph.groups.get(kernel.name, [])
    if graph.fusion is None or not groups:
        for name in dict.fromkeys(kernel.nodes):
            yield _node(graph, kernel, name, (*key, name))
        return
    for group in groups:
        loops = loops_words(graph.fusion, group)
        yield Row(
            (*key, "group", group),
            words((loops, "accent"), (f"  {_few(graph.fusion.nodes(group))}", "dim")),
            rows=[_node(graph, kernel, name, (*key, group, name)) for name in graph.fusion.nodes(group)],
            open="screen",
            refs=Refs(frame=kernel.frame),
            opens="fold",
            copied=loops,
        )
    for number, line in enumerate(tried_lines(graph.fusion, groups)):
        yield Row((*key, "tried", number), words(f"{SEVERITY_SIGNS['slow']} {line}"))


def _node(graph: _Graph, kernel: Kernel, name: str, key: tuple[object, ...]) -> Row:
    at = GraphId(kernel.frame, "post_grad", kernel.part)
    known = graph.run.graphs[at].by_name.get(name) if at in graph.run.graphs else None
    again = f"  {SEVERITY_SIGNS['fallback']} computed in other kernels too" if name in graph.twice else ""
    return Row(
        key,
        words(name, (f"  {known.target}" if known is not None else "", "dim"), (again, "fallback")),
        refs=Refs(
            nodes=(NodeId(at, name),) if known is not None else (),
            frame=kernel.frame,
            file=known.file if known is not None else "",
            line=known.line if known is not None else 0,
        ),
        opens="node" if known is not None else "",
        copied=name,
    )


def as_json(run: Run) -> object:
    """Of each graph all that was decided; of each kernel what it does."""
    return {
        "graphs": [
            {
                "frame": found.frame,
                "part": found.part,
                "log": found.log.facts("part"),
                "kernels": [kernel.name if kernel else "" for kernel in found.kernels],
                "recomputed": {
                    name: [_name(found, number) for number in numbers] for name, numbers in found.recomputed().items()
                },
            }
            for found in fusions(run)
        ],
        "not_asked": [{"frame": frame, "part": part} for frame, part in from_cache(run)],
        "kernels": [
            {"frame": kernel.frame, "part": kernel.part, "name": kernel.name, "facts": kernel_facts(run, kernel)}
            for kernel in run.kernels
        ],
    }


def headline(found: Fusion) -> str:
    """ "8 ops in 3 kernels; 13 pairs tried, 1 pair not fused"."""
    log = found.log
    pairs = len({(each.one, each.other) for each in log.refusals})
    kernels = len(kernels_in(found.run, found.frame, found.part))
    dropped = f", {counted(log.dropped, 'rejection')} not recorded" if log.dropped else ""
    tried = f"{counted(log.pairs_tried, 'pair')} tried, {counted(pairs, 'pair')} not fused{dropped}"
    return f"{counted(len(log.ops), 'op')} in {counted(kernels, 'kernel')}; {tried}"


def reason_words(found: Fusion, refusal: Refusal) -> str:
    """Why a fusion was rejected, with torch's own words where it reports some."""
    if refusal.reason == SILENT:
        return _silent(found, refusal)
    meaning = next((text for start, text in _MEANINGS if start in refusal.reason), "")
    if refusal.reason == JUDGED:
        return meaning
    if meaning == "different loop ranges":
        meaning += f", {loops_words(found, refusal.one)} and {loops_words(found, refusal.other)}"
    return f"{meaning} (torch: {refusal.reason})" if meaning else f"torch: {refusal.reason}"


def _silent(found: Fusion, refusal: Refusal) -> str:
    """What can be seen from the two groups where torch reports no reason."""
    one, other = loops_words(found, refusal.one), loops_words(found, refusal.other)
    unreported = "torch reports no reason"
    if waits := _waits(found, refusal):
        return f"{waits} ({one}; {other}; {unreported})"
    return f"different loop ranges, {one} and {other} ({unreported})" if one != other else f"{unreported}; both: {one}"


def loops_words(found: Fusion, number: int) -> str:
    """ "loops of 32 x 64", "loops of 32, reducing 16", "one value, reducing 2048", "a call of extern_kernels.mm"."""
    shown: dict[str, None] = {}
    for op in found.group(number):
        if op.kind == "extern":
            shown[f"a call of {op.calls}"] = None
            continue
        if op.kind in ("template", "nop"):
            shown["a template" if op.kind == "template" else "no loop"] = None
            continue
        loops = " x ".join(loop for loop in op.loops if loop != "1")
        text = f"loops of {loops}" if loops else "one value"
        shown[text + (f", reducing {' x '.join(op.reduced)}" if op.reduced else "")] = None
    return _few(shown, " and ")


def tried_lines(found: Fusion, numbers: Iterable[int]) -> list[str]:
    """What these groups of a kernel were not fused with, and which of them have loops of their own, and why: the most
    frequent reason first, one line a reason.
    """
    mine = set(numbers)
    refusals = {refusal: None for number in mine for refusal in found.refused.get(number, ())}
    others: dict[tuple[str, str], list[str]] = {}
    times: Counter[tuple[str, str]] = Counter()
    for refusal in refusals:
        pair = (refusal.one, refusal.other)
        within = mine.issuperset(pair)
        names = [_few(found.nodes(each)) for each in pair] if within else [_name(found, *set(pair) - mine)]
        key = ("separate loops in this kernel for" if within else "not fused with", reason_words(found, refusal))
        others.setdefault(key, []).append(" apart from ".join(names))
        times[key] += refusal.times
    lines = []
    for (what, why), number in times.most_common(_NAMES):
        often = f", {number:,} times" if number > 1 else ""
        lines.append(f"{what} {_few(dict.fromkeys(others[what, why]), '; ')}: {why}{often}")
    if len(times) > _NAMES:
        lines.append(f"and {counted(len(times) - _NAMES, 'reason')} more (--json has them)")
    return lines


def recomputed(found: Fusion) -> list[tuple[str, list[str]]]:
    """What is computed in several kernels, or loops of one: a sentence, and the nodes that it is about."""
    places: dict[tuple[int, ...], list[str]] = {}
    for name, numbers in found.recomputed().items():
        places.setdefault(tuple(numbers), []).append(name)
    return [
        (f"{_few(names)}: computed {len(at)} times, in {_places(found, at)}", names) for at, names in places.items()
    ]


def facts_words(facts: KernelFacts) -> str:
    """Its loops; how many loads, stores and reductions; and what it reads and writes."""
    read, written = counted(len(facts.reads), "buffer"), f"{len(facts.writes):,}"
    moved = f"reads {read} ({_traffic(facts.reads)}), writes {written} ({_traffic(facts.writes)})"
    moved = moved if facts.reads or facts.writes else "what it reads and writes is not known"
    if facts.language == "extern":
        return f"a call into a library; {moved}"
    counts = ((facts.loads, "load"), (facts.stores, "store"), (facts.atomics, "atomic add"))
    accesses = ", ".join(counted(number, noun) for number, noun in (*counts, (facts.reductions, "reduction")) if number)
    sizes = ", ".join(f"{name} {size}" for name, size in facts.sizes)
    shapes = [facts.kind, sizes, nests_words(facts)] if facts.language == "triton" else [nests_words(facts)]
    return "; ".join(filter(None, (", ".join(filter(None, shapes)), accesses, moved)))


def nests_words(facts: KernelFacts) -> str:
    """The loops of each nest, one in another: "32 (16, 16, 16); 1024", and whether they are vectorised and parallel."""
    if not facts.loops:
        return ""
    nests: list[str] = []
    for loop in facts.loops:
        if loop.depth == 0:
            nests.append(loop.end)
        else:
            nests[-1] += f" > {loop.end}"
    how = [word for word, is_so in (("vectorised", facts.vectorised), ("parallel", facts.parallel)) if is_so]
    how = how if facts.language == "cpp" else []
    return ", ".join([f"{counted(facts.nests, 'nest')} of loops ({'; '.join(nests[:_NAMES])})", *how])


def answer_lines(run: Run, answer: Answer) -> list[str]:
    """Why two are not fused: one sentence, then what it rests on."""
    found = fusion_of(run, answer.frame, answer.part)
    if found is None or answer.one < 0:
        return [_WITHOUT[answer.kind]]
    one, other = _name(found, answer.one), _name(found, answer.other)
    lines = [_answer(found, answer)]
    if answer.kind != "one":
        lines += [f"  {one}: {loops_words(found, answer.one)}", f"  {other}: {loops_words(found, answer.other)}"]
    for refusal in answer.refusals[1:] if answer.kind == "refused" else answer.refusals:
        lines.append(f"  {reason_words(found, refusal)}{_times(refusal)}")
    if found.log.dropped and not answer.refusals and answer.kind != "one":
        lines.append(f"  ({counted(found.log.dropped, 'rejection')} were not recorded; some may be of this pair)")
    if answer.between:
        lines.append(f"  between them: {_places(found, answer.between)}")
    return lines


def _answer(found: Fusion, answer: Answer) -> str:
    match answer.kind:
        case "one":
            return f"fused: both are computed in {_name(found, answer.one)} ({loops_words(found, answer.one)})"
        case "one kernel":
            alone = "" if answer.refusals or answer.shared else ", and share no buffer that one loop would read once"
            return f"in one kernel, {_kernel(found, answer.one)}, but in separate loops{alone}"
        case "library":
            return "not fused: one of them is a library call, which Inductor does not fuse"
        case "refused":
            first, *more = answer.refusals
            others = f", and {counted(len(more), 'other reason')}" if more else ""
            return f"fusion rejected: {reason_words(found, first)}{_times(first)}{others}"
        case "between":
            return "not fused: another kernel depends on the first, and the second depends on it"
        case "apart":
            return "not tried: they share no buffer, and Inductor tries only pairs that do"
        case _:
            return f"unknown: torch logged no decision on this pair, though both use {_few(answer.shared)}"


def _times(refusal: Refusal) -> str:
    return f", {refusal.times:,} times" if refusal.times > 1 else ""


def named(run: Run, name: str) -> Subject:
    """The kernel or node of this name, the lowest stage first. Raises BadInput where there is none."""
    for kernel in run.kernels:
        if kernel.name == name:
            return kernel
    graphs = sorted(run.graphs, key=lambda graph: graph.stage != "post_grad")
    for graph in graphs:
        if name in run.graphs[graph].by_name:
            return NodeId(graph, name)
    raise BadInput(f"the run has no node or kernel {name}", hint="idbg analyze --type fusion lists them")


def pair_lines(run: Run, one: str, other: str) -> list[str]:
    """Why the two of these names are not fused."""
    return [f"{one} and {other}:", *answer_lines(run, why_not(run, named(run, one), named(run, other)))]


def pair_json(run: Run, one: str, other: str) -> object:
    """The same as records."""
    answer = why_not(run, named(run, one), named(run, other))
    return {"one": one, "other": other, "answer": answer, "words": answer_lines(run, answer)}


_WITHOUT = {
    "elsewhere": "not fused: they are in different graphs, which are compiled separately",
    "nothing": "not fused: no kernel computes one of them (a view, a constant or an argument)",
    "cached": NOT_RECORDED,
    "none": "unknown: there is no Inductor code for them",
}


def _waits(found: Fusion, refusal: Refusal) -> str:
    """Where one is a reduction whose result the other reads."""
    for first, second in ((refusal.one, refusal.other), (refusal.other, refusal.one)):
        if second in found.readers[first] and any(op.kind == "reduction" for op in found.group(first)):
            nodes = found.nodes(second)
            need = "need" if len(nodes) > 1 else "needs"
            return f"{_few(nodes)} {need} the result of a reduction, complete only after its loop"
    return ""


def _name(found: Fusion, number: int) -> str:
    """A group by its kernel, and by its nodes where the kernel has others too."""
    kernel = found.kernels[number]
    nodes = _few(found.nodes(number))
    if kernel is None:
        return nodes or found.log.groups[number][0]
    return kernel.name if found.groups_in[kernel.name] == 1 else f"{nodes} in {kernel.name}"


def _kernel(found: Fusion, number: int) -> str:
    kernel = found.kernels[number]
    return kernel.name if kernel is not None else "an unknown kernel"


def _places(found: Fusion, numbers: Iterable[int]) -> str:
    return _few((_name(found, number) for number in numbers), " and ")


def by_kernel(found: Fusion) -> dict[str, list[int]]:
    """Kernel -> the groups that it computes, by their numbers."""
    numbers: dict[str, list[int]] = {}
    for number, kernel in enumerate(found.kernels):
        if kernel is not None:
            numbers.setdefault(kernel.name, []).append(number)
    return numbers


def kernels_in(run: Run, frame: str, part: Part) -> tuple[Kernel, ...]:
    """The kernels of this graph's code."""
    code = run.codes.get((frame, part))
    return code.kernels if code is not None else ()


def _traffic(buffers: tuple[Buffer, ...]) -> str:
    known = [buffer.nbytes for buffer in buffers if buffer.nbytes is not None]
    return and_unsized(sum(known), len(buffers) - len(known))


def _few(names: Iterable[str], joint: str = ", ") -> str:
    return few(names, _NAMES, " and {:,} more", joint)
