"""Find the first wrong dispatch of IREE, and whether an edit of its module or its compiler made it wrong.

The module runs with the values of nodes as extra results: as it was imported, and as it is compiled, where something
edited it between. Then the dispatches that IREE forms return their values: these results are added after IREE has
formed them, which leaves them as they are.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from torch import Tensor

from idbg.engine.compat.iree import IREEPart, element_name, element_type, flow_of, values_of
from idbg.engine.compat.openvino import NotRunnable
from idbg.engine.kerneldiff.layers import modules
from idbg.engine.kerneldiff.layers.checkpoints import (
    Checkpoints,
    CheckpointSearch,
    CheckpointValues,
    CompiledForm,
    Layer,
)
from idbg.schema.remarks import Remark


class IREESearch(CheckpointSearch[IREEPart]):
    """The search in one graph. Raises NotComparable for a graph that draws random numbers."""

    compiler, unit = "IREE", "dispatch"
    by_hand = "what edits the module before IREE compiles it"

    @property
    def texts(self) -> tuple[str, str]:
        """Both modules."""
        return self.part.imported, self.part.received

    def imported(self) -> Checkpoints:
        """The module as it was made of the graph."""
        return self._checkpoints(self.part.imported, self.part.lines)

    def rewritten(self) -> Checkpoints:
        """The module that is compiled, which something edited."""
        return self._checkpoints(self.part.received, self._lines)

    def compiled(self) -> CompiledForm:
        """The dispatches with their values, as results of the module in which they are formed."""
        try:
            flow = flow_of(self.part.received, self.part.flags)
            dispatches = modules.dispatches_of(flow)
            held = self._held(dispatches)

            def run(names: Sequence[str]) -> CheckpointValues:
                added = [value for name in names if (value := dispatches[held[name]].value) is not None]
                return self._run(modules.with_dispatches(flow, added), names, added, from_flow=True)

            verdicts = self.run(Checkpoints(list(held), run, may_permute=True))
        except NotRunnable as error:
            return CompiledForm(problem=Remark("no outputs", "IREE", str(error)))
        names = {at: name for name, at in held.items()}
        return CompiledForm(verdicts, [self._layer(each, names.get(at, "")) for at, each in enumerate(dispatches)])

    @cached_property
    def _lines(self) -> Mapping[int, str]:
        """The node of each line of the module that is compiled."""
        return modules.lines_after(self.part.imported, self.part.received, self.part.lines)

    def _checkpoints(self, text: str, lines: Mapping[int, str]) -> Checkpoints:
        known = modules.node_values(text, lines)

        def run(names: Sequence[str]) -> CheckpointValues:
            added = [known[name] for name in names]
            return self._run(modules.with_values(text, added) if added else text, names, added)

        nodes = (name for name in self.judge.nodes if name in known)
        return Checkpoints([name for name in nodes if element_type(known[name].element) is not None], run)

    def _run(
        self, text: str | None, names: Sequence[str], added: Sequence[modules.ModuleValue], *, from_flow: bool = False
    ) -> CheckpointValues:
        """Run a module, whose own results are followed by these values of nodes."""
        if text is None:
            raise NotRunnable("the module is not as expected")
        types = [*(self._type_of(node.name) for node in self.returned), *(value.element for value in added)]
        flat = values_of(text, self.part.flags, self.part.arguments, types, from_flow=from_flow)
        nodes = [*(node.name for node in self.returned), *names]
        shaped = [self._shaped(name, value) for name, value in zip(nodes, flat, strict=True)]
        count = len(self.returned)
        return CheckpointValues(shaped[:count], dict(zip(names, shaped[count:], strict=True)))

    def _shaped(self, name: str, value: Tensor) -> Tensor:
        """A value in its node's shape; as it is if it has another number of elements."""
        like = self.judge.nodes[name].meta.get("val")
        if isinstance(like, Tensor) and value.numel() == like.numel():
            return value.reshape(tuple(map(int, like.shape)))
        return value

    def _type_of(self, name: str) -> str:
        """The MLIR type of the elements of a node's value; "" where it is no tensor."""
        value = self.judge.nodes[name].meta.get("val")
        return element_name(value.dtype) if isinstance(value, Tensor) else ""

    def _held(self, dispatches: Sequence[modules.Dispatch]) -> dict[str, int]:
        """The dispatch that returns a node's value: the last one that computes any of the node's lines, if its value is
        of the node's last line.
        """
        ends = {node: line for node, (line, _) in modules.located_values(self.part.received, self._lines).items()}
        last = {
            self._lines[line]: at for at, each in enumerate(dispatches) for line in each.lines if line in self._lines
        }
        held = {
            node: at
            for at, each in enumerate(dispatches)
            if each.value is not None and (node := self._lines.get(each.holds, ""))
            if last.get(node) == at and ends.get(node) == each.holds and each.value.element == self._type_of(node)
        }
        return {name: held[name] for name in self.judge.nodes if name in held}

    def _layer(self, dispatch: modules.Dispatch, holds: str) -> Layer:
        nodes = dict.fromkeys(self._lines[line] for line in dispatch.lines if line in self._lines)
        return Layer(
            dispatch.name, list(nodes), holds, Remark("not run as output" if holds else "no dispatch's value", "IREE")
        )
