"""Two runs are held against each other: kernels are matched by what they compute, whatever they are called."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from idbg.analysis.decisions.compared import compared
from idbg.analysis.decisions.kernels_matched import KernelChange, matched
from idbg.analysis.decisions.side_by_side import around_changes, side_by_side
from idbg.schema import events
from idbg.schema.code import OutputCode
from idbg.schema.decisions.dynamo import BreakAgain, GraphBreak
from idbg.schema.decisions.inductor import CacheAnswer
from idbg.schema.graphs import Frame, GraphId, NodeId
from idbg.schema.runs import Run
from idbg.schema.violations import Violation
from idbg.views.compared import view
from idbg.views.tree import Row
from tests.harness.two_runs import POST, kernel, run

BEFORE = {"extern_mm": "mm", "k0": "relu add", "k1": "mul", "k2": "sum"}


def changes(before: Run, after: Run) -> list[tuple[str, list[str], list[str]]]:
    return [words(change) for change in matched(before, after, {"0/0": "0/0"})]


def words(change: KernelChange) -> tuple[str, list[str], list[str]]:
    return change.how, [each.name for each in change.before], [each.name for each in change.after]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BEFORE, [("same", ["k0"], ["k0"]), ("same", ["k1"], ["k1"]), ("same", ["k2"], ["k2"])]),
        (
            {"extern_mm": "mm", "a": "relu", "b": "add", "k1": "mul", "k2": "sum"},
            [("split", ["k0"], ["a", "b"]), ("same", ["k1"], ["k1"]), ("same", ["k2"], ["k2"])],
        ),
        (
            {"extern_mm": "mm", "k0": "relu add", "one": "mul sum"},
            [("same", ["k0"], ["k0"]), ("merged", ["k1", "k2"], ["one"])],
        ),
        (
            {"extern_mm": "mm", "a": "relu", "b": "add mul", "k2": "sum"},
            [("regrouped", ["k0", "k1"], ["a", "b"]), ("same", ["k2"], ["k2"])],
        ),
        (
            {"extern_mm": "mm", "k0": "relu add", "k1": "mul"},
            [("same", ["k0"], ["k0"]), ("same", ["k1"], ["k1"]), ("gone", ["k2"], [])],
        ),
    ],
)
def test_kernels_are_the_same_split_merged_regrouped_or_gone(
    after: Mapping[str, str], expected: list[tuple[str, list[str], list[str]]]
) -> None:
    assert changes(run(BEFORE), run(after, number=2)) == [("same", ["extern_mm"], ["extern_mm"]), *expected]


def test_names_do_not_matter_and_a_source_does() -> None:
    renamed = run({"extern_mm": "mm", "x0": "relu add", "x1": "mul", "x2": "sum"})
    assert {how for how, _, _ in changes(run(BEFORE), renamed)} == {"same"}
    other = run(BEFORE)
    (code,) = other.codes.values()
    kernels = (*code.kernels[:1], kernel("k0", "relu add", source="def k0(in_ptr0):\n    other\n"), *code.kernels[2:])
    other.codes["0/0", "forward"] = OutputCode("0/0", "forward", "", kernels)
    found = matched(run(BEFORE), other, {"0/0": "0/0"})
    assert [(change.how, change.what) for change in found if change.how != "same"] == [("changed", "its source")]


def test_a_product_that_became_a_kernel_of_ours_is_said() -> None:
    after = run({"cpp_gemm": "mm", "k0": "relu add", "k1": "mul", "k2": "sum"})
    (change, *_) = matched(run(BEFORE), after, {"0/0": "0/0"})
    assert (change.how, change.what) == ("changed", "extern became triton")


def test_nodes_with_other_names_are_the_same_where_they_come_from_the_same_of_the_program() -> None:
    """Another decomposition: the names of the post-grad graph are others, those of Dynamo's are the program's."""
    after = run(
        {"extern_mm": "mm", "k": "relu_1 add_1 mul_1", "k2": "sum"}, nodes=("mm", "relu_1", "add_1", "mul_1", "sum")
    )
    assert changes(run(BEFORE), after) == [
        ("same", ["extern_mm"], ["extern_mm"]),
        ("merged", ["k0", "k1"], ["k"]),
        ("same", ["k2"], ["k2"]),
    ]


def test_a_kernel_of_a_frame_that_one_run_alone_has_is_there() -> None:
    one, other = run(BEFORE), run(BEFORE)
    other.codes["1/0", "forward"] = replace(other.codes["0/0", "forward"], frame="1/0")
    assert [how for how, _, _ in changes(one, other)] == ["same"] * 4 + ["new"] * 4
    assert [how for how, _, _ in changes(other, one)] == ["same"] * 4 + ["gone"] * 4


def test_what_they_were_made_for_differs_by_name() -> None:
    one = run(BEFORE, options={"max_autotune": True, "cpp.simdlen": 1}, dynamic=None)
    other = run(BEFORE, options={"cpp.simdlen": 8}, dynamic=True, settings={"dynamo.recompile_limit": 2}, mode="lite")
    assert {change.name: (change.before, change.after) for change in compared(one, other).target} == {
        "dynamic": ("the program's", "True"),
        "max_autotune": ("True", "default"),
        "cpp.simdlen": ("1", "8"),
        "mode": ("the program's", "lite"),
        "dynamo.recompile_limit": ("default", "2"),
    }


def test_graphs_breaks_recompiles_violations_and_times_are_counted() -> None:
    one, other = run(BEFORE), run(BEFORE, nodes=("mm", "relu", "add", "mul", "mul_1"))
    one.breaks = [GraphBreak("a print", "m.py", 7)]
    one.decided.apply("", [BreakAgain(0, "0/0")])
    other.breaks = [GraphBreak("a print", "m.py", 7), GraphBreak("an if", "m.py", 9)]
    other.frames["0/1"] = Frame("0/1", "forward", "m.py", 3)
    other.recompiles = [events.Recompiled(run=1, frame="0/1", reason="size")]
    one.violations = [Violation(rule="align", severity="pad", node=NodeId(POST, "mm"), found="3", wanted="4")]
    one.phases, other.phases = {"codegen": 1.0, "run": 3.0}, {"codegen": 1.5, "run": 1.0}
    found = compared(one, other)
    (graph,) = [change for change in found.graphs if change.stage == "post_grad"]
    assert (graph.before, graph.after) == (5, 5)
    assert set(graph.ops) == {("aten.sum.default", 1, 0), ("aten.mul.default", 1, 2)}
    assert [(each.what, each.before, each.after) for each in found.breaks] == [("an if", 0, 1), ("a print", 2, 1)]
    assert [(each.what, each.before, each.after) for each in found.recompiles] == [("forward", 0, 1)]
    assert [(each.what, each.before, each.after) for each in found.violations] == [("align at mm (post_grad)", 1, 0)]
    assert [frame.after and frame.after.id for frame in found.frames] == ["0/1"]
    assert [(phase.name, phase.change) for phase in found.phases] == [("run", -2.0), ("codegen", 0.5)]
    assert found.numbers is None


def test_a_frame_with_another_id_is_the_same_function() -> None:
    one, other = run(BEFORE), run(BEFORE)
    other.frames = {"3/0": Frame("3/0", "forward", "m.py", 3)}
    moved = GraphId("3/0", "post_grad", "forward")
    other.graphs = {moved: replace(other.graphs[POST], id=moved)}
    other.codes = {("3/0", "forward"): replace(other.codes["0/0", "forward"], frame="3/0")}
    found = compared(one, other)
    assert not found.frames
    assert not found.different
    assert [change.stage for change in found.graphs] == ["dynamo"]


def test_texts_stand_side_by_side() -> None:
    rows = side_by_side("a\nb\nc\n", "a\nx\ny\nc\n")
    assert [(row.left, row.left_text, row.right, row.right_text, row.same) for row in rows] == [
        (1, "a", 1, "a", True),
        (2, "b", 2, "x", False),
        (0, "", 3, "y", False),
        (3, "c", 4, "c", True),
    ]
    far = side_by_side("\n".join("abcdefgh"), "\n".join("abcdefgX"))
    assert [row and row.left_text for row in around_changes(far, 1)] == [None, "g", "h"]


def cached(*outcomes: str) -> Run:
    made = run(BEFORE)
    made.decided.of(CacheAnswer)["0/0"] = [CacheAnswer(cache="fx_graph", outcome=outcome) for outcome in outcomes]  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            ("hit", "hit"),
            ("miss", "off"),
            "not comparable: 2 of 2 lookups hit in the first run, 0 of 1 in the second",
        ),
        (("miss",), ("hit",), "not comparable: 0 of 1 lookups hit in the first run, 1 of 1 in the second"),
        (("hit",), ("hit", "hit"), "every cache lookup hit in both"),
        (("miss",), ("miss",), "no cache hit in either"),
        (("off",), ("miss",), "caches may have helped one of them"),
    ],
)
def test_a_warm_run_beside_a_cold_one_is_said(before: tuple[str, ...], after: tuple[str, ...], said: str) -> None:
    rows = [block for block in view(cached(*before), cached(*after)).body if isinstance(block, Row)]
    assert said in next(row.text for row in rows if row.key == "time")
