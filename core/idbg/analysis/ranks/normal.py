"""Write what differs between equal ranks the same way: addresses, device indices, paths, names that are counted up; and
group ranks by what is equal.
"""

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from os.path import isabs, pardir, relpath
from pathlib import PurePath

from idbg.schema.graphs import Dim, Graph, Node, TensorMeta
from idbg.schema.ranks import Fingerprint

_WORD = re.compile(r"[A-Za-z_]\w*")
_PASSING = re.compile(
    r"0x[0-9a-fA-F]+|(?<!\d)\d{7,}(?!\d)"  # addresses, and names that hold one
    r"|(?<=cuda:)\d+|(?<=xpu:)\d+|(?<=device=)\d+|(?<=index=)\d+"  # which device of a host
    r"|(?<=device\()\d+|(?<=_device_guard\()\d+|(?<=_raw_stream\()\d+"
    r'|(?<=")/[^"\n]*(?=")'  # a header in a temporary folder
)
_NUMBER = re.compile(r"(?<![%\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")


_LINE, _SOURCE = 500, 100_000  # characters of a node or guard, and of a kernel's source, that are remembered
Replaced = Callable[[str], str]


def _replacing(pattern: re.Pattern[str], by: str) -> Replaced:
    """Replaces what matches. Ranks have the same nodes, guards and kernels: the last texts are remembered."""

    def replaced(text: str) -> str:
        return pattern.sub(by, text)

    of_line, of_source = lru_cache(1 << 14)(replaced), lru_cache(64)(replaced)

    def remembered(text: str) -> str:
        return of_line(text) if len(text) < _LINE else of_source(text) if len(text) < _SOURCE else replaced(text)

    return remembered


plain = _replacing(_PASSING, "@")
"""The text without what differs between any two processes."""
without_numbers = _replacing(_NUMBER, "#")
"""The same without its numbers, where they are no part of a name."""


def fingerprint(texts: Iterable[str]) -> Fingerprint:
    """Of these texts, in their order."""
    whole, form, count = hashlib.sha256(), hashlib.sha256(), 0
    for text in texts:
        line = plain(text)
        whole.update(line.encode("utf-8", "replace") + b"\n")
        form.update(without_numbers(line).encode("utf-8", "replace") + b"\n")
        count += 1
    return Fingerprint(whole.hexdigest()[:16], form.hexdigest()[:16], count)


def of_graph(graph: Graph) -> Fingerprint:
    """Of its nodes: shapes are a part of the form, constants are not."""
    texts = list(node_texts(graph))
    whole = fingerprint(f"{call} -> {values}" for call, values in texts).whole
    forms = fingerprint(f"{without_numbers(call)} -> {values}" for call, values in texts)
    return Fingerprint(whole, forms.whole, len(texts))


def node_texts(graph: Graph) -> Iterable[tuple[str, str]]:
    """Each node as its call and its tensors; other nodes are %N, and symbolic sizes are counted up."""
    number = {node.name: f"%{at}" for at, node in enumerate(graph.nodes)}
    symbols: dict[str, str] = {}

    def symbol(found: re.Match[str]) -> str:
        return symbols.setdefault(found[0], f"s{len(symbols)}")

    for node in graph.nodes:
        args = _WORD.sub(lambda word: number.get(word[0], word[0]), node.args)
        what = node.role if node.op == "placeholder" else node.target
        yield plain(f"{node.op} {what} {args}"), " ".join(_tensor(each, symbol) for each in node.tensors)


def shape_of(node: Node) -> str:
    """The tensors of a node as a person reads them."""
    return ", ".join(map(str, node.tensors))


def _tensor(tensor: TensorMeta, symbol: Callable[[re.Match[str]], str]) -> str:
    def size(dim: Dim) -> str:
        return str(dim) if isinstance(dim, int) else _WORD.sub(symbol, dim.expr)

    shape, stride = (",".join(map(size, dims)) for dims in (tensor.shape, tensor.stride))
    return f"{tensor.dtype}[{shape}][{stride}]{tensor.device.partition(':')[0]}"


def relative(file: str, folder: str) -> str:
    """The file as another host has it too: from the program's folder, or its last three parts."""
    if not isabs(file) or not folder:
        return file
    near = relpath(file, folder)
    return "/".join(PurePath(file).parts[-3:]) if near.startswith(pardir) else near


def grouped(values: Mapping[int, Hashable]) -> tuple[tuple[int, ...], ...]:
    """Ranks with equal values, in the order of their first."""
    groups: dict[Hashable, list[int]] = {}
    for rank, value in values.items():
        groups.setdefault(value, []).append(rank)
    return tuple(map(tuple, groups.values()))


def fewest_first(values: Mapping[int, Hashable]) -> list[tuple[int, ...]]:
    """Ranks with equal values, the fewest first: they stand out."""
    return sorted(grouped(values), key=lambda group: (len(group), -group[0]))
