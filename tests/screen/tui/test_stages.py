"""Are the graphs of a level found, named and taken in an order that goes to the nearest first?"""

from idbg.schema.graphs import Graph, GraphId, Part, Stage
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.views.frame_graphs import graph_words
from idbg_tui.state import stages
from tests.harness.recorded import chain


def run_of(*ids: GraphId) -> Run:
    run = Run(1, Program("m.py"), Target(), 0.0)
    run.graphs = {graph: Graph(graph, chain(1).nodes) for graph in ids}
    return run


def of(frame: str, stage: Stage, part: Part = "") -> GraphId:
    return GraphId(frame, stage, part)


RUN = run_of(
    of("0/0", "dynamo"), of("0/0", "forward"), of("0/0", "backward"), of("1/0", "dynamo"), of("1/0", "forward")
)


def test_the_same_level_comes_first_and_then_the_same_frame() -> None:
    order = [graph.id for graph in stages.nearest(RUN, of("0/0", "forward"))]
    assert order == [of("0/0", "backward"), of("1/0", "forward"), of("0/0", "dynamo"), of("1/0", "dynamo")]


def test_a_level_is_named_by_its_stages() -> None:
    assert stages.names_of(stages.level(RUN, of("1/0", "forward"))) == "forward + backward"
    assert stages.names_of(stages.level(RUN, of("1/0", "dynamo"))) == "dynamo"
    assert graph_words(of("0/0", "post_grad", "backward")) == "post-grad backward"
