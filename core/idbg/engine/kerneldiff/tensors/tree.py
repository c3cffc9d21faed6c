"""Name the members of a model's outputs or inputs by the Python expressions that reach them.

`out`, `out[0]`, `out["logits"]`, `out.last_hidden_state`: the members of two sides are paired by these names.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType

import torch

from idbg.engine.compat.torch_types import containers, tree_flatten, tree_map
from idbg.engine.kerneldiff.tensors.wrapped import parts

Leaves = Mapping[str, object]
Children = list[tuple[str, object]]

AFTER = " (after)"  # what the name of a tensor ends with that a run wrote to

OPAQUE = (torch.Tensor, torch.nn.Module, str, bytes, type, ModuleType, FunctionType, MethodType)


@dataclass(frozen=True)
class Repeated:
    """Stands for a container inside of itself, by its first name."""

    name: str


def leaves(value: object, name: str = "out") -> dict[str, object]:
    """Every member that is no container, by name and in order. An empty container is a leaf, and `Again` ends a cycle.

    Of an object of an unknown class only the tensors that its attributes lead to are members.
    """
    return dict(_walk(value, name, {}))


def nested(value: object, name: str) -> dict[str, torch.Tensor]:
    """The nested tensors among the members, of which `leaves` has the components."""
    found: dict[str, torch.Tensor] = {}
    dict(_walk(value, name, {}, found))
    return found


def shared(named: Leaves) -> dict[str, str]:
    """Name of a tensor that is there twice -> the first name of the same object."""
    first: dict[int, str] = {}
    tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
    return {name: first[id(value)] for name, value in tensors.items() if first.setdefault(id(value), name) != name}


def snapshot(named: Leaves) -> dict[str, object]:
    """The leaves with tensors copied, each once: models return views of inputs and buffers, which the next side
    changes, and CUDA graphs write the next run's outputs over this one's. Of a tensor that wraps others, those.
    """
    copies: dict[int, dict[str, torch.Tensor]] = {}
    made: dict[str, object] = {}
    for name, value in named.items():
        if isinstance(value, torch.Tensor):
            made |= {_stepped(name, step): copy for step, copy in _copied(value, copies).items()}
        else:
            made[name] = value
    return made


def mapped(value: object, function: Callable[[torch.Tensor], object]) -> object:
    """The same structure with each tensor replaced once; containers unknown to pytree are unchanged."""
    made: dict[int, object] = {}

    def once(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = function(leaf)
        return made[id(leaf)]

    return tree_map(once, value)


def _copied(value: torch.Tensor, copies: dict[int, dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    if id(value) not in copies:
        held = parts(value) or {"": value}
        copies[id(value)] = {step: tensor.detach().clone() for step, tensor in held.items()}
    return copies[id(value)]


def _stepped(name: str, step: str) -> str:
    """`out.a`, `grad(weight.a)`, `x.a (after)`: the step follows the name of the tensor."""
    end = ")" if name.startswith("grad(") else AFTER if name.endswith(AFTER) else ""
    return f"{name.removesuffix(end)}{step}{end}"


def _walk(
    value: object, name: str, above: Mapping[int, str], nested: dict[str, torch.Tensor] | None = None
) -> Iterator[tuple[str, object]]:
    if id(value) in above:
        yield name, Repeated(above[id(value)])
        return
    children = _children(value)
    if children is None:
        yield name, value
        return
    if nested is not None and isinstance(value, torch.Tensor):
        nested[name] = value
    for step, child in children:
        yield from _walk(child, name + step, {**above, id(value): name}, nested)


def _children(value: object) -> Children | None:
    """The steps to a container's members; None for a leaf."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        return _numbered(value.unbind())
    if isinstance(value, OPAQUE) or value is None:
        return None
    if dataclasses.is_dataclass(value):
        fields = [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
        members = fields if not isinstance(value, Mapping) else [each for each in fields if each[1] is not None]
        return [(f".{key}", child) for key, child in members] or None
    if isinstance(value, Mapping):
        return [(f"[{_key(key)}]", child) for key, child in value.items()] or None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{key}", getattr(value, key)) for key in value._fields]
    if isinstance(value, (tuple, list)):
        return _numbered(value) or None
    if type(value) in containers:
        children, _ = tree_flatten(value, is_leaf=lambda each: each is not value)
        return _numbered(children) or None
    return _attributes(value)


def _numbered(values: Iterable[object]) -> Children:
    return [(f"[{at}]", child) for at, child in enumerate(values)]


def _key(key: object) -> str:
    return '"' + key.replace('"', '\\"') + '"' if isinstance(key, str) else repr(key)


def _attributes(value: object) -> Children | None:
    """The attributes that lead to tensors, of an object without an `__eq__` of its own."""
    if type(value).__eq__ is not object.__eq__:
        return None
    attributes = [(f".{key}", child) for key, child in vars(value).items()] if hasattr(value, "__dict__") else []
    return [each for each in attributes if _holds_tensors(each[1], {id(value)})] or None


def _holds_tensors(value: object, above: set[int]) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if id(value) in above:
        return False
    above.add(id(value))  # met once is enough: what was found there was found
    return any(_holds_tensors(child, above) for _, child in _children(value) or ())


def is_opaque(value: object) -> bool:
    """Whether two such objects can be compared by identity only."""
    return type(value).__eq__ is object.__eq__ and value is not None
