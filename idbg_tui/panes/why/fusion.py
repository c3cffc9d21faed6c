"""What is each kernel made of, what does it do, with whom is it not one and why, and what is computed twice?"""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from idbg.analysis.decisions.fusion import Fusion, fusions, not_heard
from idbg.analysis.decisions.kernel_facts import KernelFacts, kernel_facts
from idbg.format.amounts import NOTHING, column_size, counted
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.reports.decisions import fusion as report
from idbg.schema.code import Kernel
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.runs import Run
from idbg_tui.panes.why.table import Column, Table
from idbg_tui.widgets.section_rows import INDENT, Look, Row, Rows, fixed, said, sign

FILTERS = False
NONE = "there is no code of Inductor's: nothing was compiled, or by a backend that makes no kernels (b chooses another)"
_MANY = 40  # kernels of a graph from which what each is made of is folded at first
_TABLE = Table(
    (
        Column("loops", 5, 1, right=True),
        Column("loads", 5, 2, right=True),
        Column("stores", 6, 2, right=True),
        Column("reads", 10, 3, right=True),
        Column("writes", 10, 3, right=True),
        Column("not one with", 12, 4, right=True),
    ),
    "kernel, and what it computes",
)
_Key = tuple[object, ...]


def count(run: Run) -> int:
    """Pairs that the scheduler did not make one."""
    return sum(len({(each.one, each.other) for each in log.refusals}) for log in run.decided.fusion.values())


def rows(run: Run, look: Look) -> Sequence[Row]:
    """Graph by graph: each kernel with what it computes, what it does, and with whom it is not one, and why."""
    if not run.codes:
        return []
    found = Rows()
    found.add(_TABLE.heads())
    for fusion in heard(run):
        _add_graph(found, run, look, fusion, fusion.frame, fusion.part)
    for frame, part in not_heard(run):
        _add_graph(found, run, look, None, frame, part)
    return found


def heard(run: Run) -> Iterator[Fusion]:
    """What was decided of each graph, with what follows from it, which takes time: made once."""
    for found in fusions(run):
        yield _kept(_Same(found))


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
def _kept(same: _Same) -> Fusion:
    return same.fusion


def _add_graph(found: Rows, run: Run, look: Look, fusion: Fusion | None, frame: str, part: Part) -> None:
    """What became of the ops of one graph, and its kernels; `fusion` is None where nobody asked the scheduler."""
    fold = ("graph", frame, part)
    is_open = look.is_open(fold, at_first=True)
    known = run.frames.get(frame)
    headline = report.headline(fusion) if fusion is not None else f"{frame} {part}"
    words = [(f"{sign(is_open=is_open)} {known.function if known else ''} ", "strong"), (headline, "")]
    place = (known.file, known.line) if known is not None else ("", 0)
    found.add(Row(fold, fixed(words), "fold", fold, is_open, (), frame, *place, copied=headline))
    if not is_open:
        return
    kernels = report.kernels_in(run, frame, part)
    if fusion is None:
        for row in said(report.NOT_ASKED, look, key=(*fold, "not asked"), depth=1, style="fallback", inside=(fold,)):
            found.add(row)
    twice = fusion.recomputed() if fusion is not None else {}
    for at, kernel in enumerate(kernels):
        _add_kernel(found, run, look, fusion, kernel, (at, len(kernels) > _MANY, frozenset(twice), fold))
    for number, line in enumerate(report.recomputed_lines(fusion) if fusion is not None else ()):
        for row in said(
            f"{SEVERITY_SIGNS['fallback']} {line}",
            look,
            key=(*fold, "twice", number),
            depth=1,
            style="fallback",
            inside=(fold,),
        ):
            found.add(row)


