"""A drawing's boxes never lie on one another, what is read stands above its readers, and a chain is a straight line."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from idbg.analysis.layered import GAP, HEIGHT, ROW, placed

BOXES = st.lists(st.sampled_from([60.0, 100.0, 180.0]), min_size=1, max_size=14)


@st.composite
def graphs(draw) -> tuple[list[float], list[tuple[int, int]]]:
    widths = draw(BOXES)
    pairs = [(a, b) for b in range(len(widths)) for a in range(b)]
    return widths, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


@given(graphs())
def test_boxes_never_lie_on_one_another_and_readers_stand_below(graph) -> None:
    widths, lines = graph
    drawn = placed(widths, lines)
    by_rank: dict[float, list[tuple[float, float]]] = {}
    for (x, y), width in zip(drawn.boxes, widths, strict=True):
        by_rank.setdefault(y, []).append((x, x + width))
        assert x >= -1e-6 and x + width <= drawn.width + 1e-6 and y + HEIGHT <= drawn.height
    for spans in by_rank.values():
        spans.sort()
        assert all(right + GAP <= left + 1e-6 for (_, right), (left, _) in itertools.pairwise(spans))
    for (start, end), points in zip(lines, drawn.lines, strict=True):
        assert drawn.boxes[start][1] + ROW <= drawn.boxes[end][1]
        assert points[0][1] == drawn.boxes[start][1] + HEIGHT and points[-1][1] == drawn.boxes[end][1]
        for (x, _), box in ((points[0], start), (points[-1], end)):
            assert abs(x - drawn.boxes[box][0] - widths[box] / 2) < 1e-6


def test_a_chain_is_a_straight_line() -> None:
    drawn = placed([100.0, 60.0, 180.0], [(0, 1), (1, 2)])
    assert [[x for x, _ in points] for points in drawn.lines] == [[90.0, 90.0], [90.0, 90.0]]


def test_an_input_stands_right_above_the_first_that_reads_it() -> None:
    drawn = placed([60.0] * 5, [(0, 2), (2, 3), (3, 4), (1, 4)])
    assert drawn.boxes[1][1] == drawn.boxes[3][1]


def test_two_branches_stand_side_by_side_and_do_not_cross() -> None:
    drawn = placed([60.0] * 6, [(0, 1), (0, 2), (1, 4), (2, 3), (3, 5), (4, 5)])
    assert (drawn.boxes[1][0] < drawn.boxes[2][0]) == (drawn.boxes[4][0] < drawn.boxes[3][0])


def test_a_line_that_goes_back_ends_in_a_drawing_all_the_same() -> None:
    assert len(placed([60.0, 60.0], [(1, 0), (1, 1)]).lines) == 2
    assert placed([], []).boxes == ()
