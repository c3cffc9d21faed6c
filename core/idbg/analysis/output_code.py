"""Read the kernels of Inductor's output code, their calls, and the nodes that each call computes.

Generated kernels are module-level assignments, `NAME = async_compile.LANG(..., '''source''', ...)`, or what else a
backend of others defines them by: `NAME = async_compile.sdsc('NAME', [OpSpec(...)])`. Extern ops appear as calls only.
Each call stands below a comment with Inductor's debug handles: `# [Provenance debug handles] NAME:3`; code that was
written without has only calls, and comments above Triton's kernels and extern calls (`extern_nodes`). With the option
`cpp_wrapper` all of this is C++ in one string: kernels are its functions, and comments begin with `//`. AOTInductor
writes C++ alone: the wrapper, and below it the kernels.

Torch names a kernel's nodes by their bare names ("sin"), whatever graph they are in. In a subgraph (a branch of
torch.cond, the body of a loop) it also lists those of the graph around it: the op that holds the branch, and what that
op is given. The function of the code in which a kernel is called tells the branch (`resolved`).
"""

import ast
import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from idbg.analysis.kernel_definition import source_constant
from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.graphs import Graph, Node, Part

_HANDLES = re.compile(r"(?:#|//)\s*\[Provenance debug handles\]\s*(.+?)\s*$")
_CPP_KERNEL = re.compile(r'^extern "C"\s+void\s+(\w+)\([^;{]*\)\s*\{.*?^\}', re.MULTILINE | re.DOTALL)
_AOT_ID = re.compile(r"# AOT ID: \['\d+_(forward|backward|inference)'\]")
_DEFINITION = re.compile(r"(\w+) = async_compile\.")
_COMPUTED = re.compile(r"#\s+%(\w+) : .*= call_function\[")
_LAUNCH = re.compile(
    r"\s+(?:\w+ = )?(?:(?P<extern>(?:extern_kernels|torch\.ops\.(?!inductor\b))[\w.]*\w)|(?P<kernel>\w+)(?:\.run)?)\("
)
_CPP_LAUNCH = re.compile(
    r"\s+(?:AOTI_TORCH_ERROR_CODE_CHECK\((?P<extern>aoti_torch_(?:cpu|cuda|xpu|mps|mtia)_\w+)|(?P<kernel>\w+))\("
)
_NEAR = 8  # lines below its comment within which a call stands
_LANGUAGES = {"cpp_pybinding": "cpp", "cpp": "cpp", "triton": "triton"}
_PARTS: dict[str, Part] = {"forward": "forward", "backward": "backward", "inference": "inference"}


def part_of(text: str) -> Part:
    """Which graph this code was generated for; "" where its first line does not say."""
    match = _AOT_ID.search(text[:400])
    return _PARTS[match[1]] if match else ""


def read_output_code(
    text: str, *, frame: str, part: Part, handles: Mapping[str, Sequence[str]] | None = None
) -> OutputCode:
    """The code with its kernels. `handles` maps Inductor's debug handles ("NAME:3") to post-grad node names.

    Raises ValueError where the text is not Python.
    """
    handles = handles or {}
    launches = _calls(text)
    if not launches:
        launches, handles = _calls_without_handles(text)
    calls: dict[str, list[KernelCall]] = {}
    for handle, line in launches:
        calls.setdefault(handle.rpartition(":")[0], []).append(KernelCall(handle, line, tuple(handles.get(handle, ()))))
    defined = {
        definition.name: Kernel(
            frame=frame,
            part=part,
            name=definition.name,
            language=definition.language,
            source=definition.source,
            line=definition.line,
            calls=tuple(calls.get(definition.name, ())),
        )
        for definition in (*([] if is_cpp(text) else _definitions(text, calls)), *_cpp_definitions(text, calls))
    }
    extern = [
        Kernel(frame=frame, part=part, name=name, language="extern", calls=tuple(own))
        for name, own in calls.items()
        if name not in defined
    ]
    kernels = sorted([*defined.values(), *extern], key=lambda kernel: kernel.calls[0].line if kernel.calls else 1 << 30)
    return OutputCode(frame, part, text, tuple(kernels))


