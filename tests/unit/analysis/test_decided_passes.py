"""Orders of nodes side by side, and what came of what through passes: records alone."""

from hypothesis import given
from hypothesis import strategies as st

from idbg.analysis.decisions.side_by_side import aligned

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
