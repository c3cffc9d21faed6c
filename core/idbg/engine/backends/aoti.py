"""The backend `aoti`: AOTInductor, for inference. Weights become constants of a library that C++ can call."""

from typing import cast

import torch
from torch.fx import GraphModule

from idbg.engine.backends.base import Job
from idbg.engine.compat import aoti, fx, lowering
from idbg.engine.compat.lowering import Compiled
from idbg.engine.compat.torch_types import tree_map_only
from idbg.schema import events
from idbg.schema.errors import BadInput


class Aoti:
    """Exports, compiles ahead of time and runs the library; rules are checked on the way."""

    name = "aoti"
    checks = True

    def compile(self, job: Job) -> Compiled:
        """Raises BadInput for what AOTInductor does not support: gradients, numbers as arguments or results."""
        arguments = [node for node in job.gm.graph.nodes if node.op == "placeholder"]
        _check_no_gradients(job)
        constants = {
            node.name: value
            for node, value in zip(arguments, job.real_inputs, strict=True)
            if isinstance(value, torch.Tensor)
            and (isinstance(value, torch.nn.Parameter) or fx.argument_of(node).is_static)
        }
        tensor_inputs = [
            at
            for at, node in enumerate(arguments)
            if node.name not in constants and isinstance(aoti.value_of(node), torch.Tensor)
        ]
        results = _results(job.gm)
        try:
            with_constants = aoti.holding(job.gm, constants)
        except LookupError as error:
            raise BadInput(
                f"AOTInductor takes tensors alone, and this graph is also given a number ({error.args[0]})",
                hint="compile with dynamic=False, or another backend",
            ) from error

        def inner(gm: GraphModule, inputs: list[object], **kwargs: object) -> Compiled:
            if changed := aoti.changed_constants(gm):
                text = f"the library has weights of its own: {', '.join(changed)} will change there, not in the program"
                job.capture.emit(events.Noted(level="warning", text=text))
            return job.lowering("inference", lowering.compile_fx_inner)(gm, inputs, **kwargs)

        fake_inputs = [
            aoti.value_of(arguments[at]) for at in tensor_inputs
        ]  # with symbolic sizes; job.inputs may be real
        library = aoti.compile_aot(with_constants, fake_inputs, inner, job.options)
        if not job.lowers:
            return job.gm.forward
        run = aoti.load(library, _device(job.real_inputs))

        def call(*values: object) -> object:
            found = iter(run([cast("torch.Tensor", values[at]) for at in tensor_inputs]))
            return tree_map_only(torch.fx.Node, lambda _: next(found), results)

        return call


def _check_no_gradients(job: Job) -> None:
    if torch.is_grad_enabled() and any(
        isinstance(each, torch.Tensor) and each.requires_grad for each in job.real_inputs
    ):
        raise BadInput(
            "AOTInductor compiles for inference alone, and this program records gradients",
            hint="call it under torch.no_grad(), without a loss; or compile for aot or inductor",
        )


def _results(gm: GraphModule) -> object:
    """What the graph returns, with a node for each tensor. Raises BadInput if it returns a number."""
    (output,) = (node for node in gm.graph.nodes if node.op == "output")
    numbers = [node.name for node in output.all_input_nodes if not isinstance(aoti.value_of(node), torch.Tensor)]
    if numbers:
        raise BadInput(
            f"AOTInductor returns tensors alone, and this graph also returns a number ({numbers[0]})",
            hint="compile with dynamic=False, or another backend",
        )
    return output.args[0]


def _device(values: list[object]) -> torch.device:
    return next((each.device for each in values if isinstance(each, torch.Tensor)), torch.device("cpu"))
