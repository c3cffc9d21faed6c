"""Make the addresses of nodes, kernels and lines in the page.

The address is made of what it names alone, so that a section links to what another section shows without asking it. It
is both the `id` of an element and, after a "#", the link to it; `static/graphs.js` reads those of nodes.
"""

import hashlib
from urllib.parse import quote

from idbg.schema.code import Kernel
from idbg.schema.graphs import GraphId, NodeId, Part

_LONGEST = 120  # characters of a name that an address spells out


def node(run: int, of: NodeId) -> str:
    """ "node:1:0/0:forward::relu_1"."""
    return f"node:{graph_key(run, of.graph)}:{spelt(of.name)}"


def graph(run: int, of: GraphId) -> str:
    """ "graph:1:0/0:forward:"."""
    return f"graph:{graph_key(run, of)}"


def graph_key(run: int, of: GraphId) -> str:
    """The run's number, frame, stage and part."""
    return ":".join((str(run), spelt(of.frame), of.stage, of.part))


def kernel(run: int, of: Kernel) -> str:
    """ "kernel:1:0/0:forward:cpp_fused_relu_0"."""
    return named_kernel(run, of.frame, of.part, of.name)


def named_kernel(run: int, frame: str, part: Part, name: str) -> str:
    """The same of a kernel that is known by its frame, part and name."""
    return f"kernel:{run}:{spelt(frame)}:{part}:{spelt(name)}"


def line(file: str, number: int) -> str:
    """ "line:/home/me/model.py:12"."""
    return f"line:{spelt(file)}:{number}"


def spelt(name: str) -> str:
    """A name as part of an address: quoted; of a very long one the beginning, and a hash of the whole."""
    text = name.encode("utf-8", "surrogatepass")
    if len(text) <= _LONGEST:
        return quote(text, safe="/")
    return f"{quote(text[:40], safe='/')}~{hashlib.sha256(text).hexdigest()[:16]}"
