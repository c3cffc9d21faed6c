"""Write a launch's nodes as Python that runs in eager and in float64."""

import importlib.util
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch.fx import GraphModule, Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import fx, repros
from idbg.engine.compat.torch_types import OpOverload
from idbg.engine.repro.source import name_of


@dataclass
class NodeSource:
    """Lines of Python, one per node, with `floating(DTYPE)` and `where` in place of dtypes and devices. `imports` are
    packages that register ops.
    """

    lines: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)


def node_source(gm: GraphModule) -> NodeSource:
    """The graph's computed nodes, each below the user's line. Raises ValueError for a node that cannot be written or
    needs the program.
    """
    source, last = NodeSource(), ""
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        if node.op != "call_function":
            raise ValueError(f"{node.name} calls what only a graph module can")
        file, line, _ = user_line(node.meta.get("stack_trace") or "")
        if file and (place := f"# {file}:{line}") != last:
            source.lines.append(place)
            last = place
        arguments = [_value(each) for each in node.args]
        arguments += [f"{name}={_value(each)}" for name, each in node.kwargs.items()]
        source.lines.append(f"{name_of(node.name)} = {_target(node, source.imports)}({', '.join(arguments)})")
    return source


def _target(node: Node, imports: set[str]) -> str:
    target = fx.qualified_target(node)
    if target.startswith("operator."):
        return target
    if not isinstance(node.target, OpOverload):
        raise ValueError(f"{node.name} calls {target}, which has no plain spelling")
    op = "::".join(target.split(".")[:2])
    if op in repros.python_ops():
        raise ValueError(f"{node.name} calls {op}, a custom op of the program's own, which a script without it has not")
    package = target.partition(".")[0]
    if repros.is_inductors(node.target):
        imports.add("torch._inductor.inductor_prims")
    elif package not in ("aten", "prims") and importlib.util.find_spec(package) is not None:
        imports.add(package)
    return f"torch.ops.{target}"


def _value(value: object) -> str:
    match value:
        case Node():
            return name_of(value.name)
        case torch.dtype():
            return f"floating({value})"
        case torch.device():
            return "where"
        case torch.layout() | torch.memory_format():
            return str(value)
        case bool() | int() | str() | None:
            return repr(value)
        case float():
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        case complex():
            return repr(value)
        case slice():
            return f"slice({', '.join(map(_value, (value.start, value.stop, value.step)))})"
        case dict():
            return "{" + ", ".join(f"{key!r}: {_value(each)}" for key, each in value.items()) + "}"
        case _:
            return _sequence(value)


def _sequence(value: object) -> str:
    if isinstance(value, tuple):
        return f"({''.join(_value(each) + ', ' for each in value)})"
    if isinstance(value, list) or (isinstance(value, Iterable) and type(value).__name__ == "immutable_list"):
        return f"[{', '.join(_value(each) for each in value)}]"
    raise ValueError(f"{str(value)[:80]} has no spelling in Python")
