"""Read what a kernel does from its source: its loops, loads, stores, reductions and buffers.

Read from its source, as Inductor writes C++ and Triton; of what it reads and writes, from the graph.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from idbg.schema.code import Kernel
from idbg.schema.graphs import Graph
from idbg.schema.runs import Run

_CAST = r"static_cast<int64_t>\((?P<{}>.+?)L?\)"
_FOR = re.compile(
    r"^\s*for\s*\(int64_t (?P<var>\w+)\s*=\s*" + _CAST.format("begin") + r";\s*\w+\s*<\s*" + _CAST.format("end")
    + r";\s*\w+\s*\+=\s*(?:\(*" + _CAST.format("step") + r".*)?\)\s*\{?$"
)  # fmt: skip
_PARALLEL = re.compile(r"^\s*#pragma omp (parallel for|for|parallel)\b")
_CPP_ACCESS = re.compile(r"\b((?:in|out|in_out)_ptr\d+)\s*(\[|\+)")
_CPP_ATOMIC = re.compile(r"\batomic_add\w*(?:<[^>]*>)?\(")
_CPP_REDUCED = re.compile(r"^\s*[A-Za-z_][\w:<>]* tmp_acc\d+ =", re.MULTILINE)
_NUMEL = re.compile(r"^\s*(\w*numel)\s*=\s*(\d+)\s*$", re.MULTILINE)
_HINTS = re.compile(r"size_hints=\{([^}]*)\}")
_HEURISTIC = re.compile(r"@triton_heuristics\.(\w+)\(")
_TRITON_LOOP = re.compile(r"^\s*for (\w+) in (?:tl\.)?range\(0, (\w+), (\w+)\)", re.MULTILINE)
_TRITON_REDUCED = re.compile(
    r"(?:tl|triton_helpers)\.(?:sum|max|min|prod|argmax|argmin|xor_sum|reduce|max2|min2|max_with_index|min_with_index|"
    r"welford|welford_reduce|any|associative_scan)\("
)


@dataclass(frozen=True)
class Loop:
    """One loop of a kernel's source. `end` and `step` are as the source has them; `depth` 0 is outermost; `shared`:
    threads share its turns.
    """

    name: str
    end: str
    step: str = "1"
    depth: int = 0
    shared: bool = False


@dataclass(frozen=True)
class Buffer:
    """A value that a kernel reads or writes, and its bytes, None where a size is not known."""

    node: str
    nbytes: int | None


@dataclass(frozen=True)
class KernelFacts:
    """What a kernel does. Loads, stores, atomic additions and reductions are places in its source, not times that they
    run. `sizes`: of Triton, how many elements along each axis, where the source says so; `kind`: Triton's own word for
    such kernels ("pointwise", "persistent_reduction").
    """

    language: str
    kind: str = ""
    loops: tuple[Loop, ...] = ()
    sizes: tuple[tuple[str, str], ...] = ()
    vectorised: bool = False
    parallel: bool = False
    loads: int = 0
    stores: int = 0
    atomics: int = 0
    reductions: int = 0
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()

    @property
    def nests(self) -> int:
        """How many nests of loops stand one after another."""
        return sum(loop.depth == 0 for loop in self.loops)


def kernel_facts(run: Run, kernel: Kernel) -> KernelFacts:
    """Of this kernel of the run."""
    read = _READERS.get(kernel.language)
    facts = read(kernel.source) if read is not None and kernel.source else KernelFacts(kernel.language)
    graph = run.graph(kernel.frame, "post_grad", kernel.part)
    if graph is None:
        return facts
    reads, writes = traffic(run, graph, kernel)
    return KernelFacts(**{**vars(facts), "reads": reads, "writes": writes})


def traffic(run: Run, graph: Graph, kernel: Kernel) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    """What a kernel must read and must write, over all its calls: values that others have, and that others want. What
    no kernel computes, as a view, is what it is a view of.
    """
    computing = _computing(run, graph)
    mine = {name for name in kernel.nodes if name in graph.by_name}

    def sources(name: str) -> Iterator[str]:
        node = graph.by_name.get(name)
        if name in computing or node is None or not node.op.startswith("call"):
            yield name
        else:
            for source in node.inputs:
                yield from sources(source)

    def wanted(name: str) -> bool:
        for user in graph.users.get(name, ()):
            calls = computing.get(user)
            if graph.by_name[user].op == "output" or (calls is None and wanted(user)):
                return True
            if calls is not None and any(name not in nodes for nodes in calls):
                return True
        return False

    read = dict.fromkeys(source for name in kernel.nodes if name in mine for each in graph.by_name[name].inputs
                         for source in sources(each) if source not in mine)  # fmt: skip
    return _buffers(graph, read), _buffers(graph, [name for name in kernel.nodes if name in mine and wanted(name)])


def _computing(run: Run, graph: Graph) -> dict[str, list[frozenset[str]]]:
    """Node -> for each call of a kernel that computes it, all that that call computes."""
    found: dict[str, list[frozenset[str]]] = {}
    code = run.codes.get((graph.id.frame, graph.id.part))
    for kernel in code.kernels if code is not None else ():
        for call in kernel.calls:
            nodes = frozenset(call.nodes)
            for name in nodes:
                found.setdefault(name, []).append(nodes)
    return found


def _buffers(graph: Graph, names: Iterable[str]) -> tuple[Buffer, ...]:
    nodes = (graph.by_name[name] for name in names if name in graph.by_name)
    return tuple(Buffer(node.name, node.tensor.nbytes) for node in nodes if node.tensor is not None)


def _cpp(source: str) -> KernelFacts:
    loops: list[Loop] = []
    opened: list[int] = []  # at which depth of braces each loop that goes on was begun
    depth, shared, parallel = 0, False, False
    for line in source.splitlines():
        if pragma := _PARALLEL.match(line):
            parallel, shared = True, "for" in pragma[1]
        elif loop := _FOR.match(line):
            loops.append(Loop(loop["var"], loop["end"], loop["step"] or "1", len(opened), shared))
            opened.append(depth)
            shared = False
        depth += line.count("{") - line.count("}")
        while "}" in line and opened and depth <= opened[-1]:
            opened.pop()
    loads, stores = _cpp_accesses(source)
    return KernelFacts(
        "cpp",
        loops=tuple(loops),
        vectorised="Vectorized<" in source,
        parallel=parallel,
        loads=loads,
        stores=stores,
        atomics=len(_CPP_ATOMIC.findall(source)),
        reductions=len(_CPP_REDUCED.findall(source)),
    )


def _cpp_accesses(source: str) -> tuple[int, int]:
    """How many places load from a buffer, and how many store to one."""
    loads = stores = 0
    body = source[source.find("{") :]
    for line in body.splitlines():
        for access in _CPP_ACCESS.finditer(line):
            before, after = line[: access.start()], line[access.end() :]
            stored = ".store(" in before or (access[2] == "[" and not before.strip() and _assigned(after))
            atomic = _CPP_ATOMIC.search(before) is not None
            stores += stored and not atomic
            loads += not stored and not atomic
    return loads, stores


def _assigned(after: str) -> bool:
    """Whether what follows a subscript's bracket assigns to it."""
    depth = 1
    for at, sign in enumerate(after):
        depth += (sign == "[") - (sign == "]")
        if depth == 0:
            return re.match(r"\s*[-+*/]?=(?!=)", after[at + 1 :]) is not None
    return False


def _triton(source: str) -> KernelFacts:
    heuristic = _HEURISTIC.search(source)
    sizes = dict(_NUMEL.findall(source))
    if hints := _HINTS.search(source):
        known = {name.removesuffix("numel") or name for name in sizes}
        for axis, hint in re.findall(r"'(\w+)': (\d+)", hints[1]):
            if axis not in known and axis.rstrip("_") not in known:
                sizes[f"{axis} (about)"] = hint
    return KernelFacts(
        "triton",
        kind=heuristic[1] if heuristic else "",
        loops=tuple(Loop(name, end, step) for name, end, step in _TRITON_LOOP.findall(source)),
        sizes=tuple(sizes.items()),
        vectorised=True,
        parallel=True,
        loads=source.count("tl.load("),
        stores=source.count("tl.store("),
        atomics=source.count("tl.atomic_"),
        reductions=len(_TRITON_REDUCED.findall(source)),
    )


_READERS: dict[str, Callable[[str], KernelFacts]] = {"cpp": _cpp, "triton": _triton}
