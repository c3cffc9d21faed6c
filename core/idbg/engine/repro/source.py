"""Write a node of a graph as Python that runs without the graph."""

import ast
import builtins
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.fx.graph import inplace_methods, magic_methods

from idbg.engine.capture.fx import graph_of
from idbg.engine.compat import registrations, repros
from idbg.engine.failures.owners import OURS, is_own
from idbg.engine.repro import higher_order
from idbg.schema.graphs import Graph, GraphId, Node

# templates of FX's own code generator ("{} + {}"), and of what it writes as calls
_TEMPLATES = magic_methods | {"concat": "{} + {}", "inv": "~{}", "not_": "not {}", "is_": "{} is {}"}
_TEMPLATES["is_not"] = "{} is not {}"


def operator_statements(name: str, function: str, arguments: str) -> list[str] | None:
    """The lines that give `name` the result of `operator.FUNCTION(ARGUMENTS)`; None where no operator does it.

    Raises SyntaxError for arguments that are no Python.
    """
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    if call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = [f"({ast.unparse(each)})" for each in call.args]
    if function in ("getitem", "setitem"):
        given[1] = _index(call.args[1])
    if function == "setitem":
        return [_plain(inplace_methods[function].format(*given))]
    if function in inplace_methods:
        return [_plain(f"{name} = {given[0]}"), _plain(inplace_methods[function].format(name, *given[1:]))]
    template = _TEMPLATES.get(function)
    return [_plain(f"{name} = {template.format(*given)}")] if template is not None else None


def _plain(line: str) -> str:
    """The line without the parentheses that it does not need."""
    return ast.unparse(ast.parse(line))


