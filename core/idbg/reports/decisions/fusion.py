"""What became one kernel, what did not and why, what does each kernel do, and what is computed twice?"""

from collections import Counter
from collections.abc import Iterable, Iterator

from idbg.analysis.decisions.fusion import Answer, Fusion, Subject, fusion_of, fusions, not_heard, why_not
from idbg.analysis.decisions.kernel_facts import Buffer, KernelFacts, kernel_facts
from idbg.format.amounts import and_unsized, counted
from idbg.schema.code import Kernel
from idbg.schema.decisions.decision import Decision
from idbg.schema.decisions.fusion import JUDGED, SILENT, Refusal
from idbg.schema.errors import BadInput
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run

NAMES = 6  # in a line
NOT_ASKED = "the code was found in a cache, so the scheduler was not asked: --cold asks it"

_MEANINGS = (
    ("memory deps did not match", "the second reads what the first writes, but not where its loop has just written"),
    ("intermediate nodes between", "something else must run between them"),
    ("will create cycle", "as one they would wait for what waits for them"),
    ("no shared data due to indexing", "they use the same buffer, at different places of their loops"),
    ("no shared data", "they load nothing in common that one kernel would load once"),
    ("exceeds max fusion", "one kernel would be of more ops than max_fusion_size allows"),
    ("Fusion will increase peak memory", "one kernel would need more memory at once"),
    ("score_fusion_memory_threshold", "one kernel would save hardly any memory traffic"),
    ("Nodes are too far away", "other kernels run between them, and buffers would live for longer"),
    ("fusion_prevent_too_many", "one kernel would use too many buffers (max_fusion_unique_io_buffers)"),
    ("numel/rnumel mismatch", "their loops have different sizes"),
    ("nodes numel", "their loops have different sizes"),
    ("tiling mismatch", "their loops would be cut into tiles that do not fit one another"),
    ("invalid tiling for reduction", "the loop of the one cannot be cut into tiles as the reduction needs it"),
    ("node1 is extern", "a call into a library joins nothing"),
    ("node2 is extern", "a call into a library joins nothing"),
    ("node1 must go before node2", "the first needs what the second computes"),
    ("template epilogue not satisfied", "the template takes no such op after it (epilogue_fusion)"),
    ("prologue", "the template takes no such op before it (prologue_fusion)"),
    ("device mismatch", "they run on different devices"),
    ("fusion for buffer explicit disabled", "the program or a pass forbids it for this buffer"),
    ("Split scan", "a scan that was split joins no reduction"),
    (JUDGED, "allowed, but measured slower as one kernel, or their layouts conflict: torch does not say which"),
)


def text(run: Run) -> Iterable[str]:
    """Each graph: what became of its ops; each kernel: what it does, and with whom it is not one; what is computed in
    several.
    """
    for found in fusions(run):
        yield headline(found)
        numbers = by_kernel(found)
        for kernel in kernels_in(run, found.frame, found.part):
            yield f"  {kernel.name}: {facts_words(kernel_facts(run, kernel))}"
            mine = numbers.get(kernel.name, [])
            if len(mine) > 1:
                yield from (f"    {loops_words(found, number)}: {_few(found.nodes(number))}" for number in mine)
            yield from (f"    {line}" for line in tried_lines(found, mine))
        yield from (f"  {line}" for line in recomputed_lines(found))
    for frame, part in not_heard(run):
        yield f"{frame} {part}: {NOT_ASKED}"
        for kernel in kernels_in(run, frame, part):
            yield f"  {kernel.name}: {facts_words(kernel_facts(run, kernel))}"
    if not run.codes:
        yield "there is no code of Inductor's: nothing was compiled, or by a backend that makes no kernels"


def as_json(run: Run) -> object:
    """Of each graph all that was decided; of each kernel what it does."""
    return {
        "graphs": [
            {
                "frame": found.frame,
                "part": found.part,
                "log": found.log,
                "kernels": [kernel.name if kernel else "" for kernel in found.kernels],
                "recomputed": {
                    name: [_name(found, number) for number in numbers] for name, numbers in found.recomputed().items()
                },
            }
            for found in fusions(run)
        ],
        "not_asked": [{"frame": frame, "part": part} for frame, part in not_heard(run)],
        "kernels": [
            {"frame": kernel.frame, "part": kernel.part, "name": kernel.name, "facts": kernel_facts(run, kernel)}
            for kernel in run.kernels
        ],
    }


