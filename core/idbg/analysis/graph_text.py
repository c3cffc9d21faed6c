"""Read the nodes of a printed FX graph.

Torch prints a graph as Python in which each node is an annotated assignment, below a comment with the user's line:

    # File: resnet.py:143 in forward, code: out = self.conv1(x)
    convolution: "f32[1, 64, 56, 56][200704, 3136, 56, 1]cpu" = torch.ops.aten.convolution.default(relu, arg3_1, ...)

Reading the text needs no torch, so it serves every stage, cold and warm caches, and traces of another process.
"""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

import msgspec

from idbg.schema.graphs import DTYPE_OF_SHORT, Dim, Graph, GraphId, Node, Opcode, Role, Sym, TensorMeta

_TENSOR = re.compile(r"^(\w+)\[(.*?)\](?:\[(.*?)\])?([\w:]*)$")
_PLACE = re.compile(r"#.*?\bFile: (.+?):(\d+) in .*?, code: (.*)$")
_CLASS_NAME = re.compile(r"^class <\w+>\(", re.MULTILINE)
_NO_DIMS = re.compile(r"(?<=: )([a-z]+\d+)\[\](?=[,) ])")  # an annotation of a scalar that torch of 2023 does not quote
_NO_PLACE = re.compile(r"#\s*No stacktrace found")
_DEFINED = re.compile(r'^\s+(\w+)(?:: (?:"[^"]*"|\w+\[[^\]]*\]))?(?:,|\s*$|\s+#| =)')
_ARGUMENT = re.compile(r'(\w+)\s*: "[^"]*"')
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w|\s*=[^=])")
# Python's operator -> the function of `operator` that FX holds
_BINARY = {
    getattr(ast, name): function
    for name, function in (
        *(
            ("Add", "add"),
            ("Sub", "sub"),
            ("Mult", "mul"),
            ("Div", "truediv"),
            ("FloorDiv", "floordiv"),
            ("Mod", "mod"),
        ),
        *(("MatMult", "matmul"), ("Pow", "pow"), ("BitAnd", "and_"), ("BitOr", "or_"), ("BitXor", "xor")),
        *(("LShift", "lshift"), ("RShift", "rshift"), ("Lt", "lt"), ("LtE", "le"), ("Gt", "gt"), ("GtE", "ge")),
        *(("Eq", "eq"), ("NotEq", "ne"), ("USub", "neg"), ("Invert", "invert"), ("UAdd", "pos"), ("Not", "not_")),
    )
}
_NO_TENSOR = re.compile(
    r"\b(sym_(size|stride|numel|storage_offset|constrain)\w*|_assert\w*|_set_grad_enabled|setitem"
    r"|\w+_nesting|_sink_tokens|lazy_load_decompositions)\b|_autocast$"
)
_MASK = re.compile(r"\[(?:True|False)(?:, (?:True|False))*\]$")  # which of its results a backward op gives
# a higher-order op whose value is what one of the graphs that it is given returns -> which of them
_RETURNING = {"higher_order.cond": 0, "higher_order.while_loop": 1, "higher_order.invoke_subgraph": 0}
_ROLES: tuple[tuple[str, Role], ...] = (
    ("ParamAOTInput", "weight"),
    ("BufferAOTInput", "buffer"),
    ("TangentAOTInput", "tangent"),
    ("SavedForBackwards", "saved"),
)


class UserLine(NamedTuple):
    """A line of the user's that a printed graph names: its file, number (from 1) and text."""

    file: str = ""
    line: int = 0
    code: str = ""


def read_graph(text: str, graph: GraphId, symbols: Mapping[str, Sym] | None = None) -> Graph:
    """The graph that this text prints. `symbols` gives hints and ranges by expression, where they are known.

    The nodes of a graph that a node holds, as a torch.cond its branches, stand before it: "true_graph_0.sin".
    Raises ValueError where the text is not a printed graph.
    """
    printed = _Text(list(_places(text)), text.splitlines(), symbols or {}, {})
    return Graph(graph, tuple(_Reader(printed, _outermost(text)).nodes), text)


