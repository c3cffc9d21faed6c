"""Compare what two sides' outputs have beside numbers: class, device, aliasing, layout, strides, requires_grad.

The form is read before outputs are copied for the comparison, from the side's own tensors.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.compat import fx
from idbg.engine.kerneldiff.tensors.tree import Leaves
from idbg.schema.diff import FailedBy, FormDiff, TensorDiff


@dataclass(frozen=True)
class Form:
    """The form of an output. It shares memory with the input, parameter or buffer `of_state`, or with the earlier
    output
    `of_output`; "" for none. Strides of dims of one element are 0; a parameter's `type` is a tensor's.
    """

    type: str
    device: str
    layout: str
    stride: tuple[int, ...]
    requires_grad: bool
    of_state: str = ""
    of_output: str = ""


Forms = Mapping[str, Form]


def forms(outputs: Leaves, state: Mapping[str, Tensor]) -> dict[str, Form]:
    """The form of each tensor among the outputs; `state` are inputs, parameters and buffers, by name."""
    in_state = {memory: name for name, tensor in state.items() if (memory := _memory(tensor)) is not None}
    in_outputs: dict[int, str] = {}
    seen: dict[str, Form] = {}
    for name, value in outputs.items():
        if not isinstance(value, Tensor):
            continue
        memory = _memory(value)
        of_state = in_state.get(memory, "") if memory is not None else ""
        of_output = in_outputs.setdefault(memory, name) if memory is not None and not of_state else name
        seen[name] = Form(
            type="Tensor" if isinstance(value, torch.nn.Parameter) else type(value).__qualname__,
            device=str(value.device),
            layout=str(value.layout).removeprefix("torch."),
            stride=_stride(value),
            requires_grad=value.requires_grad,
            of_state=of_state,
            of_output=of_output if of_output != name else "",
        )
    return seen


def with_forms(diffs: Iterable[TensorDiff], reference: Forms, test: Forms, name: str) -> tuple[TensorDiff, ...]:
    """The diffs with what differs between the two sides' forms; `name` is the reference's."""
    return tuple(_with_form(diff, reference.get(diff.name), test.get(diff.name), name) for diff in diffs)


def _with_form(diff: TensorDiff, reference: Form | None, test: Form | None, name: str) -> TensorDiff:
    if reference is None or test is None or diff.reference is None or diff.test is None:
        return diff
    differences = tuple(_differences(reference, test, name))
    if not differences:
        return diff
    failed: tuple[FailedBy, ...] = tuple(each.kind for each in differences if each.failed and each.kind != "stride")
    return replace(
        diff,
        passed=diff.passed and not failed,
        failed_by=(*diff.failed_by, *failed),
        form=differences,
    )


def _differences(reference: Form, test: Form, name: str) -> Iterator[FormDiff]:
    """A difference that changes the program's meaning fails; one that a compiler may choose is only reported."""
    differs = partial(FormDiff, side=name)
    if reference.type != test.type:
        yield differs("class", reference=reference.type, test=test.type, failed=True)
    if reference.device != test.device:
        yield differs("device", reference=reference.device, test=test.device, failed=True)
    if reference.layout != test.layout:
        yield differs("layout", reference=reference.layout, test=test.layout, failed=True)
    elif reference.stride != test.stride:
        yield differs("stride", reference=str(list(reference.stride)), test=str(list(test.stride)))
    if reference.requires_grad != test.requires_grad:
        yield differs("requires_grad", failed=reference.requires_grad)
    if reference.of_state != test.of_state:
        yield differs("alias", reference=reference.of_state, test=test.of_state, failed=True)
    elif reference.of_output != test.of_output:
        yield differs("alias", reference=reference.of_output, test=test.of_output)


def _memory(tensor: Tensor) -> int | None:
    """One number for all tensors that share memory; None for a tensor without memory."""
    if tensor.layout != torch.strided or tensor.is_meta or not tensor.numel():
        return None
    return fx.storage_of(tensor)[0]


def _stride(tensor: Tensor) -> tuple[int, ...]:
    """The strides that matter: of a dim of one element any is right."""
    if tensor.layout != torch.strided or not tensor.numel():
        return ()
    return tuple(stride if size > 1 else 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
