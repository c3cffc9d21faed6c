"""How is one launch written as a script that stands alone, with the values that it was called with?"""

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.fx import Node

from idbg import __version__
from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.kernel_attribution.definition import around, assignment, definition_of, only_written
from idbg.engine.kerneldiff.kernel_attribution.isolated import IsolatedResult, in_node_shape, placeholders
from idbg.engine.kerneldiff.kernel_attribution.memory import MemoryRegion
from idbg.engine.kerneldiff.kernel_attribution.node_source import node_source
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan
from idbg.engine.kerneldiff.kernel_attribution.recorder import RecordedLaunch
from idbg.engine.kerneldiff.kernel_attribution.search import AttributionResult
from idbg.engine.kerneldiff.kernels.buffers import changes_of
from idbg.engine.kerneldiff.kernels.verdict import errors_of
from idbg.engine.kerneldiff.tensors.allowance import KernelAllowance, Size
from idbg.engine.repro.files import new_folder, write
from idbg.engine.repro.kernel_script import Checked, KernelScript, Stored, of_a_kernel
from idbg.engine.repro.source import name_of
from idbg.engine.repro.values import kept_as
from idbg.format.file_names import near_place

_ALIGNED = 64  # bytes: what torch's allocators give at least, and vectorised kernels may count on
_BUILTIN = {"torch", "math", "operator", "sys", "Path", "load_file"}  # what the script imports itself


def launch_script(finding: AttributionResult, folder: Path) -> Path:
    """Write the launch of a verdict as a script below `folder`. Raises ValueError where it cannot be written as plain
    Python, OutputError where the folder cannot be.
    """
    if finding.plan is None or finding.taken is None or not finding.alone:
        raise ValueError("the launch was not called alone")
    kept = _Kept(finding.plan, finding.taken)
    script = _script(finding, finding.plan, kept)
    return write(new_folder(folder, f"owner-{finding.error.name}"), of_a_kernel(script, kept.devices), kept.tensors)


def _script(finding: AttributionResult, plan: LaunchPlan, kept: "_Kept") -> KernelScript:
    launch, module = plan.launch, plan.watch.code.text
    definition = definition_of(module, launch)
    stored, plain = list(kept.of_call()), list(_plain(plan, kept.taken))
    parameters = [(name_of(node.name), kept.of_node(node)) for node in placeholders(plan.nodes)]
    attributes = [node for node in plan.nodes.graph.nodes if node.op == "get_attr"]
    parameters += [(name_of(node.name), kept.of_attribute(node)) for node in attributes]
    nodes = node_source(plan.nodes)
    members = list(_members(plan))
    needed = _names(definition.text) | _names(launch.text) | {name for _, text in plain for name in _names(text)}
    own = {*launch.names, *plan.constants, *_BUILTIN, launch.name}
    return KernelScript(
        title=_wrapped(finding.verdict.sentence),
        source=near_place(finding.error.file, finding.error.line),
        versions=f"idbg {__version__} with torch {torch.__version__}",
        around=around(module, needed - own | ({"async_compile"} if definition.text else set())),
        definition=definition.text,
        call=launch.text,
        assigned=", ".join(launch.assigned),
        members=members,
        stored=stored,
        plain=plain,
        parameters=parameters,
        nodes=nodes.lines,
        returned=[_returned(one, kept.taken) for one in finding.alone],
        checked=[_checked(one, plan.watch.k) for one in finding.alone],
        devices=sorted({device for device in kept.devices.values() if not device.startswith("cpu")}),
        imports=sorted(nodes.imports),
    )


def _returned(one: IsolatedResult, taken: RecordedLaunch) -> str:
    """A node's value as the buffer has it, which may be a part of that which holds the node."""
    name = name_of(one.held.node)
    if not one.held.whole:
        return name
    part, whole = taken.places[one.held.name], taken.places[one.held.whole]
    inner = part.shape, part.stride, part.offset - whole.offset
    return f"laid_out({name}, {whole.shape}, {whole.stride}).as_strided{inner}"


def _plain(plan: LaunchPlan, taken: RecordedLaunch) -> Iterator[tuple[str, str]]:
    """What the call names that is no tensor: sizes as they were, the stream as the wrapper asks for it."""
    for name, value in taken.values.items():
        if isinstance(value, MemoryRegion):
            continue
        text = assignment(plan.watch.code.text, name)
        if text.startswith("get_raw_stream("):
            yield name, text
        elif isinstance(value, (bool, int, float, str)) or value is None:
            yield name, repr(value)
        else:
            raise ValueError(f"{name} is a {type(value).__name__}, which a script cannot store")


def _members(plan: LaunchPlan) -> Iterator[str]:
    """The statements that name what the launch wrote, where that is a part of its result."""
    wanted = [held.name for held in plan.writes]
    lines: dict[str, str] = {}
    while wanted:
        name = wanted.pop()
        if name in plan.wrapper.members and name not in lines:
            text = plan.wrapper.members[name]
            lines[name] = f"{name} = {text}"
            wanted.append(text.partition("[")[0])
    return reversed(lines.values())


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence[0].upper() + sentence[1:] + ".", 118, break_long_words=False, break_on_hyphens=False)