def returns_no_tensor(target: str) -> bool:
    """Whether this op's own name says so: a size, an assertion, a switch of autograd or autocast, a write in place."""
    return bool(_NO_TENSOR.search(target))


def code_lines(text: str) -> dict[str, int]:
    """Node name -> the 1-based line of the text that defines it (a placeholder: where the signature names it)."""
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("def forward(") and line.rstrip().endswith(":"):
            for name in _ARGUMENT.findall(line):
                lines.setdefault(name, number)
        elif (match := _DEFINED.match(line)) and match[1] not in ("return", "def", "class"):
            lines.setdefault(match[1], number)
    return lines


def tensor_of(annotation: str, symbols: Mapping[str, Sym]) -> TensorMeta | None:
    """`f32[8, s0][s0, 1]cuda:0` as a record; None for what is no tensor ("Sym(s0)")."""
    match = _TENSOR.match(annotation)
    if not match or match[1] not in DTYPE_OF_SHORT:
        return None
    short, shape, stride, device = match.groups()
    return TensorMeta(DTYPE_OF_SHORT[short], _dims(shape, symbols), _dims(stride or "", symbols), device)


def _dims(text: str, symbols: Mapping[str, Sym]) -> tuple[Dim, ...]:
    return tuple(int(dim) if dim.lstrip("-").isdigit() else symbols.get(dim, Sym(dim)) for dim in _split(text) if dim)


def _split(text: str) -> Iterator[str]:
    """Split at the commas that stand in no bracket: "Max(1, s0), 4" has two dims."""
    depth, start = 0, 0
    for position, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    yield text[start:].strip()


class _Class(NamedTuple):
    """One printed graph: its forward method, and by name the graphs that it holds."""

    forward: ast.FunctionDef
    inner: Mapping[str, "_Class"]


def _outermost(text: str) -> _Class:
    text = _CLASS_NAME.sub("class Graph(", text, count=1)  # torch prints `class <lambda>(...)`
    try:
        module = ast.parse(_NO_DIMS.sub(r'"\1[]"', text) if _NO_DIMS.search(text) else text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} of the printed graph is not Python: {error.msg}") from error
    outermost = next(_classes(module.body), None)
    if outermost is None:
        raise ValueError("the text holds no class with a forward method")
    return outermost[1]


