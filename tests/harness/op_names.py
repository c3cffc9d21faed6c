"""Writes core/idbg/analysis/op_names.txt, the names that globs of an accelerator can match: adds what this torch has.

Run: python tests/harness/op_names.py, once with each torch that is supported.
"""

import operator
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional

from idbg.analysis import ops

FILE = Path(__file__).parents[2] / "core/idbg/analysis/op_names.txt"
HIGHER_ORDER = ("cond", "while_loop", "map", "scan", "associative_scan", "flex_attention", "autograd_function_apply")
OF_INDUCTOR = ("_convolution_pointwise",)


def of_operators() -> set[str]:
    """Every operator of ATen and prims, without its overload."""
    import torch._inductor.inductor_prims
    import torch.ao.quantization.fx._decomposed

    found = (name.partition("::") for name in torch._C._dispatch_get_all_op_names())
    libraries = ("aten", "prims", "quantized_decomposed")
    short = (name.partition(".")[0] for library, _, name in found if library in libraries)
    return {name for name in short if not name.startswith("__")}


def of_python() -> Iterator[str]:
    """Every function and method that can stand in a Dynamo graph, and the classes of modules."""
    for path in ("torch", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional"):
        module = import_module(path)
        for name in dir(module):
            if name[0].islower() and callable(getattr(module, name)):
                yield ops.short_name(f"{path}.{name}")
    yield from (ops.short_name(f"operator.{name}") for name in dir(operator) if not name.startswith("_"))
    yield from (name for name in dir(torch.Tensor) if callable(getattr(torch.Tensor, name, None)))
    yield from (name.lower() for name in dir(torch.nn) if name[0].isupper())


def names() -> set[str]:
    return {name for name in {*of_operators(), *of_python(), *HIGHER_ORDER, *OF_INDUCTOR} if not name.startswith("__")}


if __name__ == "__main__":
    known = set(FILE.read_text(encoding="utf-8").split()) if FILE.exists() else set()
    FILE.write_text("\n".join(sorted(known | names())) + "\n", encoding="utf-8")