def _add_kernel(
    found: Rows,
    run: Run,
    look: Look,
    fusion: Fusion | None,
    kernel: Kernel,
    at: tuple[int, bool, frozenset[str], _Key],
) -> None:
    """A kernel, and under it what it does, its nodes, and with whom it is not one."""
    number, many, twice, above = at
    fold = ("kernel", kernel.frame, kernel.part, kernel.name, number)
    is_open = look.is_open(fold, at_first=not many)
    groups = report.by_kernel(fusion).get(kernel.name, []) if fusion is not None else []
    found.add_later(fold, partial(_kernel_row, run, fusion, kernel, groups, twice, (fold, above), is_open))
    if not is_open:
        return
    inside = (above, fold)
    facts = report.facts_words(kernel_facts(run, kernel))
    for row in said(facts, look, key=(*fold, "facts"), depth=3, style="dim", inside=inside):
        found.add(row)
    for row in _made_of(run, look, fusion, kernel, groups, twice, (fold, inside)):
        found.add(row)
    for place, line in enumerate(report.tried_lines(fusion, groups) if fusion is not None else ()):
        for row in said(f"{SEVERITY_SIGNS['slow']} {line}", look, key=(*fold, "tried", place), depth=3, inside=inside):
            found.add(row)


def _kernel_row(
    run: Run,
    fusion: Fusion | None,
    kernel: Kernel,
    groups: Sequence[int],
    twice: frozenset[str],
    keys: tuple[_Key, _Key],
    is_open: bool,
) -> Row:
    fold, above = keys
    facts = kernel_facts(run, kernel)
    again = sum(name in twice for name in dict.fromkeys(kernel.nodes))
    words = [
        (f"{' ' * INDENT}{sign(is_open=is_open)} ", ""),
        (kernel.name, "strong"),
        (f"  {counted(len(set(kernel.nodes)), 'node')}", "dim"),
        (f"  {SEVERITY_SIGNS['fallback']} {again} computed again" if again else "", "fallback"),
    ]
    others = {
        other
        for group in groups
        for refusal in (fusion.refused.get(group, ()) if fusion is not None else ())
        for other in (refusal.one, refusal.other)
    } - set(groups)
    not_one = (f"{len(others):,}", "") if fusion is not None and groups else (NOTHING, "dim")
    cells = [*_cells(facts), not_one]
    target = kernel.frame, kernel.part, kernel.name
    return Row(fold, _TABLE.row(words, cells), "kernel", fold, is_open, (above,), kernel.frame, kernel=target)


def _cells(facts: KernelFacts) -> list[tuple[str, str]]:
    if facts.language == "extern":
        own = [("", ""), ("", ""), ("", "")]
    else:
        own = [(f"{number:,}", "") for number in (facts.nests, facts.loads, facts.stores)]
    moved = [[buffer.nbytes for buffer in buffers] for buffers in (facts.reads, facts.writes)]
    return [*own, *((_bytes(sizes), "") for sizes in moved)]


def _bytes(sizes: Sequence[int | None]) -> str:
    known = [size for size in sizes if size is not None]
    return NOTHING if len(known) < len(sizes) else column_size(sum(known))


def _made_of(
    run: Run,
    look: Look,
    fusion: Fusion | None,
    kernel: Kernel,
    groups: Sequence[int],
    twice: frozenset[str],
    keys: tuple[_Key, tuple[_Key, ...]],
) -> Iterator[Row]:
    """The nodes of each group of the kernel, where it has several with the loops of each."""
    fold, inside = keys
    if fusion is None or not groups:
        yield from (_node_row(run, kernel, name, twice, (*fold, name), inside) for name in dict.fromkeys(kernel.nodes))
        return
    for group in groups:
        loops = report.loops_words(fusion, group)
        drawn = fixed([(f"{' ' * 3 * INDENT}{MARKS['dot']} {loops}", "accent")])
        yield Row((*fold, "group", group), drawn, inside=inside, frame=kernel.frame, copied=loops)
        for name in fusion.nodes(group):
            yield _node_row(run, kernel, name, twice, (*fold, group, name), inside)


def _node_row(run: Run, kernel: Kernel, name: str, twice: frozenset[str], key: _Key, inside: tuple[_Key, ...]) -> Row:
    graph = GraphId(kernel.frame, "post_grad", kernel.part)
    known = run.graphs[graph].by_name.get(name) if graph in run.graphs else None
    words = [(f"{' ' * 4 * INDENT}{name}", "")]
    if known is not None:
        words.append((f"  {known.target}", "dim"))
    if name in twice:
        words.append((f"  {SEVERITY_SIGNS['fallback']} computed in other kernels too", "fallback"))
    nodes = (NodeId(graph, name),) if known is not None else ()
    file, line = (known.file, known.line) if known is not None else ("", 0)
    return Row(
        key, fixed(words), "node" if nodes else "", None, False, inside, kernel.frame, file, line, nodes, copied=name
    )