def is_cpp(text: str) -> bool:
    """Whether it is C++ and no Python: AOTInductor's."""
    return text.lstrip().startswith(("#include", "//", "/*", "#if", "#pragma"))


class _Definition(NamedTuple):
    """A kernel as a statement of the module defines it; `line` is 1-based."""

    name: str
    language: str
    source: str
    line: int


def _definitions(text: str, called: Container[str]) -> Iterator[_Definition]:
    """Each kernel defined at module level: by `async_compile`, or by any other call if it is `called` as a kernel."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} of the output code is not Python: {error.msg}") from error
    lines = text.split("\n")
    above: ast.stmt | None = None
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=maker) as call) if (
                name in called or _is_compiler(maker)
            ):
                language = maker.attr if isinstance(maker, ast.Attribute) else ast.unparse(maker)
                constant = source_constant(call)
                source = str(constant.value) if constant else _whole(statement, above, lines)
                source = source.strip("\n") + "\n"
                yield _Definition(name, _LANGUAGES.get(language, language), source, statement.lineno)
            case _:
                pass
        above = statement


def _cpp_definitions(text: str, called: Container[str]) -> Iterator[_Definition]:
    """Each kernel that a C++ wrapper defines and calls. Sources in a Python wrapper go by other names."""
    for kernel in _CPP_KERNEL.finditer(text):
        if kernel[1] in called:
            yield _Definition(kernel[1], "cpp", kernel[0] + "\n", 1 + text.count("\n", 0, kernel.start()))


def _is_compiler(maker: ast.expr) -> bool:
    return isinstance(maker, ast.Attribute) and isinstance(maker.value, ast.Name) and maker.value.id == "async_compile"


def _whole(definition: ast.stmt, above: ast.stmt | None, lines: Sequence[str]) -> str:
    """The statement as it is written, below the text that stands before it: torch_npu prints the kernel's graph there,
    where the kernel is one that it runs op by op (`async_compile.import_fx(NAME, kernel_meta={...})`).
    """
    first = definition.lineno
    match above:
        case ast.Expr(value=ast.Constant(value=str())):
            first = above.lineno
        case _:
            pass
    return "\n".join(lines[first - 1 : definition.end_lineno])


def _calls(text: str) -> list[tuple[str, int]]:
    """(debug handle, 1-based line of the call below its comment), in order."""
    calls = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "[Provenance" in line and (match := _HANDLES.search(line)):
            calls += [(handle.strip(), _called_below(lines, number, handle)) for handle in match[1].split(",")]
    return calls


def _calls_without_handles(text: str) -> tuple[list[tuple[str, int]], dict[str, list[str]]]:
    """The calls of code that Inductor wrote without tracking provenance, as in most traces, numbered as their handles
    are; and the nodes of each that the comment above a Triton kernel's definition lists.
    """
    nodes: dict[str, list[str]] = {}
    above: list[str] = []
    calls: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            above += _COMPUTED.findall(line)
        elif (definition := _DEFINITION.match(line)) is not None:
            nodes[definition[1]], above = above, []
        elif (launch := _LAUNCH.match(line)) is not None and (launch["extern"] or launch["kernel"] in nodes):
            calls.append((f"{launch['extern'] or launch['kernel']}:{len(calls) + 1}", number))
    calls = calls or _calls_in_cpp(text)
    return calls, {handle: nodes.get(handle.rpartition(":")[0], []) for handle, _ in calls}


def _calls_in_cpp(text: str) -> list[tuple[str, int]]:
    """The calls of a C++ wrapper: of the kernels that it defines, and of ATen's functions for a device."""
    defined = {kernel[1] for kernel in _CPP_KERNEL.finditer(text)}
    calls: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if (launch := _CPP_LAUNCH.match(line)) is not None and (launch["extern"] or launch["kernel"] in defined):
            calls.append((f"{launch['extern'] or launch['kernel']}:{len(calls) + 1}", number))
    return calls


