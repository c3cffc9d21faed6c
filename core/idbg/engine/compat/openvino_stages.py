"""OpenVINO as its torch.compile backend calls it: its models before and after its transformations."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from torch.fx import GraphModule

from idbg.engine.compat.origins import source_name

_NO_WEIGHTS = "/dev/null"  # a serialised model's constants are not shown


class Executed(Protocol):
    """OpenVINO's compiled model."""

    def get_runtime_model(self) -> object:
        """The model that is executed, after all transformations."""


Compiled = Callable[[GraphModule, object, Callable[[], Executed]], Executed]
"""Called in place of a compile: with the graph, the model, and the compile itself, which returns the compiled model."""


def wrappers(compiled: Compiled) -> Mapping[str, object]:
    """What to call in place of the functions of the feature "OpenVINO stages".

    OpenVINO compiles a graph at its first call: only then is there a model.
    """
    compiling: list[GraphModule] = []

    def openvino_compile(call: Callable[..., Executed], gm: GraphModule, *args: object, **kwargs: object) -> Executed:
        compiling.append(gm)
        try:
            return call(gm, *args, **kwargs)
        finally:
            compiling.remove(gm)

    def compile_model(
        call: Callable[..., Executed], core: object, model: object, *args: object, **kwargs: object
    ) -> Executed:
        if not compiling:
            return call(core, model, *args, **kwargs)
        return compiled(compiling[-1], model, lambda: call(core, model, *args, **kwargs))

    return {"openvino_compile": openvino_compile, "Core.compile_model": compile_model}


def save(model: object, file: Path) -> None:
    """Write a model as XML, without its constants."""
    sys.modules["openvino"].serialize(model, str(file), _NO_WEIGHTS)


def origins(gm: GraphModule) -> dict[str, str]:
    """The nodes of a graph, which layers are named after, and the nodes of Dynamo's or AOTAutograd's they came from."""
    return {node.name: source_name(node) for node in gm.graph.nodes}