def _classes(body: list[ast.stmt]) -> Iterator[tuple[str, _Class]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            for inner in statement.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == "forward":
                    yield statement.name, _Class(inner, dict(_classes(statement.body)))


def user_lines(text: str) -> Iterator[UserLine]:
    """The user's lines that the text names, in its order."""
    yield from (place for _, place in _places(text) if place.file)


def _places(text: str) -> Iterator[tuple[int, UserLine]]:
    for number, line in enumerate(text.splitlines(), 1):
        if "#" not in line:
            continue
        if match := _PLACE.search(line):
            yield number, UserLine(match[1], int(match[2]), match[3].strip())
        elif _NO_PLACE.search(line):
            yield number, UserLine()


def _place_above(places: list[tuple[int, UserLine]], line: int) -> UserLine:
    position = bisect_left(places, line, key=lambda place: place[0])
    return places[position - 1][1] if position else UserLine()


class _Text(NamedTuple):
    """What the readers of one text share."""

    places: list[tuple[int, UserLine]]
    lines: list[str]
    symbols: Mapping[str, Sym]
    tensors: dict[str, tuple[TensorMeta, ...]]  # by annotation: most of a graph's are alike


class _Reader:
    """Turns the statements of one printed graph into nodes; knows which names are nodes already."""

    def __init__(self, text: _Text, printed: _Class) -> None:
        self.text = text
        self.inner = printed.inner
        self.nodes: list[Node] = []
        self.known: dict[str, int] = {}
        self.returned: dict[str, tuple[TensorMeta, ...]] = {}  # by each graph that a node holds
        for argument in printed.forward.args.args[1:]:
            self.argument(argument, text.lines[argument.lineno - 1])
        for statement in printed.forward.body:
            place = _place_above(text.places, statement.lineno)
            self.statement(statement, place, text.lines[statement.lineno - 1])
        _fill_tuples(self.nodes)

    def add(self, node: Node) -> None:
        self.known[node.name] = len(self.nodes)
        self.nodes.append(node)

    def argument(self, argument: ast.arg, line: str) -> None:
        if argument.annotation is not None:
            self.placeholder(argument.arg, _annotation(argument.annotation), line, argument.lineno)

    def placeholder(self, name: str, annotation: str, line: str, number: int) -> None:
        role: Role = "tangent" if name.startswith("tangents_") else "input"
        role = next((known for marker, known in _ROLES if marker in line), role)
        self.add(
            Node(
                name=name,
                op="placeholder",
                target=name,
                tensors=self.tensors(annotation),
                role=role,
                code_line=number,
            )
        )

    def tensors(self, annotation: str) -> tuple[TensorMeta, ...]:
        if (known := self.text.tensors.get(annotation)) is None:
            tensor = tensor_of(annotation, self.text.symbols)
            known = self.text.tensors[annotation] = (tensor,) if tensor else ()
        return known

    def statement(self, statement: ast.stmt, place: UserLine, line: str) -> None:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                self.placeholder(name, _annotation(statement.annotation), line, statement.lineno)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.assign(name, value, _annotation(statement.annotation), place)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=source)) if source in self.known:
                self.rename(source, name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not isinstance(value, ast.Constant):
                self.assign(name, value, "", place)
            case ast.Return(value=ast.expr() as value):
                self.add(
                    Node(
                        name="output", op="output", target="output", args=self.source(value),
                        inputs=self.inputs(value), role="output", code_line=statement.lineno,
                    )
                )  # fmt: skip
            case _:
                pass  # `x = y = None`, which frees names, and fx_pytree's unpacking: no nodes

    def rename(self, source: str, name: str) -> None:
        """Dynamo prints `l_x_ = L_x_`: the argument L_x_ is the node l_x_."""
        position = self.known.pop(source)
        old = self.nodes[position]
        self.known[name] = position
        self.nodes[position] = Node(
            name=name, op="placeholder", target=source, tensors=old.tensors, role=old.role, code_line=old.code_line
        )

    def assign(self, name: str, value: ast.expr, annotation: str, place: UserLine) -> None:
        op, target, args = self.operation(value)
        if op == "get_attr" and target in self.inner:
            self.held(name, self.inner[target])
        inputs, tensors = self.inputs(value), self.tensors(annotation) or self.value_of_graph(target, value)
        unknown = op.startswith("call") and not tensors and not self.no_tensor(target, annotation, inputs)
        self.add(
            Node(
                name=name, op=op, target=target, args=args, inputs=inputs, tensors=tensors, unknown=unknown,
                file=place.file, line=place.line, code=place.code, code_line=value.lineno,
            )
        )  # fmt: skip

    def held(self, name: str, printed: _Class) -> None:
        """The nodes of a graph that the node `name` holds. What it is given was computed in the graph around it."""
        for node in (nodes := _Reader(self.text, printed).nodes):
            if node.op != "output":
                inputs = tuple(f"{name}.{source}" for source in node.inputs)
                role: Role = "intermediate" if node.role == "input" else node.role
                self.nodes.append(msgspec.structs.replace(node, name=f"{name}.{node.name}", inputs=inputs, role=role))
        by_name = {node.name: node.tensors for node in nodes}
        self.returned[name] = tuple(tensor for source in nodes[-1].inputs for tensor in by_name[source])

    def value_of_graph(self, target: str, value: ast.expr) -> tuple[TensorMeta, ...]:
        """The tensors of a call whose value is what a graph returns that it is given."""
        if target not in _RETURNING or not isinstance(value, ast.Call):
            return ()
        names = [argument.id for argument in value.args if isinstance(argument, ast.Name)]
        held = [self.returned[name] for name in names if name in self.returned]
        return held[_RETURNING[target]] if len(held) > _RETURNING[target] else ()

    def no_tensor(self, target: str, annotation: str, inputs: tuple[str, ...]) -> bool:
        """Whether a call is known to return none: it is annotated as a number, named so, or arithmetic on numbers."""
        if annotation.startswith("Sym(") or returns_no_tensor(target):
            return True
        sources = [self.nodes[self.known[name]] for name in inputs]
        numbers = bool(sources) and not any(source.tensors or source.unknown for source in sources)
        return numbers and target.startswith("operator.")

    def inputs(self, value: ast.expr) -> tuple[str, ...]:
        """The nodes that an expression names, in its order."""
        text = self.source(value)
        if "'" in text or '"' in text:  # a string may hold a node's name
            found = sorted((node for node in ast.walk(value) if isinstance(node, ast.Name)), key=_place_of)
            names = [node.id for node in found]
        else:
            names = _NAME.findall(text)
        return tuple(dict.fromkeys(name for name in names if name in self.known))

    def source(self, value: ast.expr) -> str:
        """The text of an expression as it is printed: torch prints values as Python's repr does. It takes a fifth of
        the time of `ast.unparse`.
        """
        line = self.text.lines[value.lineno - 1]
        if value.end_lineno == value.lineno and line.isascii():
            return line[value.col_offset : value.end_col_offset]
        return ast.unparse(value)

    def arguments(self, call: ast.Call) -> list[str]:
        named = [f"{keyword.arg} = {self.source(keyword.value)}" for keyword in call.keywords]
        return [self.source(argument) for argument in call.args] + named

    def operation(self, value: ast.expr) -> tuple[Opcode, str, str]:
        """The opcode, the qualified target and the arguments of one right-hand side."""
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method)) if owner in self.known:
                return "call_method", method, ", ".join([owner, *self.arguments(value)])
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=module)):
                return "call_module", module, ", ".join(self.arguments(value))
            case ast.Call():
                target = self.source(value.func).removeprefix("torch.ops.")
                return "call_function", target, ", ".join(self.arguments(value))
            case ast.Subscript():
                return "call_function", "operator.getitem", f"{self.source(value.value)}, {self.source(value.slice)}"
            case ast.BinOp():
                name = f"operator.{_BINARY[type(value.op)]}"
                return "call_function", name, f"{self.source(value.left)}, {self.source(value.right)}"
            case ast.Compare(ops=[operator], comparators=[right]):
                name = f"operator.{_BINARY.get(type(operator), 'contains')}"
                return "call_function", name, f"{self.source(value.left)}, {self.source(right)}"
            case ast.UnaryOp():
                return "call_function", f"operator.{_BINARY[type(value.op)]}", self.source(value.operand)
            case ast.Attribute(value=ast.Name(id=owner)) if owner in self.known:
                return "call_function", "builtins.getattr", f"{owner}, '{value.attr}'"
            case _:
                return "get_attr", self.source(value).removeprefix("self."), ""


