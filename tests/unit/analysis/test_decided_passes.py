"""Orders of nodes side by side, and what came of what through passes: records alone."""

from hypothesis import given
from hypothesis import strategies as st

from idbg.analysis.decisions.passes import aligned, came_from
from idbg.schema.decisions import events
from idbg.schema.decisions.passes import PassRun, PhaseRun
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run

# a permutation cut short: one draw of each, where a list of unique ones is drawn again for each that it has already
orders = st.builds(lambda names, length: names[:length], st.permutations([*map(str, range(31))]), st.integers(0, 31))


@given(before=orders, after=orders)
def test_each_side_is_whole_and_in_order(before: list[str], after: list[str]):
    rows = aligned(before, after)
    assert [left for left, _ in rows if left] == before
    assert [right for _, right in rows if right] == after
    assert all(left == right for left, right in rows if left and right)


@given(nodes=orders, which=st.data())
def test_one_node_that_moved_is_the_only_one_that_moved(nodes: list[str], which: st.DataObject):
    if not nodes:
        return
    moving = which.draw(st.sampled_from(nodes))
    rest = [name for name in nodes if name != moving]
    at = which.draw(st.integers(0, len(rest)))
    rows = aligned(nodes, [*rest[:at], moving, *rest[at:]])
    assert sum(left != right for left, right in rows) <= 2


def test_100_000_nodes_turned_round_are_aligned_in_a_moment():
    nodes = [str(at) for at in range(100_000)]
    assert len(aligned(nodes, nodes[::-1])) == 2 * len(nodes) - 1


def test_a_node_is_followed_to_what_the_first_pass_found():
    run = Run(1, Program("m.py"), Target(), 0.0)
    first = PassRun(name="a", came=("b",), went=("a1", "a2"), of=(("b", ("a1", "a2")),))
    second = PassRun(name="b", came=("c",), went=("b",), of=(("c", ("b",)),))
    other = PassRun(name="c", came=("c",), went=("z",), of=(("c", ("z",)),))
    phases = (
        PhaseRun(phase="joint", ran=1, passes=(first,)),
        PhaseRun(phase="post_grad", part="forward", ran=1, passes=(second,)),
        PhaseRun(phase="post_grad", part="backward", ran=1, passes=(other,)),
    )
    run.apply(events.PassesRan(run=1, frame="0/0", phases=phases))
    assert came_from(run, "0/0", "c", "forward") == ("a1", "a2")
    assert came_from(run, "0/0", "c", "backward") == ("z",)
    assert came_from(run, "0/0", "d", "forward") == ("d",)
