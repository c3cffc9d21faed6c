"""Private names of torch for repro scripts.

Where another version of torch lacks a name, less is written, and the repro's trial run shows it.
"""

import ast
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from idbg.engine.compat.names import find, instead_of, internals

_CONFIGS = (internals._dynamo.config, internals._inductor.config, internals._functorch.config)
# set by `tracing.observed`; and the one that would hide the failure
_WATCHING = (
    "suppress_errors",
    "provenance_tracking_level",
    "force_non_lazy_backward_lowering",
    "enable_autograd_cache",
    "cache_key_tag",
)


def is_op(target: str) -> bool:
    """Whether "aten.add.Tensor" is an op in this process."""
    space, _, name = target.partition(".")
    held: object = getattr(torch.ops, space, None)
    for part in name.split("."):
        held = getattr(held, part, None)
    return isinstance(held, (internals._ops.OpOverload, internals._ops.OpOverloadPacket))


def results_of(target: str) -> int:
    """How many values the op "my.fill.default" returns."""
    held: object = torch.ops
    for part in target.split("."):
        held = getattr(held, part)
    return len(held._schema.returns) if isinstance(held, internals._ops.OpOverload) else 1


@instead_of(False)
def is_inductors(op: "internals._ops.OpOverload") -> bool:
    """Whether Inductor registers the op, such as "prims.prepare_softmax_online": without it torch lacks the op."""
    return any(each is op for each in vars(find("torch._inductor.inductor_prims")).values())


@instead_of(set())
def python_ops() -> set[str]:
    """Custom ops ("my::op") that Python code of this process defined, and not torch's own."""
    return {
        str(name)
        for name, op in internals._library.custom_ops.OPDEFS.items()
        if not op._init_fn.__module__.startswith("torch.")
    }


@instead_of("")
def numpy_spelling(node: Node) -> str:
    """The NumPy function of a call in a Dynamo graph: "numpy.linalg.norm", "operator.add", a method ".reshape", an
    attribute "."; "" for another call.
    """
    target: object = node.target
    if target is internals._dynamo.utils.numpy_attr_wrapper:
        return "."
    if isinstance(target, internals._dynamo.utils.numpy_method_wrapper):
        return f".{target.method}"
    if isinstance(target, internals._dynamo.utils.numpy_operator_wrapper):
        return f"operator.{target.op.__name__}"
    if isinstance(target, internals._dynamo.utils.numpy_to_tensor_wrapper):
        name = target.f.__name__
        for numpy, ours in internals._dynamo.utils.NP_TO_TNP_MODULE.items():
            if getattr(ours, name, None) is target.f and hasattr(numpy, name):
                return f"{numpy.__name__}.{name}"
    return ""


def symbol_of(node: Node) -> str:
    """The expression of a node's symbolic size ("s77"); "" for other nodes."""
    value = node.meta.get("example_value", node.meta.get("val"))
    return str(value.node.expr) if isinstance(value, torch.SymInt) else ""


def marked_dynamic(tensor: torch.Tensor) -> tuple[int, ...]:
    """The dimensions that a program marked with `torch._dynamo.mark_dynamic`."""
    return tuple(sorted(getattr(tensor, "_dynamo_dynamic_indices", ())))


@instead_of([])
def settings() -> list[str]:
    """Torch's settings that are not at their defaults, each as a line of Python."""
    return [line for config in _CONFIGS for line in _lines(config) if not any(name in line for name in _WATCHING)]


def _lines(config: Any) -> Iterator[str]:
    try:
        text = str(config.codegen_config())
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return
    for line in text.splitlines():
        try:
            set_here = ast.parse(line).body
        except SyntaxError:
            continue  # a value without a literal
        if set_here and not _is_default(config, set_here[0]):
            yield line


def _is_default(config: Any, line: ast.stmt) -> bool:
    """Whether a setting has its default: torch also lists those that were set and reset."""
    if not isinstance(line, ast.Assign):
        return False
    name = ast.unparse(line.targets[0]).removeprefix(f"{config.__name__}.")
    try:
        return bool(ast.literal_eval(line.value) == config._config[name].default)
    except (ValueError, KeyError, AttributeError, TypeError):
        return False


_AT_START = frozenset(settings())


def changed_settings() -> tuple[str, ...]:
    """The settings that changed since this process began."""
    return tuple(line for line in settings() if line not in _AT_START)


def modes() -> tuple[str, ...]:
    """The active modes under which torch compiles, as expressions of `with` statements."""
    statements = [
        f'torch.autocast("{device}", dtype={torch.get_autocast_dtype(device)})'
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    ]
    if torch.is_inference_mode_enabled():
        statements.append("torch.inference_mode()")
    elif not torch.is_grad_enabled():
        statements.append("torch.no_grad()")
    return tuple(statements)


def globals_changed() -> tuple[str, ...]:
    """Torch's global settings outside of its configs that change compiles, as lines of Python."""
    lines: list[str] = []
    if (dtype := torch.get_default_dtype()) != torch.float32:
        lines.append(f"torch.set_default_dtype({dtype})")
    if (precision := torch.get_float32_matmul_precision()) != "highest":
        lines.append(f'torch.set_float32_matmul_precision("{precision}")')
    if torch.are_deterministic_algorithms_enabled():
        lines.append("torch.use_deterministic_algorithms(True)")
    return tuple(lines)
