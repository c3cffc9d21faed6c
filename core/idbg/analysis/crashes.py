"""Find the launch, node and user's line at which a program crashed, by its stack and its run's records."""

import ast
import re
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from idbg.analysis.output_code import part_of
from idbg.analysis.provenance import Provenance
from idbg.schema.faults import CrashSite
from idbg.schema.graphs import GraphId, Node, NodeId
from idbg.schema.programs import Failure
from idbg.schema.runs import Run

_DUMP = re.compile(r"^(?:Fatal Python error: |Windows fatal exception: )", re.MULTILINE)
_THREAD = re.compile(r"^(Current thread|Thread) 0x", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.+)", line (\d+),? in (.+)$', re.MULTILINE)
_KERNELS = r"extern_kernels|torch\.ops|aten|inductor_ops|_quantized|cpp_\w+|triton_\w+"
_LAUNCHED = re.compile(rf"(?:[\w, ]+ = )?((?:{_KERNELS})[\w.]*)\(")
_CHECKS = "assert_"  # assert_size_stride, assert_tensor_metadata, assert_alignment
_COMMENTED = re.compile(r"\[Provenance debug handles\]\s*(\S+:\d+)")
_NEAR = 8  # lines above a launch within which its comment stands
# which nodes of a kernel to look at first, by the message of the crash
_SUSPECTS = (
    (re.compile("out of bounds|device-side assert"), re.compile("index|embedding|gather|scatter|take|select|assert")),
    (re.compile("SIGFPE|division by zero|ZeroDivision"), re.compile("div|remainder|fmod|mod")),
)
_LIBRARIES = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"), "<")


@dataclass(frozen=True)
class Place:
    """One frame of a stack: `line` is 1-based."""

    file: str
    line: int
    function: str


def stack_of(dump: str) -> list[Place]:
    """The stack, innermost frame first, that Python's own fault handler wrote last: of the thread that crashed, or,
    where a thread without Python did (one of OpenMP's), of the one that was in code of Inductor's or else came last,
    which is the main one. Empty where it wrote none.
    """
    starts = [match.start() for match in _DUMP.finditer(dump)]
    if not starts:
        return []
    last = dump[starts[-1] :]
    marks = list(_THREAD.finditer(last))
    ends = [*(mark.start() for mark in marks[1:]), len(last)]
    stacks = [frames_of(last[mark.start() : end]) for mark, end in zip(marks, ends, strict=True)]
    current = next((stack for mark, stack in zip(marks, stacks, strict=True) if mark[1] == "Current thread"), None)
    return current or (stacks[-1] if stacks else [])


def is_whole(dump: str) -> bool:
    """Whether Python's fault handler came to the end of what it writes, the list of extension modules."""
    return "\nExtension modules: " in dump


def frames_of(text: str) -> list[Place]:
    """The frames of a stack as Python writes it, in its order."""
    return [Place(file, int(line), function) for file, line, function in _FRAME.findall(text)]


def users_place(stack: Iterable[Place], generated: Iterable[str] = (), ours: str = "") -> tuple[str, int]:
    """File and line of the innermost frame that is the user's; ("", 0) where there is none. `generated` are files that
    compilers wrote, `ours` is the folder of our own.
    """
    written = {*generated}
    for place in stack:
        library = place.file.startswith("<") or any(folder in place.file for folder in _LIBRARIES if folder != "<")
        if not library and place.file not in written and not (ours and place.file.startswith(ours)):
            return place.file, place.line
    return "", 0


def is_wrapper(text: str) -> bool:
    """Whether this is the text of a wrapper of Inductor's."""
    return bool(part_of(text))


@dataclass(frozen=True)
class LaunchLine:
    """What a line of a wrapper launches, Inductor's handle of it, and the names that it is given."""

    kernel: str
    handle: str
    names: tuple[str, ...]


