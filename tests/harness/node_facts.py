"""The facts of the selected node or module, as the pane Node lists them."""

from typing import NamedTuple

from idbg.format import file_names
from idbg.views import module, node
from idbg.views.tree import Place, Row
from idbg_tui.state import queries
from idbg_tui.state.state import State


class Fact(NamedTuple):
    label: str
    text: str
    row: Row


def facts(state: State) -> list[Fact]:
    about, of_module = queries.about_node(state), queries.about_module(state)
    files = queries.source_files(state)
    found = []
    known = module.facts(of_module) if of_module is not None else node.facts(about) if about is not None else ()
    for row in known:
        label, *rest = [file_names.place(*part, files) if isinstance(part, Place) else part.text for part in row.words]
        found.append(Fact(label.strip(), "".join(rest), row))
    return found
