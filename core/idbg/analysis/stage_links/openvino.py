"""Read the names of layers in OpenVINO's XML: its PyTorch frontend names a layer after the node that it came from.

A layer of `addmm` is named "addmm/aten.addmm.default/MatMul". A layer of a compiled model that computes several names
them all in `originalLayersNames`.
"""

import html
import re

from idbg.analysis.stage_links.marks import Mark, Marks

_LAYER = re.compile(r'^\s*<layer\b[^>]*?\bname="([^"]*)"')
_ORIGINAL = re.compile(r'\boriginalLayersNames="([^"]*)"')


def marks_of(text: str) -> Marks:
    """The marks of each layer's lines, from `<layer` to `</layer>`: a fused layer has those of all its nodes."""
    marks: Marks = {}
    lines = text.split("\n")
    begin, names = 0, ""
    for number, line in enumerate(lines, 1):
        if (found := _LAYER.match(line)) is not None:
            begin, names = number, found[1]
        if begin and (also := _ORIGINAL.search(line)) is not None and also[1]:
            names += f",{also[1]}"
        if begin and (line.lstrip().startswith("</layer>") or (found is not None and line.rstrip().endswith("/>"))):
            mark = Mark(tuple(dict.fromkeys(map(_node, html.unescape(names).split(",")))))
            marks.update(dict.fromkeys(range(begin, number + 1), mark))
            begin = 0
    return marks


def _node(layer: str) -> str:
    return layer.partition("/")[0]