def launch_at(text: str, line: int) -> LaunchLine | None:
    """The launch at a 1-based line of a wrapper; None where the line launches nothing."""
    lines = text.splitlines()
    if not 0 < line <= len(lines) or (match := _LAUNCHED.match(lines[line - 1].strip())) is None:
        return None
    kernel = match[1].removesuffix(".run")
    above = "\n".join(lines[max(line - 1 - _NEAR, 0) : line - 1])
    handles = [handle for handle in _COMMENTED.findall(above) if handle.rpartition(":")[0] in match[1]]
    return LaunchLine(kernel, handles[-1] if handles else "", tuple(_names(lines, line)))


def launch_checked_at(text: str, line: int) -> int:
    """The line of the launch whose result is checked at a line of a wrapper; the line itself where it checks none."""
    lines = text.splitlines()
    if not 0 < line <= len(lines) or not lines[line - 1].lstrip().startswith(_CHECKS):
        return line
    for above in range(line - 1, 0, -1):
        text = lines[above - 1].strip()
        if text.startswith("def "):
            break  # it checks an argument
        if _LAUNCHED.match(text):
            return above
    return line


def _names(lines: Sequence[str], line: int) -> list[str]:
    """The names in the arguments of the call that begins at this line."""
    for end in range(line, min(line + 50, len(lines)) + 1):
        try:
            (statement,) = ast.parse("\n".join(text.strip() for text in lines[line - 1 : end])).body
        except (SyntaxError, ValueError):
            continue  # it goes on below
        value = getattr(statement, "value", None)
        given = [*value.args, *(keyword.value for keyword in value.keywords)] if isinstance(value, ast.Call) else []
        names = [node.id for argument in given for node in ast.walk(argument) if isinstance(node, ast.Name)]
        return list(dict.fromkeys(names))
    return []


def placed(site: CrashSite, run: Run, *, text: str, message: str) -> CrashSite:
    """The site with its launch's frame, part, nodes and user's line, from the run's records. Of nodes from several
    lines it is that of the first whose op fits the failure's `message`, else the line of most of them.
    `text` is that of the wrapper which it was in.
    """
    if not site.kernel:
        return site
    code = next((code for code in run.codes.values() if _same(code.text, text)), None)
    if code is None:
        return site
    calls = [(kernel.name, call) for kernel in code.kernels for call in kernel.calls if call.line == site.wrapper_line]
    if not calls:
        return replace(site, frame=code.frame, part=code.part)
    name, call = calls[0]
    nodes = _nodes(run, GraphId(code.frame, "post_grad", code.part), call.nodes)
    file, line = _line_of(nodes, f"{site.cause} {message}") or (site.file, site.line)
    return replace(
        site,
        kernel=name,
        handle=call.handle,
        frame=code.frame,
        part=code.part,
        nodes=call.nodes,
        file=file,
        line=line,
    )


def _nodes(run: Run, graph: GraphId, names: Sequence[str]) -> list[Node]:
    """The nodes with a line, as the graph has them that Inductor was given: what it printed itself may come from its
    cache, with the lines of another file.
    """
    provenance, printed = Provenance(run), run.graphs.get(graph)
    given = run.graphs.get(GraphId(graph.frame, graph.part)) if graph.part else None
    nodes: list[Node] = []
    for name in names:
        above = provenance.counterparts(NodeId(graph, name), given.id) if given else []
        nodes += [given.by_name[each.name] for each in above] if given else []
        if not above and printed is not None and name in printed.by_name:
            nodes.append(printed.by_name[name])
    return [node for node in nodes if node.file]


def _line_of(nodes: Sequence[Node], message: str) -> tuple[str, int] | None:
    for messages, targets in _SUSPECTS:
        suspects = [node for node in nodes if messages.search(message) and targets.search(node.target)]
        if suspects:
            return suspects[0].file, suspects[0].line
    lines = [(node.file, node.line) for node in nodes]
    return max(lines, key=lines.count) if lines else None


def _same(one: str, other: str) -> bool:
    return one.strip() == other.strip()


def with_site(failure: Failure, site: CrashSite | None) -> Failure:
    """The failure with where it was: its place is the user's line, if that is known."""
    if site is None:
        return failure
    of_launch = site.file and not failure.called_back  # a fake kernel of the user's is wrong at its own line
    here = (site.file, site.line) if of_launch else (failure.file, failure.line)
    return replace(failure, crash=site, file=here[0], line=here[1])
