"""Rows of facts: a label, a text beside it, and where it leads."""

from typing import NamedTuple

from idbg.format import file_names
from idbg.format.amounts import figure, size
from idbg.format.glyphs import MARKS
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.diff import KernelError
from idbg.schema.graphs import Node, NodeId
from idbg.schema.kernel_times import KernelTime
from idbg.views import remarks
from idbg.views.tree import NO_REFS, Place, Refs, Row, Tone, kernel_refs, words

_LABEL = 11  # cells: "⚠ fallback" and a blank


class Launch(NamedTuple):
    """A call of a kernel, with its time and error where they are known."""

    kernel: Kernel
    call: KernelCall
    time: KernelTime | None
    error: KernelError | None


def fact(
    label: str,
    text: str,
    tone: Tone = "",
    *,
    node: NodeId | None = None,
    launch: Launch | None = None,
    place: Place | None = None,
    placed: bool = False,
    copied: str = "",
) -> Row:
    """One fact; it leads to a node, a kernel or a line of the user's, which stands before the text if `placed`. What is
    before two blanks is a name.
    """
    of_label: Tone = tone if label and tone not in ("strong", "dim") else "dim"
    leads = not tone and (node is not None or launch is not None)
    name, gap, rest = text.partition("  ")
    shown = words((f"{label:<{_LABEL}}", of_label), (name, "accent" if leads else tone), (gap + rest, tone))
    at = file_names.place(*place) if place is not None and placed else ""
    key = ("launch", launch.call.handle, launch.call.line) if launch is not None else (label, text)
    refs = NO_REFS
    if node is not None:
        refs = Refs(nodes=(node,))
    elif launch is not None:
        refs = Refs(kernel=kernel_refs(launch.kernel))
    elif place is not None:
        refs = Refs(file=place.file, line=place.line)
        shown = (shown[0], place, *words(f"  {text}" if text else "")) if placed else shown
    return Row(
        key,
        shown,
        refs=refs,
        opens="node" if node is not None else "kernel" if launch is not None else "edit" if place is not None else "",
        copied=copied or "  ".join(filter(None, (at, text))),
        hangs=True,
    )


def dotted(*parts: str) -> str:
    """The parts with a dot between them, without empty ones."""
    return f" {MARKS['separator']} ".join(part for part in parts if part)


def error_words(one: KernelError) -> str:
    """How far the kernel's worst output is off by itself and with what came before, and how far what it read was."""
    if not one.observed:
        return f"not observed: {remarks.sentence(one.reason)}"
    alone = "" if one.isolated is None else f"{figure(one.isolated)} of its RMS alone; so far "
    error = f"{figure(one.error)}{'' if alone else ' of its RMS'}"
    return f"{alone}{error}; its inputs {figure(one.input_error)}, eager {figure(one.eager_error)}"


def value_size(node: Node) -> str:
    """The bytes of all tensors in its value."""
    sizes = [tensor.nbytes for tensor in node.tensors]
    return "of unknown size" if node.unknown or None in sizes else size(sum(nbytes or 0 for nbytes in sizes))