def _called_below(lines: Sequence[str], comment: int, handle: str) -> int:
    """The next line that names the kernel: on a GPU a line that gets the stream may stand between. Else the next
    statement.
    """
    name = handle.strip().rpartition(":")[0]
    below = [
        number
        for number in range(comment + 1, min(comment + 1 + _NEAR, len(lines)))
        if not lines[number].lstrip().startswith(("#", "//"))
    ]
    named = (number for number in below if name in lines[number])
    return next(named, below[0] if below else comment) + 1


_Prefixes = Mapping[str, list[str]]  # a function of the code -> the prefixes of the nodes that it computes


def resolved(code: OutputCode, graph: Graph) -> OutputCode:
    """The code of this post-grad graph, with its kernels' nodes named as the graph names them."""
    prefixes = _prefixes(graph)
    scopes = _scopes(code.text) if prefixes else []

    def call(each: KernelCall) -> KernelCall:
        function = next((name for first, last, name in scopes if first <= each.line <= last), "")
        if function not in prefixes:
            return replace(each, nodes=tuple(name for name in each.nodes if name in graph.by_name))
        names = [name for prefix in prefixes[function] for name in _computed(each.nodes, prefix, graph)]
        return replace(each, nodes=tuple(dict.fromkeys(names)))

    def kernel(each: Kernel) -> Kernel:
        return replace(each, calls=tuple(map(call, each.calls)))

    return replace(code, kernels=tuple(map(kernel, code.kernels)))


def _prefixes(graph: Graph) -> _Prefixes:
    """Inductor calls a graph's function by the attributes that lead to it: `true_graph_0_false_graph_0`.

    Nodes that hold the same graph share its function.
    """
    holders = {node.name.rpartition(".")[0] for node in graph.nodes} - {""}
    prefixes: defaultdict[str, list[str]] = defaultdict(list)
    for holder in sorted(holders):
        above = holder.split(".")
        targets = [graph.by_name[".".join(above[: depth + 1])].target for depth in range(len(above))]
        prefixes["_".join(targets)].append(f"{holder}.")
    return prefixes


def _scopes(text: str) -> list[tuple[int, int, str]]:
    """(first line, last line, name) of each function of the code."""
    return [
        (statement.lineno, statement.end_lineno or statement.lineno, statement.name)
        for statement in ast.parse(text).body
        if isinstance(statement, ast.FunctionDef)
    ]


def _computed(names: tuple[str, ...], prefix: str, graph: Graph) -> list[str]:
    """The nodes below `prefix` that these names stand for, and the op that holds them.

    A name that is also one of the op's own operands is listed for every kernel of the branch: it counts where the
    kernel computes a neighbour of that node, or nothing else.
    """
    outer = prefix[:-1].rpartition(".")[0]
    holders = [node for node in graph.nodes if prefix[:-1] in node.inputs]
    listed = {source for holder in holders for source in (holder.name, *holder.inputs)}
    inside = [node for name in names if (node := graph.by_name.get(prefix + name)) and _is_computed(node)]
    sure = {node.name for node in inside if _bare(node.name, prefix, outer) not in listed}

    def counts(node: Node) -> bool:
        users = (graph.by_name[name] for name in sure)
        return (
            not sure
            or node.name in sure
            or bool(sure & set(node.inputs))
            or any(node.name in user.inputs for user in users)
        )

    return [*(node.name for node in inside if counts(node)), *(holder.name for holder in holders)]


def _bare(name: str, prefix: str, outer: str) -> str:
    """What a node of the graph around would be called that has this node's own name."""
    own = name.removeprefix(prefix)
    return f"{outer}.{own}" if outer else own


def _is_computed(node: Node) -> bool:
    return node.op.startswith("call") and not node.target.startswith("higher_order.")
