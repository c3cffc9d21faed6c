"""Write the replay of one launch as a standalone script.

The script has the kernel's definition and call as the wrapper has them, the launch's nodes as plain ops, and the
recorded values in tensors.safetensors. It calls the kernel alone, compares it with the nodes, and does not import idbg.
"""

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from torch import Tensor
from torch.fx import Node

from idbg import __version__
from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.kernel_attribution.definition import around, assignment
from idbg.engine.kerneldiff.kernel_attribution.isolated import IsolatedResult, in_node_shape
from idbg.engine.kerneldiff.kernel_attribution.memory import MemoryRegion
from idbg.engine.kerneldiff.kernel_attribution.node_source import node_source
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan, placeholders
from idbg.engine.kerneldiff.kernel_attribution.recorder import RecordedLaunch
from idbg.engine.kerneldiff.kernel_attribution.search import AttributionResult
from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer
from idbg.engine.kerneldiff.kernels.verdict import errors_of
from idbg.engine.kerneldiff.tensors.allowance import KernelAllowance, Size
from idbg.engine.repro.files import new_folder, write
from idbg.engine.repro.layout import quotable
from idbg.engine.repro.source import name_of
from idbg.engine.repro.values import kept_as
from idbg.format import attributions
from idbg.format.file_names import near_place

_ALIGNED = 64  # bytes: what torch's allocators give at least, and vectorised kernels may count on
_BUILTIN = {"torch", "math", "operator", "sys", "Path", "load_file"}  # what the script imports itself

_TEMPLATES = Environment(
    loader=PackageLoader(__package__), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
)


@dataclass(frozen=True)
class Stored:
    """One tensor of the launch or of its nodes: a view of what is stored under `key`, which several tensors may share.

    Without a `key` the launch only writes it: its memory is allocated, and filled with values that cannot pass for a
    result.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str
    key: str = ""
    offset: int = 0
    kept_as: str = ""

    @property
    def text(self) -> str:
        """The tensor as Python."""
        if not self.key:
            return f'blank({self.shape}, {self.stride}, {self.dtype}, "{self.device}", filled)'
        view = f".view({self.dtype})" if self.kept_as != self.dtype else ""
        return f'saved["{self.key}"]{view}.as_strided({self.shape}, {self.stride}, {self.offset})'


@dataclass(frozen=True)
class Checked:
    """One buffer that the launch writes: its name after the call, and the node whose value it holds. `rmse` and
    `maximum` are the allowed errors over `scale`, the RMS of the node's value in float64.
    """

    name: str
    node: str
    scale: float
    rmse: float
    maximum: float


def launch_script(found: AttributionResult, folder: Path) -> Path:
    """Write the replay of an attributed launch as a script below `folder`. Raises ValueError if it cannot be written as
    plain Python, OutputError if the folder cannot be written.
    """
    if found.plan is None or found.recorded is None or not found.isolated:
        raise ValueError("the launch was not called alone")
    tensors = _StoredTensors(found.plan, found.recorded)
    text = _script(found, found.plan, tensors)
    return write(new_folder(folder, f"owner-{found.error.name}"), text, tensors.tensors)


def _script(found: AttributionResult, plan: LaunchPlan, tensors: "_StoredTensors") -> str:
    launch, recorded, definition = plan.launch, tensors.recorded, plan.definition.text
    stored, plain = list(tensors.of_call()), list(_plain(plan, recorded))
    parameters = [(name_of(node.name), tensors.of_node(node)) for node in placeholders(plan.nodes)]
    attributes = [node for node in plan.nodes.graph.nodes if node.op == "get_attr"]
    parameters += [(name_of(node.name), tensors.of_attribute(node)) for node in attributes]
    nodes = node_source(plan.nodes)
    needed = _names(definition) | _names(launch.text) | {name for _, text in plain for name in _names(text)}
    own = {*launch.names, *plan.constants, *_BUILTIN, launch.name}
    devices = sorted({device for device in tensors.devices.values() if not device.startswith("cpu")})
    return _TEMPLATES.get_template("repro.py.jinja").render(
        title=quotable(_wrapped(attributions.sentence(found.verdict))),
        source=quotable(near_place(found.error.file, found.error.line)),
        versions=f"idbg {__version__} with torch {torch.__version__}",
        around=around(plan.watch.code.text, needed - own | ({"async_compile"} if definition else set())),
        definition=definition,
        call=launch.text,
        assigned=", ".join(launch.assigned),
        members=[f"{name} = {text}" for name, text in plan.members],
        stored=stored,
        plain=plain,
        parameters=parameters,
        nodes=nodes.lines,
        returned=[_returned(one.buffer, recorded) for one in found.isolated],
        checked=[_checked(one, plan.watch.k) for one in found.isolated],
        where=tensors.devices,
        devices=devices,
        device=devices[0] if devices else "cpu",
        imports=sorted(nodes.imports),
    )


def _returned(buffer: NodeBuffer, recorded: RecordedLaunch) -> str:
    """A node's value with the buffer's layout: the buffer may hold a part of it."""
    name = name_of(buffer.node)
    if not buffer.whole:
        return name
    part, whole = recorded.regions[buffer.name], recorded.regions[buffer.whole]
    inner = part.shape, part.stride, part.offset - whole.offset
    return f"laid_out({name}, {whole.shape}, {whole.stride}).as_strided{inner}"


def _plain(plan: LaunchPlan, recorded: RecordedLaunch) -> Iterator[tuple[str, str]]:
    """The arguments of the call that are not tensors: sizes as they were, the stream as the wrapper gets it."""
    for name, value in recorded.values.items():
        if isinstance(value, MemoryRegion):
            continue
        text = assignment(plan.watch.code.text, name)
        if text.startswith("get_raw_stream("):
            yield name, text
        elif isinstance(value, (bool, int, float, str)) or value is None:
            yield name, repr(value)
        else:
            raise ValueError(f"{name} is a {type(value).__name__}, which a script cannot store")


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence[0].upper() + sentence[1:] + ".", 118, break_long_words=False, break_on_hyphens=False)


def _checked(one: IsolatedResult, k: float) -> Checked:
    """The error that is allowed for a buffer: that of a kernel of its dtype, and more if the launch was judged right,
    which takes resampled rounding into account.
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
    return Checked(one.buffer.name, one.buffer.node, size, allowed.rmse, allowed.maximum)