def _checked(one: IsolatedResult, k: float) -> Checked:
    """What is allowed of a buffer: what is of a kernel of its dtype, and more where the judge, who has tried other
    roundings too, has found it right.
    """
    exact, own = one.reference.exact, one.reference.own
    worst, eager = one.worst.error, errors_of(own, one.reference)[0]
    size, largest = 0.0, 0.0
    if exact.dtype.is_floating_point or exact.dtype.is_complex:
        finite = exact.abs().nan_to_num(0, 0, 0)
        size, largest = float(finite.double().square().mean().sqrt()), float(finite.max()) if exact.numel() else 0.0
        allowed = KernelAllowance(own.dtype, exact.numel(), largest / size if size else 1.0, k).of(eager)
    else:
        allowed = Size()
    if not one.bad:
        allowed = Size(max(allowed.rmse, 2 * worst.rmse), max(allowed.maximum, 2 * worst.maximum))
    return Checked(one.held.name, one.held.node, size, allowed.rmse, allowed.maximum)


@dataclass
class _Kept:
    """The tensors that go beside the script: flat memory, which those that share it share."""

    plan: LaunchPlan
    taken: RecordedLaunch
    tensors: dict[str, Tensor] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)  # of these, where they are no CPU's
    _spans: dict[int, tuple[str, int]] = field(default_factory=dict)  # storage -> its key, and the first byte kept

    def of_call(self) -> Iterator[Stored]:
        """What the call names."""
        plan, values = self.plan, self.taken.values
        places = {name: value for name, value in values.items() if isinstance(value, MemoryRegion)}
        memory = {place.start for place in places.values()}
        for held in plan.writes:  # also the whole of which it was given parts
            place = self.taken.places.get(held.name)
            if place is not None and place.start in memory:
                places.setdefault(held.name, place)
        module = plan.watch.code.text
        blank = only_written(plan.launch, definition_of(module, plan.launch), changes_of(plan.watch.graph))
        blank -= set(self.taken.read.values())
        for name, place in places.items():
            others = [other for other in places.values() if other.start == place.start]
            if name in blank and len(others) == 1:
                yield Stored(name, place.shape, place.stride, str(place.dtype), str(place.device))
                continue
            if place.start not in self._spans:
                self._keep(name, others)
            yield self._stored(name, place)

    def of_node(self, node: Node) -> str:
        """The value of a node that the launch's nodes begin with, as Python: its buffer's, in the node's own shape."""
        value = self.taken.sources[node.name]
        if not isinstance(value, Tensor):
            return repr(value)
        name = self.taken.read.get(node.name)
        held = self.taken.values.get(name) if name else None
        shaped = in_node_shape(node, value)
        assert isinstance(shaped, Tensor)
        if isinstance(held, MemoryRegion) and held.start in self._spans:
            text = self._stored("", held).text
        else:
            text = self._alone(f"node_{name_of(node.name)}", value)
        return text if shaped.shape == value.shape else f"{text}.reshape({tuple(shaped.shape)})"

    def of_attribute(self, node: Node) -> str:
        """A constant of the graph, as Python. Raises ValueError where it is no tensor."""
        value = comparing.attribute(self.plan.nodes, str(node.target))
        if not isinstance(value, Tensor):
            raise ValueError(f"{node.name} is a {type(value).__name__}, which a script cannot store")
        return self._alone(f"node_{name_of(node.name)}", value.detach())

    def _alone(self, key: str, value: Tensor) -> str:
        value = value.clone(memory_format=torch.contiguous_format)
        self._put(key, value.flatten(), str(value.device))
        return Stored(
            "", tuple(value.shape), value.stride(), str(value.dtype), "", key, 0, str(self.tensors[key].dtype)
        ).text

    def _keep(self, name: str, places: list[MemoryRegion]) -> None:
        """The part of a storage that these places are in, with the alignment that they have."""
        start = places[0].start
        storage = self.taken.clones.storages[start]
        first = (min(place.span[0] for place in places) - start) // _ALIGNED * _ALIGNED
        end = max(place.span[1] for place in places) - start
        end = min(storage.nbytes(), -(-end // 16) * 16)  # whole elements of any dtype
        memory = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, first, (end - first,), (1,))
        dtypes = {place.dtype for place in places}
        flat = memory.clone()
        size = max(dtype.itemsize for dtype in dtypes)
        whole = flat[: flat.numel() // size * size]
        flat = whole.view(next(iter(dtypes))) if len(dtypes) == 1 else flat
        self._put(name, flat, str(places[0].device))
        self._spans[start] = name, first

    def _put(self, key: str, flat: Tensor, device: str) -> None:
        self.tensors[key] = flat.view(kept_as(flat.dtype)).cpu()
        if device != "cpu":
            self.devices[key] = device

    def _stored(self, name: str, place: MemoryRegion) -> Stored:
        key, first = self._spans[place.start]
        offset = place.offset - first // place.dtype.itemsize
        kept = str(self.tensors[key].dtype)
        return Stored(name, place.shape, place.stride, str(place.dtype), str(place.device), key, offset, kept)
