"""Show each graph as a tree of the user's modules, drawn, searchable, and linked with kernels and lines."""

from collections import Counter

from markupsafe import Markup

from idbg.analysis.decisions.frames import spoken
from idbg.render.html import links
from idbg.render.html.code import Listing, listings
from idbg.render.html.templating import fill, island
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.graph_data import MOST_NODES, collected
from idbg.schema.graphs import Frame

TITLE = "Graphs"
ANCHOR = "graphs"


def section(session: SessionData) -> Markup | None:
    """The data of the graphs, which the page's script shows, and a table of them."""
    runs = [run for run in session.history.runs.values() if run.graphs]
    if not runs:
        return None
    found = collected(runs)
    broken: Counter[str] = Counter()
    for run in runs:
        nodes = {violation.node for violation in run.violations}
        broken.update(links.graph_key(run.number, node.graph) for node in nodes)
    return fill(
        "graphs.html",
        graphs=[
            (
                run,
                graph,
                spoken(run.frames.get(graph.id.frame, Frame(graph.id.frame, ""))),
                links.graph_key(run.number, graph.id),
            )
            for run, graph in found.shown
        ],
        broken=broken,
        left_out=found.left_out,
        most=MOST_NODES,
        codes=listings(Listing(f"run {run.number}: {graph.id} as Python", graph.code) for run, graph in found.shown),
        island=island("graphs-data", found.data),
    )
