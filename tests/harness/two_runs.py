"""Two runs of one program, made of records: which kernels compute what is given."""

from collections.abc import Mapping

from msgspec.structs import replace

from idbg.schema.code import Kernel, KernelCall, OutputCode
from idbg.schema.graphs import Frame, Graph, GraphId, Links, Node
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run

POST = GraphId("0/0", "post_grad", "forward")
DYNAMO = GraphId("0/0", "dynamo")
NODES = ("mm", "relu", "add", "mul", "sum")


def run(kernels: Mapping[str, str], *, number: int = 1, nodes: tuple[str, ...] = NODES, **target: object) -> Run:
    """A run whose kernels compute these nodes ("mm relu"); `nodes` are the post-grad graph's, each from the node of
    Dynamo's graph whose name it begins with.
    """
    made = Run(number, Program("m.py"), replace(Target("inductor"), **target), 0.0)
    made.frames["0/0"] = Frame("0/0", "forward", "m.py", 3)
    origins = tuple(dict.fromkeys(name.partition("_")[0] for name in nodes))
    made.graphs[DYNAMO] = Graph(DYNAMO, tuple(Node(name=name, op="call_function", target=name) for name in origins))
    made.graphs[POST] = Graph(
        POST,
        tuple(
            Node(name=name, op="call_function", target=f"aten.{name.partition('_')[0]}.default", file="m.py", line=4)
            for name in nodes
        ),
    )
    made.links.append(Links(DYNAMO, POST, tuple((name.partition("_")[0], name) for name in nodes)))
    made.codes["0/0", "forward"] = OutputCode(
        "0/0", "forward", "", tuple(kernel(name, computed) for name, computed in kernels.items())
    )
    made.ended, made.seconds = "clean", 2.0
    return made


def kernel(name: str, computed: str, source: str = "", language: str = "triton") -> Kernel:
    """One that is launched once."""
    extern = name.startswith("extern")
    text = source or f"def {name}(in_ptr0):\n    # {computed}\n    pass\n"
    return Kernel(
        frame="0/0",
        part="forward",
        name=name,
        language="extern" if extern else language,
        source="" if extern else text,
        calls=(KernelCall(f"{name}:1", 1, tuple(computed.split())),),
    )