def about(run: Run) -> Iterator[Decision]:
    """With whom each node is one, with whom it is not and why, and what is computed more than once."""
    for found in fusions(run):
        for number in range(len(found.log.groups)):
            nodes = found.nodes(number)
            if len(nodes) > 1 and found.group(number)[0].kind != "extern":
                yield _decision(found, [number], f"{counted(len(nodes), 'node')} are one", loops_words(found, number))
        for refusal in found.log.refusals:
            words = f"{_name(found, refusal.one)} and {_name(found, refusal.other)} are not one"
            yield _decision(found, [refusal.one, refusal.other], words, reason_words(found, refusal))
        for name, numbers in found.recomputed().items():
            words = f"{name} is computed {len(numbers)} times"
            yield _decision(found, numbers, words, f"in {_places(found, numbers)}", (name,))
    for frame, part in not_heard(run):
        kernels = tuple((frame, kernel.name) for kernel in kernels_in(run, frame, part))
        graph = run.graph(frame, "post_grad", part)
        called = [node.name for node in graph.nodes if node.op.startswith("call")] if graph is not None else []
        touched = tuple(NodeId(GraphId(frame, "post_grad", part), name) for name in called)
        words = "why it is one kernel with others, or not, is not known"
        yield Decision(kind="fusion", words=words, why=NOT_ASKED, frame=frame, nodes=touched, kernels=kernels)


def headline(found: Fusion) -> str:
    """ "0/0 inference: 8 ops became 5 groups in 3 kernels; 13 pairs looked at, 1 pair of groups refused"."""
    log = found.log
    pairs = len({(each.one, each.other) for each in log.refusals})
    kernels = len(kernels_in(found.run, found.frame, found.part))
    dropped = f", {counted(log.dropped, 'refusal')} more not kept" if log.dropped else ""
    groups = f"{counted(len(log.groups), 'group')} in {counted(kernels, 'kernel')}"
    asked = f"{counted(log.asked, 'pair')} looked at, {counted(pairs, 'pair')} of groups refused{dropped}"
    return f"{found.frame} {found.part}: {counted(len(log.ops), 'op')} became {groups}; {asked}"


def reason_words(found: Fusion, refusal: Refusal) -> str:
    """What a refusal means, with torch's own words."""
    if refusal.reason == SILENT:
        loops = f"{loops_words(found, refusal.one)}; {loops_words(found, refusal.other)}"
        waits = _waits(found, refusal)
        return f"{waits or 'their loops are not made one'} ({loops}; torch gives no reason)"
    meaning = next((words for start, words in _MEANINGS if start in refusal.reason), "")
    if refusal.reason == JUDGED:
        return meaning
    return f"{meaning} (torch: {refusal.reason})" if meaning else f"torch: {refusal.reason}"


def loops_words(found: Fusion, number: int) -> str:
    """ "loops of 32 x 64", "loops of 32, reducing 16", "one value, reducing 2048", "a call of extern_kernels.mm"."""
    said: dict[str, None] = {}
    for op in found.group(number):
        if op.kind == "extern":
            said[f"a call of {op.calls}"] = None
            continue
        if op.kind in ("template", "nop"):
            said["a template" if op.kind == "template" else "no loop"] = None
            continue
        loops = " x ".join(loop for loop in op.loops if loop != "1")
        words = f"loops of {loops}" if loops else "one value"
        said[words + (f", reducing {' x '.join(op.reduced)}" if op.reduced else "")] = None
    return _few(said, " and ")


def tried_lines(found: Fusion, numbers: Iterable[int]) -> list[str]:
    """With whom these groups were refused, and why, most often asked first; those of one reason in one line."""
    mine = set(numbers)
    refusals = {refusal: None for number in mine for refusal in found.refused.get(number, ())}
    others: dict[str, list[str]] = {}
    times: Counter[str] = Counter()
    for refusal in refusals:
        words = reason_words(found, refusal)
        others.setdefault(words, []).append(_name(found, refusal.other if refusal.one in mine else refusal.one))
        times[words] += refusal.times
    lines = []
    for words, again in times.most_common(NAMES):
        said = f", said {again:,} times" if again > 1 else ""
        lines.append(f"not one with {_few(dict.fromkeys(others[words]))}: {words}{said}")
    if len(times) > NAMES:
        lines.append(f"… {counted(len(times) - NAMES, 'reason')} more (--json has them)")
    return lines