def _index(index: ast.expr) -> str:
    """An index as it stands in brackets: `slice(1, None, None)` as `1:`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    text = ", ".join(map(_sliced, parts)) or "()"
    return f"{text}," if isinstance(index, ast.Tuple) and len(parts) == 1 else text


def _sliced(index: ast.expr) -> str:
    match index:
        case ast.Call(ast.Name("slice"), [first, last, step], []):
            texts = map(ast.unparse, (first, last, step))
            return ":".join("" if text == "None" else text for text in texts)
    return ast.unparse(index)


IDENTITY = "torch.ops.aten.clone.default"

# of those that take functions, what Dynamo traces when a script calls it by its name
_TAKES_FUNCTIONS = {"cond", "while_loop", "flex_attention"}
_NUMPY = ("torch._dynamo.utils.wrapped_", "torch._dynamo.utils.numpy_")


@dataclass
class NodeSource:
    """Statements of one graph, as they are written: `module` holds the functions that nodes take, where it is known;
    `arrays` are names that stand for NumPy arrays; `imports` are the packages that the statements need.
    """

    module: GraphModule | None
    arrays: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    definitions: list[str] = field(default_factory=list)
    ops: set[str] = field(default_factory=set)
    objects: list[object] = field(default_factory=list)

    @property
    def needs(self) -> tuple[set[str], list[str], set[str], list[object]]:
        """Imports, definitions that it has written, and the ops and functions that others must be found of."""
        return self.imports, self.definitions, self.ops, self.objects

    def statements(self, node: Node) -> list[str]:
        """The node as lines of Python. Raises ValueError for what only a graph module can call."""
        if node.op == "get_attr":
            return self._function(node)
        if node.op == "call_module":
            raise ValueError(f"{node.name} calls the module {node.target} of its graph: it cannot stand alone")
        name = name_of(node.name)
        if (live := self._live(node)) is not None:
            if (kernel := registrations.kernel_launched(live)) is not None:
                self.objects.append(kernel[0])
                return [_launch(node, *kernel)]
            if node.target.endswith("autograd_function_apply"):
                return [f"{name} = {self._autograd_class(node, live)}.apply({self._tensors(live)})"]
        if node.op == "call_method":
            owner, _, rest = node.args.partition(", ")
            return [_checked(node, f"{name} = {owner}.{node.target}({_spelled(rest)})")]
        if self.numpy(node):
            return self._of_numpy(node, name)
        if (lines := _as_operator(node, node.target, _spelled(node.args))) is not None:
            return lines
        if (lines := higher_order.statements(name, node.target, node.args, self._op)) is not None:
            return lines
        return [_checked(node, f"{name} = {self._target(node)}({self._args(node)})")]

    def _args(self, node: Node) -> str:
        args = _spelled(node.args)
        if node.target.endswith("higher_order.flex_attention"):
            args = args.removesuffix(", (), ()")  # tensors that the functions close over: Dynamo finds them itself
        return args

    def _target(self, node: Node) -> str:
        """The Python expression of the function that the node calls."""
        target = node.target.removeprefix("torch.ops.")
        first, _, rest = target.partition(".")
        if first == "higher_order":
            if rest not in _TAKES_FUNCTIONS:
                raise ValueError(f"{node.name} calls the higher-order op {rest}, which cannot stand alone in a script")
            return f"torch.ops.{target}"
        if not rest:
            if hasattr(builtins, target):
                return target
            raise ValueError(f"{node.name} calls {target}, which a script without the program has not")
        if repros.is_op(target):
            return self._op(target)
        live = self._live(node)
        if live is not None and inspect.isfunction(live.target) and is_own(live.target.__code__.co_filename):
            self.objects.append(live.target)
            return str(live.target.__name__)
        module = _module_of(target)
        if module is None or is_own(getattr(sys.modules[first], "__file__", None) or OURS):
            raise ValueError(f"{node.name} calls {target}, a function that a script without the program has not")
        if not module.startswith("torch._C"):
            self.imports.add(module)
        return target

    def _op(self, target: str) -> str:
        """The Python expression of an op; records what registers it."""
        space, name, *_ = target.split(".")
        op = f"{space}::{name}"
        self.ops |= set() if registrations.is_torchs(op) else {op}
        if importlib.util.find_spec(space) is not None and op not in repros.python_ops():
            self.imports.add(space)  # the package that registers it
        return f"torch.ops.{target}"

    def _of_numpy(self, node: Node, name: str) -> list[str]:
        """A call that Dynamo made of NumPy's, as the program wrote it: Python has no name for what is in the graph."""
        spelling = self.numpy(node)
        arguments = _spelled(node.args)
        for source in node.inputs:
            given = name_of(source)
            if given not in self.arrays:
                arguments = re.sub(rf"\b{re.escape(given)}\b", f"{given}.numpy()", arguments)
        self.arrays.add(name)
        self.imports.add("numpy")
        first, _, rest = arguments.partition(", ")
        if spelling == ".":
            return [_checked(node, f"{name} = {first}.{ast.literal_eval(rest)}")]
        if spelling.startswith("."):
            return [_checked(node, f"{name} = {first}{spelling}({rest})")]
        lines = _as_operator(node, spelling, arguments)
        return lines if lines is not None else [_checked(node, f"{name} = {spelling}({arguments})")]

    def numpy(self, node: Node) -> str:
        """The program's spelling of a NumPy call; "" for other nodes."""
        if not node.target.startswith(_NUMPY) or self.module is None:
            return ""
        live = next((each for each in self.module.graph.nodes if each.name == node.name), None)
        return repros.numpy_spelling(live) if live is not None else ""

    def _live(self, node: Node) -> FxNode | None:
        """The node of the module, where that is known."""
        nodes = self.module.graph.nodes if self.module is not None else ()
        return next((each for each in nodes if each.name == node.name), None)

    def _tensors(self, live: FxNode) -> str:
        return ", ".join(name_of(each.name) if isinstance(each, FxNode) else repr(each) for each in live.args[2:])

    def _autograd_class(self, node: Node, live: FxNode) -> str:
        """The custom autograd function of the program's that a node applies, as a class that comes along: its name."""
        forward, backward = (
            getattr(self.module, str(each.target)) for each in live.args[:2] if isinstance(each, FxNode)
        )
        called = re.search(r"(\w+)\.apply\(", node.code)
        below = NodeSource(None, set(), *self.needs)
        other = [f"{index}" for index in live.kwargs.get("non_differentiable_idx") or ()]  # type: ignore[union-attr]
        name = called[1] if called else node.name.title().replace("_", "")
        text = custom_function(name, forward, backward, other, below)
        taken = [each for each in self.definitions if each.startswith(f"class {name}(")]
        if taken and text not in taken:
            name = f"{name}{len(self.definitions) + 1}"
            text = custom_function(name, forward, backward, other, below)
        if text not in self.definitions:
            self.definitions.append(text)
        return name

    def _function(self, node: Node) -> list[str]:
        """A function that another node takes, as a branch of torch.cond."""
        if (live := self._live(node)) is not None and live.users and all(map(_applies_a_class, live.users)):
            return []
        inner = held_by(self.module, node)
        if inner is None:
            raise ValueError(
                f"{node.name} is a function, and of this stage only its text is known: ask for the repro of the node "
                "that it is from in the dynamo, forward or inference graph"
            )
        graph = graph_of(inner, GraphId("", "dynamo"))
        own = [each for each in graph.nodes if "." not in each.name]
        below = NodeSource(inner, set(), *self.needs)
        lines = [f"def {name_of(node.name)}({', '.join(name_of(each.name) for each in own if is_input(each))}):"]
        for each in own:
            if each.op == "get_attr" and held_by(inner, each) is None:
                raise ValueError(f"the function {node.name} holds a tensor, {each.name}: it cannot stand alone")
            if each.op == "get_attr" or each.op.startswith("call"):
                lines += ["    " + line for line in below.statements(each)]
            elif each.op == "output":
                lines.append(f"    return {each.args}")
        return lines


