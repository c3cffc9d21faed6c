"""Records of graphs, nodes and tensors.

Every class here is frozen and serializable; nothing here imports torch.
"""

from functools import cached_property, reduce
from operator import mul
from typing import Annotated, Literal

import msgspec

Stage = Literal["dynamo", "joint", "forward", "backward", "inference", "post_grad"]
Part = Literal["", "forward", "backward", "inference"]
Opcode = Literal["placeholder", "get_attr", "call_function", "call_method", "call_module", "output"]
Role = Literal["input", "weight", "buffer", "tangent", "saved", "intermediate", "output"]
# What no real tensor is beyond. A record that is is refused where it is read: from a file it may say anything.
MOST_DIMS = 1000
MOST_STORAGES = 1 << 22  # of one graph; the largest that was seen has 100,000 nodes
Bytes = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Storage = Annotated[int, msgspec.Meta(ge=0, lt=MOST_STORAGES)]

# dtype -> (the short name that torch prints in graphs, bytes an element takes)
DTYPES: dict[str, tuple[str, int]] = {
    "float64": ("f64", 8),
    "float32": ("f32", 4),
    "float16": ("f16", 2),
    "bfloat16": ("bf16", 2),
    "float8_e4m3fn": ("f8e4m3fn", 1),
    "float8_e5m2": ("f8e5m2", 1),
    "float8_e4m3fnuz": ("f8e4m3fnuz", 1),
    "float8_e5m2fnuz": ("f8e5m2fnuz", 1),
    "float8_e8m0fnu": ("f8e8m0fnu", 1),
    "float4_e2m1fn_x2": ("f4e2m1fnx2", 1),
    "int64": ("i64", 8),
    "int32": ("i32", 4),
    "int16": ("i16", 2),
    "int8": ("i8", 1),
    "uint64": ("u64", 8),
    "uint32": ("u32", 4),
    "uint16": ("u16", 2),
    "uint8": ("u8", 1),
    "bool": ("b8", 1),
    "complex128": ("c128", 16),
    "complex64": ("c64", 8),
    "complex32": ("c32", 4),
}
DTYPE_OF_SHORT = {short: name for name, (short, _) in DTYPES.items()}


class Sym(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A symbolic size: torch's expression, the value seen while tracing, and the range that the guards allow."""

    expr: str
    hint: int | None = None
    low: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        return self.expr


Dim = Size | Sym
Dims = Annotated[tuple[Dim, ...], msgspec.Meta(max_length=MOST_DIMS)]


def hint_of(dim: Dim) -> int | None:
    """The concrete size: the number itself, a symbol's hint, or None where torch has no hint (unbacked)."""
    return dim if isinstance(dim, int) else dim.hint


class TensorMeta(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One tensor's dtype ("float32"), shape and stride in elements, and device ("cpu", "cuda:0")."""

    dtype: str
    shape: Dims = ()
    stride: Dims = ()
    device: str = ""

    @property
    def itemsize(self) -> int:
        """Bytes an element takes; 0 of a dtype that is not known."""
        return DTYPES.get(self.dtype, ("", 0))[1]

    @property
    def numel(self) -> int | None:
        """How many elements it has, with symbols at their hints; None where a hint is missing."""
        hints = [hint_of(dim) for dim in self.shape]
        return None if None in hints else reduce(mul, (h for h in hints if h is not None), 1)

    @property
    def nbytes(self) -> int | None:
        """Bytes of all its elements, with symbols at their hints; None where a hint is missing."""
        return None if self.numel is None else self.numel * self.itemsize

    def __str__(self) -> str:
        short = DTYPES.get(self.dtype, (self.dtype, 0))[0]
        return f"{short}[{','.join(map(str, self.shape))}]"


class GraphId(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Which graph: the frame's compile id ("0/0"), the stage, and for a post-grad graph the part it belongs to."""

    frame: str
    stage: Stage
    part: Part = ""

    def __str__(self) -> str:
        return f"{self.frame} {self.stage}" + (f" ({self.part})" if self.part else "")


class NodeId(msgspec.Struct, frozen=True, gc=False):
    """Which node: its graph and its FX name, unique in that graph."""

    graph: GraphId
    name: str

    def __str__(self) -> str:
        return self.name


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One FX node. `op` is the FX opcode; `target` is qualified ("aten.convolution.default", "torch.conv2d", "relu").

    `tensors` holds every tensor in the node's value, in order (a node that returns a tuple has several; one without
    tensor metadata has none). `args` is the argument list as FX prints it. `module` is the dotted path of the
    user's module ("layer1.0.conv1"). `file`, `line`, `code` are the user's; `code_line` is 1-based in `Graph.code`,
    0 if absent. `storages` numbers the memory under each of `tensors` within the graph: views of one tensor have the
    same number; it is empty where nobody knew. `storage_bytes` is what each takes as a whole, which a slice does not
    tell; None where a size has no hint. `unknown` says that torch kept no value for the node, so that `tensors` may be
    missing some.
    """

    name: str
    op: Opcode
    target: str
    args: str = ""
    inputs: tuple[str, ...] = ()
    tensors: tuple[TensorMeta, ...] = ()
    module: str = ""
    module_class: str = ""
    file: str = ""
    line: int = 0
    code: str = ""
    role: Role = "intermediate"
    code_line: int = 0
    storages: tuple[Storage, ...] = ()
    storage_bytes: tuple[Bytes | None, ...] = ()
    unknown: bool = False

    @property
    def tensor(self) -> TensorMeta | None:
        """The first of its tensors; None where it has none."""
        return self.tensors[0] if self.tensors else None


class Graph(msgspec.Struct, frozen=True, dict=True):
    """One FX graph: its nodes in order, and its readable Python text."""

    id: GraphId
    nodes: tuple[Node, ...]
    code: str = ""

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The nodes by their FX names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def users(self) -> dict[str, tuple[str, ...]]:
        """Node name -> names of the nodes that read it, in graph order."""
        readers: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for name in node.inputs:
                readers.setdefault(name, []).append(node.name)
        return {name: tuple(users) for name, users in readers.items()}

    def node_id(self, name: str) -> NodeId:
        """The id of the node of this name, whether there is one or not."""
        return NodeId(self.id, name)


class Links(msgspec.Struct, frozen=True):
    """Which nodes of `below` came from which of `above`: (name above, name below) pairs."""

    above: GraphId
    below: GraphId
    pairs: tuple[tuple[str, str], ...]


class CompileCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """What torch.compile got, by its function's or its module's class's name, and the user's line that called it."""

    name: str
    file: str = ""
    line: int = 0
    is_module: bool = False


class Frame(msgspec.Struct, frozen=True):
    """One compiled Python frame. `id` is torch's compile id: frame number / recompilation number. `parent`: the frame
    whose compiled code called it; "" where none did, or it is not known. `label`: a method with its class's name
    ("Block.forward"); "" of a function. `call`: the torch.compile in which it was compiled. Where torch compiles a
    wrapper of its own around a module, `function` is the module's class, `file` and `line` are of the call.
    """

    id: str
    function: str
    file: str = ""
    line: int = 0
    parent: str = ""
    label: str = ""
    call: CompileCall | None = None
