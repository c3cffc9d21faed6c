"""Link the lines of a compiler's text to the nodes of the graph that it compiled."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from idbg.analysis.stage_links.languages import marks_of
from idbg.analysis.stage_links.marks import Mark, Marks, Place, joined
from idbg.schema.code import LineLinks
from idbg.schema.graphs import Graph, GraphId

Given = Mapping[int | str, str | Sequence[str]]
Handles = Mapping[str, Sequence[str]]
"""Inductor's debug handles -> the post-grad nodes that a launch computes."""


class Linked(NamedTuple):
    """The lines of a text that belong to nodes of `graph`; the names, in the author's own links, that no graph has."""

    graph: GraphId | None = None
    links: LineLinks = ()
    unknown: tuple[str, ...] = ()


def linked(text: str, language: str, given: Given, graphs: Sequence[Graph], handles: Handles) -> Linked:
    """The links of a text: those that its author gives, and those that its language has. Of `graphs` the one in which
    most lines have nodes, of several the first.
    """
    marks, unknown = _of_author(text, given, graphs, handles)
    for line, mark in marks_of(text, language).items():
        marks[line] = joined([marks[line], mark]) if line in marks else mark
    best: tuple[Graph | None, LineLinks] = None, ()
    for graph in graphs:
        found = tuple(_resolved(marks, graph))
        if len(found) > len(best[1]):
            best = graph, found
    return Linked(best[0].id if best[0] is not None else None, best[1], unknown)


def _of_author(text: str, given: Given, graphs: Sequence[Graph], handles: Handles) -> tuple[Marks, tuple[str, ...]]:
    """The marks of the author's own links, and the names among them that are no node's."""
    marks: Marks = {}
    existing = frozenset(name for graph in graphs for name in graph.by_name)
    unknown: dict[str, None] = {}
    made: dict[tuple[str, ...], Mark] = {}  # most lines name what another names
    for key, value in given.items():
        names = (value,) if isinstance(value, str) else tuple(value)
        if names not in made:
            known = {name: tuple(handles.get(name, (name,))) for name in names}
            unknown.update(dict.fromkeys(name for name in names if existing.isdisjoint(known[name])))
            made[names] = Mark(tuple(each for name in names for each in known[name]))
        for line in [key] if isinstance(key, int) else _lines_with(text, key):
            marks[line] = joined([marks[line], made[names]]) if line in marks else made[names]
    return marks, tuple(unknown)


def _lines_with(text: str, key: str) -> list[int]:
    return [number for number, line in enumerate(text.split("\n"), 1) if key and key in line]


def _resolved(marks: Marks, graph: Graph) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The lines that belong to nodes of this graph: by the nodes' names, else by their lines of the program."""
    places: dict[Place, list[str]] = {}
    files: dict[str, set[str]] = {}
    for node in graph.nodes:
        if node.file and node.op != "placeholder":
            places.setdefault((node.file, node.line), []).append(node.name)
            files.setdefault(os.path.basename(node.file), set()).add(node.file)
    known: dict[Mark, tuple[str, ...]] = {}
    for line in sorted(marks):
        mark = marks[line]
        if mark not in known:
            names = [name for name in mark.names if name in graph.by_name]
            if not names:
                names = [name for group in mark.places for name in _first(group, places, files)]
            known[mark] = tuple(dict.fromkeys(names))
        if line > 0 and known[mark]:
            yield line, known[mark]


def _first(group: Sequence[Place], places: dict[Place, list[str]], files: dict[str, set[str]]) -> Sequence[str]:
    """The nodes of the first of these places that has some. A file without its folder is the only one of its name."""
    for file, line in group:
        if (names := places.get((file, line))) is not None:
            return names
        alike = files.get(file, set()) if os.path.basename(file) == file else set()
        if len(alike) == 1 and (names := places.get((next(iter(alike)), line))) is not None:
            return names
    return ()