def recomputed_lines(found: Fusion) -> list[str]:
    """What is computed in several kernels, or loops of one."""
    places: dict[tuple[int, ...], list[str]] = {}
    for name, numbers in found.recomputed().items():
        places.setdefault(tuple(numbers), []).append(name)
    return [f"{_few(names)}: computed {len(at)} times, in {_places(found, at)}" for at, names in places.items()]


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
    return ", ".join([f"{counted(facts.nests, 'nest')} of loops ({'; '.join(nests[:NAMES])})", *how])


def answer_lines(run: Run, answer: Answer) -> list[str]:
    """Why two are not one, for a person: the answer first."""
    found = fusion_of(run, answer.frame, answer.part)
    if found is None or answer.one < 0:
        return [_WITHOUT[answer.kind]]
    one, other = _name(found, answer.one), _name(found, answer.other)
    lines = [
        {
            "one": f"they are one: {one} ({loops_words(found, answer.one)})",
            "one kernel": f"one kernel, {_kernel(found, answer.one)}, but loops of their own in it",
            "library": "one of them is a call into a library, which joins nothing",
            "refused": "the scheduler refused it",
            "between": "they are not next to one another: something else must run between them",
            "apart": "they have no buffer in common: the scheduler looks only at pairs that have",
            "unheard": f"the scheduler said nothing of this pair, though both use {_few(answer.shared)}",
        }[answer.kind]
    ]
    if answer.kind != "one":
        lines += [f"  {one}: {loops_words(found, answer.one)}", f"  {other}: {loops_words(found, answer.other)}"]
    for refusal in answer.refusals:
        again = f", said {refusal.times:,} times" if refusal.times > 1 else ""
        lines.append(f"  {reason_words(found, refusal)}{again}")
    if answer.kind == "one kernel" and not answer.refusals and not answer.shared:
        lines.append("  they have no buffer in common, so that one loop of both was not tried")
    if found.log.dropped and not answer.refusals and answer.kind != "one":
        lines.append(f"  (of {counted(found.log.dropped, 'refusal')} that were not kept some may be of this pair)")
    if answer.between:
        lines.append(f"  between them: {_places(found, answer.between)}")
    return lines


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
    """Why the two of these names are not one."""
    return [f"{one} and {other}:", *answer_lines(run, why_not(run, named(run, one), named(run, other)))]


def pair_json(run: Run, one: str, other: str) -> object:
    """The same for a program."""
    answer = why_not(run, named(run, one), named(run, other))
    return {"one": one, "other": other, "answer": answer, "words": answer_lines(run, answer)}


_WITHOUT = {
    "elsewhere": "they are in different graphs, which are compiled one by one",
    "nothing": "one of them is computed by no kernel: it is a view, a constant or an argument",
    "cached": NOT_ASKED,
    "none": "there is no code of Inductor's for them",
}


def _waits(found: Fusion, refusal: Refusal) -> str:
    """Where one is a reduction whose result the other reads."""
    for first, second in ((refusal.one, refusal.other), (refusal.other, refusal.one)):
        if second in found.readers[first] and any(op.kind == "reduction" for op in found.group(first)):
            nodes = found.nodes(second)
            need = "need" if len(nodes) > 1 else "needs"
            return f"{_few(nodes)} {need} a reduction's result, there only after its loop has ended"
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
    return kernel.name if kernel is not None else "no kernel that is known"


def _places(found: Fusion, numbers: Iterable[int]) -> str:
    return _few((_name(found, number) for number in numbers), " and ")


def _decision(found: Fusion, numbers: list[int], words: str, why: str, nodes: tuple[str, ...] = ()) -> Decision:
    graph = GraphId(found.frame, "post_grad", found.part)
    names = nodes or dict.fromkeys(name for number in numbers for name in found.nodes(number))
    kernels = dict.fromkeys(kernel.name for number in numbers if (kernel := found.kernels[number]) is not None)
    return Decision(
        kind="fusion",
        words=words,
        why=why,
        frame=found.frame,
        nodes=tuple(NodeId(graph, name) for name in names),
        kernels=tuple((found.frame, name) for name in kernels),
    )


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
    listed = list(names)
    more = f" and {len(listed) - NAMES:,} more" if len(listed) > NAMES else ""
    return joint.join(listed[:NAMES]) + more