def custom_function(name: str, forward: GraphModule, backward: GraphModule, other: list[str], below: NodeSource) -> str:
    """A custom autograd function as Dynamo traced it, as a class. Of its results those of the indices `other` have no
    gradient.
    """
    given, steps, returned = _body(forward, below)
    (outputs, saved), (grads, back, gradients) = returned, _body(backward, below)
    assert isinstance(outputs, (tuple, list)) and isinstance(saved, (tuple, list))
    count = len(grads) - len(saved)
    marked = [f"ctx.mark_non_differentiable({', '.join(str(outputs[int(at)]) for at in other)})"] if other else []
    kept = [f"ctx.save_for_backward({', '.join(map(str, saved))})"] if saved else []
    taken = [f"{_tuple(grads[count:])} = ctx.saved_tensors"] if saved else []
    lines = [
        f"class {name}(torch.autograd.Function):",
        "    @staticmethod",
        f"    def forward({', '.join(['ctx', *given])}):",
        *(f"        {line}" for line in (*steps, *kept, *marked, f"return {_tuple(outputs)}")),
        "",
        "    @staticmethod",
        f"    def backward({', '.join(['ctx', *grads[:count]])}):",
        *(f"        {line}" for line in (*taken, *back, f"return {_tuple(gradients)}")),
    ]
    return "\n".join(lines)


def _tuple(names: Sequence[object]) -> str:
    return f"({', '.join(map(str, names))}{',' if len(names) == 1 else ''})"


def _body(module: GraphModule, below: NodeSource) -> tuple[list[str], list[str], Sequence[object]]:
    """Parameters, statements and what is returned of one half of a custom autograd function."""
    graph = graph_of(module, GraphId("", "dynamo"))
    inside = NodeSource(module, set(), *below.needs)
    steps = [
        each for each in graph.nodes if each.op.startswith("call") and not each.target.endswith("_set_grad_enabled")
    ]
    if held := [each.name for each in graph.nodes if each.op == "get_attr"]:
        raise ValueError(f"a custom autograd function holds {', '.join(held)}: it cannot stand alone")
    returned = next(node.args[0] for node in module.graph.nodes if node.op == "output")
    assert isinstance(returned, (tuple, list))
    lines = [line for each in steps for line in inside.statements(each)]
    return [name_of(each.name) for each in graph.nodes if is_input(each)], lines, returned


