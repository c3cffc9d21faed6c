"""Run a program once more with another compiler observed, and find the first graph that it computes wrong."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal, Protocol

import torch

from idbg.engine.compat.hooks import Native
from idbg.engine.compat.iree import observed_iree
from idbg.engine.compat.openvino import observed_openvino
from idbg.engine.kerneldiff.layers.any_backend import BackendSearch, observed_graphs
from idbg.engine.kerneldiff.layers.findings import LayerFindings
from idbg.engine.kerneldiff.layers.iree import IREESearch
from idbg.engine.kerneldiff.layers.openvino import OpenVINOSearch
from idbg.engine.kerneldiff.sides.run import Call, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.stages.chain import NotComparable
from idbg.schema.errors import first_line
from idbg.schema.remarks import Remark


class GraphSearch(Protocol):
    """The search in one graph."""

    def is_wrong(self) -> bool:
        """Whether the compiler computes the graph wrong."""

    def located(self) -> LayerFindings:
        """The layers and stages of a graph that is wrong."""


@dataclass(frozen=True)
class Compiler:
    """A compiler whose graphs can be searched. To add one, write a file like `openvino.py`, with a `CheckpointSearch`
    of a graph, and a recorder of the graphs that it compiles (`observed`, which gets a list for problems) in `compat/`,
    and add both to COMPILERS, with the `module` that every backend of it imports.
    """

    name: str
    module: str
    observed: Callable[[list[str]], AbstractContextManager[Sequence[Native]]]
    search: Callable[[Native, float], GraphSearch]
    unjudged: Literal["layers not judged", "search failed"] = "layers not judged"


COMPILERS = (
    Compiler("OpenVINO", "openvino.frontend.pytorch.torchdynamo.execute", observed_openvino, OpenVINOSearch),
    Compiler("IREE", "iree.turbine.dynamo.backends.base", observed_iree, IREESearch),
)


def loaded_compilers() -> list[Compiler]:
    """The compilers with layers of their own that a backend of this process may use."""
    return [each for each in COMPILERS if each.module in sys.modules]


def any_backend(name: str, dynamic: bool | None) -> Compiler:
    """What a backend compiles, whose layers cannot be observed."""
    return Compiler(name, "", observed_graphs, partial(BackendSearch, name=name, dynamic=dynamic), "search failed")


def first_wrong_graph(
    compilers: Sequence[Compiler],
    subject: Subject,
    compile: Callable[[Call], Call],
    backward: bool,
    note: Callable[[Remark], None],
    factors: Sequence[float],
) -> LayerFindings | None:
    """The layers and stages of the first graph that one of the compilers computes wrong; None where none can be
    observed, or none is wrong. `note` is called for what could not be judged; `factors`: times what rounding allows,
    the largest first.
    """
    if not compilers:
        return None
    problems: list[str] = []
    observed: list[tuple[Compiler, Sequence[Native]]] = []

    def around(stack: ExitStack) -> Call:
        torch.compiler.reset()
        observed.extend((each, stack.enter_context(each.observed(problems))) for each in compilers)
        return compile(subject.model)

    if (raised := run_side("layers", subject, around, backward).error) is not None:
        problems.append(first_line(raised))
    unjudged: dict[Compiler, tuple[Remark, ...] | str] = {each: problems[0] for each in compilers if problems}
    for k, (compiler, graphs) in product(factors, observed):
        for graph in graphs:
            try:
                search = compiler.search(graph, k)
                if search.is_wrong():
                    return search.located()
            except NotComparable as error:
                unjudged[compiler] = (error.remark,)
            # Broad on purpose: the compiler runs what the program does not have, as values for extra outputs
            except Exception as error:
                unjudged[compiler] = first_line(error)
    for compiler, why in unjudged.items():
        note(Remark(compiler.unjudged, compiler.name, why))
    return None