def _fill_tuples(nodes: list[Node]) -> None:
    """A printed tuple has no annotation: its tensors are those that are taken out of it, by their place in it.

    Where one is never taken the rest are not known to be the next, and the node stays unknown.
    """
    taken: dict[str, dict[int, tuple[TensorMeta, ...]]] = {}
    for position, node in reversed(list(enumerate(nodes))):
        if node.unknown and node.name in taken:
            places = _given(taken[node.name], node.args)
            tensors = tuple(tensor for place in places for tensor in taken[node.name][place])
            unknown = len(places) < len(taken[node.name])
            nodes[position] = node = msgspec.structs.replace(node, tensors=tensors, unknown=unknown)
        index = node.args.rpartition(", ")[2]
        if node.target == "operator.getitem" and not node.unknown and index.isdecimal():
            taken.setdefault(node.inputs[0], {})[int(index)] = node.tensors


def _given(taken: Mapping[int, object], args: str) -> list[int]:
    """The places in a tuple that are taken, up to the first that is not, but might hold something."""
    mask = _MASK.search(args)
    none = {place for place, given in enumerate(mask[0].split(", ") if mask else ()) if "False" in given}
    wanted = (place for place in range(max(taken) + 1) if place not in none)
    return list(takewhile(taken.__contains__, wanted))


def _annotation(annotation: ast.expr) -> str:
    """Torch of 2023 does not quote them."""
    return str(annotation.value) if isinstance(annotation, ast.Constant) else ast.unparse(annotation)


def _place_of(node: ast.Name) -> tuple[int, int]:
    return node.lineno, node.col_offset
