"""Explain graph breaks in plain words, and suggest what to do about them.

By torch's titles of breaks, of which it has 560: those that programs meet are here; others keep its own words.
"""

import re
from collections.abc import Iterator

from idbg.analysis.decisions.stacks import whose
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.schema.decisions.dynamo import GraphBreak

_BUILTIN = re.compile(r"builtin operator `(.+?)`")
_FUNCTION = re.compile(r"the (?:builtin|function|Python builtin)?\s*`(.+?)\.?`")
_EXPLICIT = "Call to `torch._dynamo.graph_break()`"
_DISABLED = "a function that the program keeps from being compiled is called"
_WORDS: dict[str, str] = {
    "Data-dependent branching": "Python branches on the value of a tensor",
    "Data dependent operator": "an op gives Python a tensor's value",
    "Data-dependent branching with non-constant __bool__": "Python branches on what an object's __bool__ computes",
    "Data-dependent assertion failed (cannot compile partial graph)": "an assert asks for a tensor's value",
    "Dynamic shape operator": "the shape of an op's result depends on values",
    "Dynamic shape operator (no meta kernel)": "the shape of an op's result depends on values",
    "Dynamic slicing with Tensor arguments": "a slice's bounds are tensors",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": ".item() takes a tensor's value to Python",
    "Tensor.tolist() with non-integer tensor": ".tolist() takes a tensor's values to Python",
    "Tensor.numpy() with trace_numpy=False": ".numpy() leaves torch",
    "Unsupported Tensor.backward() call": ".backward() is called inside of what is compiled",
    "Attempt to trace generator": "a generator function is compiled: what it yields cannot be a graph",
    "Attempted to wrap RNN, GRU, or LSTM": "torch does not trace RNN, GRU and LSTM",
    "Attempted to wrap sparse Tensor": "torch does not trace sparse tensors",
    _EXPLICIT: "the program asks for a break here",
    "Call to `torch.compiler.disable()`": "the program keeps this function from being compiled",
    "Skip calling `torch.compiler.disable()`d function": _DISABLED,
    "Skip inlining `torch.compiler.disable()`d function": _DISABLED,
    "Graph break under GenericContextWrappingVariable": "a break lies within a context manager of the program's own",
    "Unsupported context manager": "a context manager cannot be traced",
    "graph break in loop": "a break lies within a loop: the whole function runs in eager",
    "Dynamo recompile limit exceeded": "it was compiled too often",
    "Attempted to call function marked as skipped": "a function that torch never traces is called",
    "Attempted to inline function marked as skipped": "a function that torch never traces is called",
    "logging.Logger method not supported for non-export cases": "it logs",
    "Observed exception": "the traced code raises an exception",
    "copy.deepcopy()": "copy.deepcopy() is called",
    "Unsupported function call": "something is called that torch cannot trace",
    "Unsupported method call": "a method is called that torch cannot trace",
    "Backend compiler exception": "the backend refused the graph",
    "Fake tensor propagation exception": "an op does not run on tensors without values",
    "Operator does not support running with fake tensors": "an op does not run on tensors without values",
    "Inplace op on input tensor": "an input is changed in place in a way that torch cannot trace",
    "Import failure": "an import inside of what is compiled fails",
}
_SET = "torch._dynamo.config."
_TRIES: dict[str, tuple[str, str]] = {
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": (
        "let graphs hold numbers that come from tensors",
        "capture_scalar_outputs",
    ),
    "Dynamic shape operator": ("let graphs hold shapes that depend on values", "capture_dynamic_output_shape_ops"),
    "Attempted to wrap RNN, GRU, or LSTM": ("let torch try to trace it", "allow_rnn"),
}
_FIXES: dict[str, tuple[str, str]] = {
    "Data-dependent branching": (
        "let a graph choose: by element, or between whole branches",
        "torch.where(condition, a, b)  # or torch.cond(condition, f, g, (x,))",
    ),
    "Attempt to trace generator": ("compile the function that calls the generator", ""),
    "Unsupported Tensor.backward() call": ("call .backward() outside of what is compiled", ""),
}
_REORDER = f"{_SET}reorderable_logging_functions.add(print)"
_PRINTS = Suggestion("have it done after the graph", _REORDER)
_PRINTS_TEXT = Suggestion(
    "print one f-string, and have it done after the graph: what waits is called with tensors, constants and f-strings, "
    "and without keywords",
    _REORDER,
)
_NO_REORDER = "attempted to reorder a debugging function that can't actually be reordered"
_ARGUMENT = re.compile(r"\.(\w+)'>")
_CAN_WAIT = frozenset({"TensorVariable", "ConstantVariable", "StringFormatVariable"})


def words(graph_break: GraphBreak) -> str:
    """What stopped the graph: ours where it is a break that we know, else torch's."""
    if graph_break.way == "limit":
        return graph_break.reason.partition(";")[0]
    if graph_break.kind == "Failed to trace builtin operator" and (found := _BUILTIN.search(graph_break.explanation)):
        return f"{found[1]}() cannot be in a graph"
    if graph_break.kind == _EXPLICIT and whose(graph_break.file) == "torch":
        return "torch asks for a break in code of its own"
    known = _WORDS.get(graph_break.kind)
    if known is not None and graph_break.kind.endswith("marked as skipped"):
        name = _FUNCTION.search(graph_break.explanation)
        return f"{known}: {name[1]}" if name else known
    return known or graph_break.kind or graph_break.reason.partition("\n")[0]


def suggestions(graph_break: GraphBreak) -> Iterator[Suggestion]:
    """What can be done about it; none where torch's hints say all that is known."""
    if graph_break.kind == "Failed to trace builtin operator" and "`print`" in graph_break.explanation:
        plain = _CAN_WAIT.issuperset(_ARGUMENT.findall(graph_break.context)) and graph_break.context.endswith("False")
        yield _PRINTS if plain else _PRINTS_TEXT
    if graph_break.kind == _NO_REORDER or "can only reorder functions" in graph_break.reason:
        yield _PRINTS_TEXT
    if (tried := _TRIES.get(graph_break.kind)) is not None:
        yield Suggestion(tried[0], f"{_SET}{tried[1]} = True", settings={f"dynamo.{tried[1]}": True})
    if (fix := _FIXES.get(graph_break.kind)) is not None:
        yield Suggestion(*fix)


WAYS: dict[str, str] = {
    "call": "Python makes this call, and the rest is another graph",
    "branch": "Python chooses, and each arm is another graph",
    "rest": "the rest of the function runs in eager",
    "frame": "the whole function runs in eager",
    "limit": "calls that no compiled version fits run in eager",
    "": "",
}
"""How the function goes on."""