def _applies_a_class(node: FxNode) -> bool:
    return str(node.target).endswith("autograd_function_apply")


def _launch(node: Node, kernel: Callable[..., object], grid: Sequence[object], given: Mapping[str, object]) -> str:
    """A launch of a user's Triton kernel, as the program writes it."""
    if "functional" in node.target:
        raise ValueError(f"{node.name} launches a Triton kernel on copies: ask for its node in the dynamo graph")
    spelled = [
        f"{name}={name_of(value.name) if isinstance(value, FxNode) else repr(value)}" for name, value in given.items()
    ]
    sizes = [name_of(size.name) if isinstance(size, FxNode) else repr(size) for size in grid]
    return _checked(node, f"{kernel.__name__}[({', '.join(sizes)},)]({', '.join(spelled)})")


def is_function(graph: Graph, node: Node, module: GraphModule | None) -> bool:
    """Whether a node stands for a function that another takes: its own nodes, if any, come before it."""
    if node.op != "get_attr" or node.tensors:
        return False
    if module is not None:
        return held_by(module, node) is not None
    return any(other.name.startswith(node.name + ".") for other in graph.nodes)


def held_by(module: GraphModule | None, node: Node) -> GraphModule | None:
    """The graph that a node of `module` stands for, or one of a graph that it holds ("cond_true_1.cond_true_0")."""
    *around, _ = node.name.split(".")
    for name in around:
        targets = [each.target for each in module.graph.nodes if each.name == name] if module is not None else []
        module = getattr(module, str(targets[0]), None) if targets else None
    held = getattr(module, node.target, None) if node.op == "get_attr" else None
    return held if isinstance(held, GraphModule) else None


def is_input(node: Node) -> bool:
    return node.op == "placeholder"


def commented(node: Node, lines: Sequence[str], last: str) -> tuple[list[str], str]:
    """The lines below the user's own, where that changes; and the user's line in hand."""
    place = f"# {node.file}:{node.line}: {node.code}".rstrip(": ") if node.file else ""
    return ([place, *lines] if place and place != last else list(lines)), place or last


def name_of(name: str) -> str:
    """A node's name as Python's; of a node inside of another ("true_graph_0.sin") its own part."""
    return re.sub(r"\W", "_", name.rpartition(".")[2])


def _spelled(args: str) -> str:
    """Arguments as FX prints them, as Python reads them."""
    args = re.sub(r"<built-in function (\w+)>", r"operator.\1", args)
    return re.sub(r"<class '([\w.]+)'>", r"\1", args)


def _as_operator(node: Node, target: str, arguments: str) -> list[str] | None:
    """The lines of a call of Python's `operator`; None where it is none, or no operator does the same."""
    module, _, function = target.partition(".")
    if module != "operator":
        return None
    try:
        return operator_statements(name_of(node.name), function, arguments)
    except SyntaxError:
        raise _unspelled(node) from None


def _checked(node: Node, line: str) -> str:
    try:
        ast.parse(line)
    except SyntaxError:
        raise _unspelled(node) from None
    return line


def _unspelled(node: Node) -> ValueError:
    return ValueError(f"{node.name} is called with what has no spelling in Python: {node.args[:200]}")


def _module_of(path: str) -> str | None:
    """The module that a dotted path leads through; None if nothing is there."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:count])
        try:
            held: object = importlib.import_module(name)
        except ImportError:
            continue
        for part in parts[count:]:
            held = getattr(held, part, None)
        return name if held is not None else None
    return None
