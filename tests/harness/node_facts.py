"""The facts of the selected node, as the pane Node lists them."""

from typing import NamedTuple

from idbg.format import file_names
from idbg.views import node
from idbg.views.tree import Place, Row
from idbg_tui.state import queries
from idbg_tui.state.state import State


class Fact(NamedTuple):
    label: str
    text: str
    row: Row


def facts(state: State) -> list[Fact]:
    about = queries.about_node(state)
    files = queries.source_files(state)
    found = []
    for row in node.view(about).body if about is not None else ():
        assert isinstance(row, Row)
        label, *rest = [file_names.place(*part, files) if isinstance(part, Place) else part.text for part in row.words]
        found.append(Fact(label.strip(), "".join(rest), row))
    return found