@dataclass
class _StoredTensors:
    """The tensors beside the script: flat memory, shared as in the run."""

    plan: LaunchPlan
    recorded: RecordedLaunch
    tensors: dict[str, Tensor] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)  # of these, where they are no CPU's
    _spans: dict[int, tuple[str, int]] = field(default_factory=dict)  # storage -> its key, and the first byte kept

    def of_call(self) -> Iterator[Stored]:
        """The tensors that the call names."""
        plan, values = self.plan, self.recorded.values
        regions = {name: value for name, value in values.items() if isinstance(value, MemoryRegion)}
        memory = {region.start for region in regions.values()}
        for buffer in plan.writes:  # also the whole of which the call names parts
            region = self.recorded.regions.get(buffer.name)
            if region is not None and region.start in memory:
                regions.setdefault(buffer.name, region)
        blank = plan.output_only - set(self.recorded.read.values())
        for name, region in regions.items():
            others = [other for other in regions.values() if other.start == region.start]
            if name in blank and len(others) == 1:
                yield Stored(name, region.shape, region.stride, str(region.dtype), str(region.device))
                continue
            if region.start not in self._spans:
                self._keep(name, others)
            yield self._stored(name, region)

    def of_node(self, node: Node) -> str:
        """The value of an input node as Python: its buffer's value in the node's shape."""
        value = self.recorded.node_values[node.name]
        if not isinstance(value, Tensor):
            return repr(value)
        name = self.recorded.read.get(node.name)
        argument = self.recorded.values.get(name) if name else None
        shaped = in_node_shape(node, value)
        assert isinstance(shaped, Tensor)
        if isinstance(argument, MemoryRegion) and argument.start in self._spans:
            text = self._stored("", argument).text
        else:
            text = self._alone(f"node_{name_of(node.name)}", value)
        return text if shaped.shape == value.shape else f"{text}.reshape({tuple(shaped.shape)})"

    def of_attribute(self, node: Node) -> str:
        """A constant of the graph, as Python. Raises ValueError if it is not a tensor."""
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

    def _keep(self, name: str, regions: list[MemoryRegion]) -> None:
        """Store the part of a storage that these regions are in, with its alignment."""
        start = regions[0].start
        storage = self.recorded.memory.storages[start]
        first = (min(region.span[0] for region in regions) - start) // _ALIGNED * _ALIGNED
        end = max(region.span[1] for region in regions) - start
        end = min(storage.nbytes(), -(-end // 16) * 16)  # whole elements of any dtype
        memory = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, first, (end - first,), (1,))
        dtypes = {region.dtype for region in regions}
        flat = memory.clone()
        size = max(dtype.itemsize for dtype in dtypes)
        whole = flat[: flat.numel() // size * size]
        flat = whole.view(next(iter(dtypes))) if len(dtypes) == 1 else flat
        self._put(name, flat, str(regions[0].device))
        self._spans[start] = name, first

    def _put(self, key: str, flat: Tensor, device: str) -> None:
        self.tensors[key] = flat.view(kept_as(flat.dtype)).cpu()
        if device != "cpu":
            self.devices[key] = device

    def _stored(self, name: str, region: MemoryRegion) -> Stored:
        key, first = self._spans[region.start]
        offset = region.offset - first // region.dtype.itemsize
        kept = str(self.tensors[key].dtype)
        return Stored(name, region.shape, region.stride, str(region.dtype), str(region.device), key, offset, kept)
