"""Run a program once more with other compilers observed, and find the first wrong layer of what they compiled."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import torch

from idbg.engine.compat import iree as iree_modules
from idbg.engine.compat import openvino as openvino_models
from idbg.engine.compat.hooks import Native
from idbg.engine.kerneldiff.layers import iree, openvino
from idbg.engine.kerneldiff.layers.findings import LayerFindings
from idbg.engine.kerneldiff.layers.judged import NotJudged
from idbg.engine.kerneldiff.sides.run import Call, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K
from idbg.schema.errors import first_line
from idbg.schema.remarks import Remark

_Observed = Callable[[list[str]], AbstractContextManager[list[Native]]]
_Search = Callable[[Native, float], LayerFindings | None]
_OPENVINO: tuple[str, _Observed, _Search] = ("OpenVINO", openvino_models.observed_openvino, openvino.wrong_layers)
_IREE: tuple[str, _Observed, _Search] = ("IREE", iree_modules.observed_iree, iree.wrong_layers)
_COMPILERS = {
    "openvino.frontend.pytorch.torchdynamo.execute": _OPENVINO,
    "iree.turbine.dynamo.backends.base": _IREE,
}
"""By the module that a backend imports: the compiler, what observes it, and the search in one of its graphs."""


def is_observable() -> bool:
    """Whether the process has a compiler whose layers can be observed."""
    return any(module in sys.modules for module in _COMPILERS)


def first_wrong_layers(
    subject: Subject,
    compile: Callable[[Call], Call],
    backward: bool,
    note: Callable[[Remark], None],
    smallest_k: float = KERNEL_K,
) -> LayerFindings | None:
    """The layers and stages of the first wrong graph; None where no graph can be observed, or none is wrong. `note` is
    called for what could not be judged.
    """
    graphs = list(_graphs(subject, compile, backward, note))
    unjudged: dict[str, Remark] = {}
    for k in dict.fromkeys((KERNEL_K, smallest_k)):
        for name, search, graph in graphs:
            try:
                if (found := search(graph, k)) is not None:
                    return found
            except NotJudged as error:
                unjudged[name] = Remark("layers not judged", name, (error.remark,))
            # Broad on purpose: the compiler runs with outputs that the program does not have
            except Exception as error:
                unjudged[name] = Remark("layers not judged", name, (Remark("error", detail=first_line(error)),))
    for remark in unjudged.values():
        note(remark)
    return None


def _graphs(
    subject: Subject, compile: Callable[[Call], Call], backward: bool, note: Callable[[Remark], None]
) -> Iterator[tuple[str, _Search, Native]]:
    """Every graph that an observed compiler is given, in the order in which they are compiled."""
    observed: list[tuple[str, _Search, list[Native]]] = []
    problems: list[str] = []

    def around(stack: ExitStack) -> Call:
        torch.compiler.reset()
        for module, (name, observe, search) in _COMPILERS.items():
            if module in sys.modules:
                observed.append((name, search, stack.enter_context(observe(problems))))
        return compile(subject.model)

    side = run_side("layers", subject, around, backward)
    if side.error is not None:
        problems.append(first_line(side.error))
    for text in problems[:1]:
        note(Remark("layers not judged", ", ".join(name for name, *_ in observed), (Remark("error", detail=text),)))
    for name, search, graphs in observed:
        yield from ((name, search, graph) for graph in graphs)
