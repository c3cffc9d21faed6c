"""What is said of the stage since which the numbers are wrong, in a sentence and as a table."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import fields, replace

from idbg.reports.diff import summary, to_json
from idbg.reports.fail_kinds import findings_of
from idbg.schema.attribution import STAGES, Maker, MakerKind, StageError
from idbg.schema.diff import DiffReport
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.views.blame import (
    blame_sentence,
    blamed_line,
    blamed_stage,
    cause,
    faithful_to,
    stage_cells,
    standing,
    where_to_ask,
)
from idbg.views.diagnostics import diagnostics
from tests.harness.blamed import (
    FAITHFUL,
    GUILTY,
    KERNEL,
    PASS,
    WRONG,
    by_a_backend,
    by_a_kernel,
    by_a_pass,
    report,
    stage,
    unjudged,
)

WHY = "its dtype has no float64"


def test_a_wrong_pass_is_told_in_the_words_of_the_issue() -> None:
    assert blame_sentence(by_a_pass()) == (
        "wrong since post-grad: `mul_3` (plant.py:21), made by post_grad_custom_post_pass; kernels are faithful"
    )


UNSEEN = replace(FAITHFUL[2], observed=False, reason="it draws random numbers")


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (report(GUILTY, kernels=(FAITHFUL[0], KERNEL)), "; kernel `cpp_fused_1` (plant.py:21) is wrong too"),
        (report(GUILTY, kernels=(*FAITHFUL[:2], UNSEEN)), "; the 2 observed kernels are faithful, 1 not observed"),
        (report(GUILTY, kernels=(UNSEEN,), stages=(GUILTY,)), "; no kernel was observed"),
        (report(GUILTY, unjudged("kernels", "no"), kernels=()), "; kernels were not compared"),
        (report(replace(GUILTY, made_by=None)), "(plant.py:21), what made it is not known; kernels are faithful"),
        (
            report(replace(GUILTY, made_by=Maker(kind="decomposition", name="aten.gelu"))),
            "`mul_3` (plant.py:21), probably made by the decomposition of aten.gelu; kernels are faithful",
        ),
        (report(replace(GUILTY, part="backward")), "wrong since post-grad backward: `mul_3`"),
        (
            report(replace(GUILTY, node="", output="state (after)")),
            "wrong since post-grad: its output `state (after)` does not get `mul_2` (plant.py:21) of the stage before, "
            "made by post_grad_custom_post_pass; kernels are faithful",
        ),
        (report(replace(GUILTY, node="", file="")), "wrong since post-grad: its output `mul_3`, at no known node"),
    ],
)
def test_a_guilty_graph_is_told_with_what_made_it_and_what_the_kernels_do(found: DiffReport, told: str) -> None:
    assert told in blame_sentence(found)


def test_a_guilty_kernel_is_told_with_what_is_known_of_the_graphs_above() -> None:
    said = "wrong since kernels: `cpp_fused_1` (plant.py:21)"
    assert blame_sentence(by_a_kernel()) == f"{said}; every graph above is right"
    kernels = KERNEL, FAITHFUL[0]
    known = "kernel `cpp_fused_1` (plant.py:21) is wrong; whether the graphs above it are is not known"
    partly = report(unjudged("post_grad", WHY), kernels=kernels)
    assert blame_sentence(partly) == f"{known}: post-grad was not judged: {WHY}"
    assert (cause(partly), blamed_line(partly)) == ("", ("", 0)), "where the sentence has no room nothing is accused"
    implied = report(unjudged("joint", "the stages below it are right"), kernels=kernels)
    assert blame_sentence(implied) == f"{said}; every graph above is right"
    assert [standing(one, implied) for one in implied.stages[1:4]] == ["right", "implied", "right"]
    nothing = tuple(unjudged(name, WHY) for name in ("dynamo", "joint"))
    unknown = report(kernels=kernels, stages=nothing)
    assert blame_sentence(unknown) == f"{known}: dynamo, joint were not judged: {WHY}"
    assert blame_sentence(report(kernels=kernels, stages=())) == "the first bad kernel is `cpp_fused_1` (plant.py:21)"


def test_what_was_not_judged_above_a_guilty_stage_may_be_guilty_too() -> None:
    found = report(replace(GUILTY, stage="partitioned"), unjudged("joint_passes", WHY), unjudged("joint", WHY))
    assert blame_sentence(found) == (
        f"wrong at partitioned at the latest; before it joint, joint passes were not judged: {WHY}; "
        "kernels are faithful"
    )
    assert [standing(one, found) for one in found.stages[2:]] == [
        "unjudged",
        "unjudged",
        "first_wrong",
        *["faithful"] * 2,
    ]


def test_nothing_is_named_below_a_stage_that_was_not_judged() -> None:
    found = report(GUILTY, unjudged("pre_grad", WHY), unjudged("joint_passes", "right, as follows"))
    assert found.stages[5] is GUILTY, "of those two a right stage follows"
    found = report(GUILTY, unjudged("partitioned", WHY), stage("kernels", bad=True, made_by=PASS))
    assert found.stages[5] == StageError(stage="post_grad", error=3e-4, added=3e-4, bad=True, frame=GUILTY.frame)
    assert (blamed_line(found), cause(found), blamed_stage(found)) == (("", 0), "", "")
    assert replace(found, stages=(*found.stages[:4], *found.stages[5:])).stages[4].node == "", "it stays without names"
    assert found.stages[6].made_by == PASS, "what a launch computes of its own inputs is known"
    lost = blame_sentence(replace(found, stages=(*found.stages[:5], found.stages[6])))
    assert lost == (
        "wrong at kernels at the latest, made by post_grad_custom_post_pass; "
        f"whether the graphs above it are is not known: partitioned was not judged: {WHY}"
    )


def test_a_lowering_is_told_by_its_op() -> None:
    lowering = Maker(kind="lowering", name="aten.mul", proven="its eager fallback is right")
    found = by_a_kernel()
    found = replace(found, stages=(*found.stages[:-1], replace(found.stages[-1], made_by=lowering)))
    assert ": `cpp_fused_1` (plant.py:21), made by the lowering of aten.mul; every graph above" in blame_sentence(found)


def test_a_backend_without_kernels_is_named_for_them() -> None:
    assert blame_sentence(by_a_backend()) == "wrong since tvm: `relu` (plant.py:21)"
    backward = replace(by_a_backend().kernels[0], part="backward")
    assert blame_sentence(replace(by_a_backend(), kernels=(backward,))) == (
        "wrong since tvm backward: `relu` (plant.py:21)"
    )
    assert [(row.stage, row.made_by) for row in stage_cells(by_a_backend())] == [("dynamo", ""), ("tvm", "")]


def test_where_all_is_right_and_the_outputs_are_not_it_is_said_what_that_leaves() -> None:
    said = blame_sentence(report())
    assert "outside of the compiled graphs" in said and "than rounding may be" in said
    assert blame_sentence(report(unjudged("post_grad", WHY), kernels=(*FAITHFUL, UNSEEN))) == (
        "nothing that was looked at is wrong: suspect post-grad not judged and 1 kernel not observed"
    )
    assert blame_sentence(report(kernels=(UNSEEN,), stages=(unjudged("dynamo", WHY),))) == (
        "not known where: suspect dynamo not judged and 1 kernel not observed"
    )


def test_no_kernel_is_called_faithful_where_a_sentence_says_that_graphs_may_be_wrong() -> None:
    text = summary(report(stages=()))
    assert text.count("may be wrong itself (a decomposition, a pass)") == 1 and "faithful" not in text


def test_several_frames_are_told_apart() -> None:
    second = replace(GUILTY, frame="1/0", stage="joint", part="")
    found = replace(by_a_pass(), stages=(*by_a_pass().stages, second))
    assert blame_sentence(found) == (
        "wrong since post-grad of frame 0/0: `mul_3` (plant.py:21), made by post_grad_custom_post_pass; "
        "wrong too: frame 1/0 since joint; kernels are faithful"
    )
    below = replace(found, stages=(*found.stages[:-1], replace(unjudged("pre_grad", WHY), frame="1/0"), second))
    assert "wrong too: frame 1/0 at joint at the latest; kernels" in blame_sentence(below)
    assert below.stages[5] is GUILTY, "every stage above it in its own frame was judged"
    assert [row.stage for row in stage_cells(found)][-2:] == ["0/0 kernels", "1/0 joint"]
    assert [standing(one, found) for one in found.stages[-3:]] == ["first_wrong", "faithful", "first_wrong"]


@pytest.mark.parametrize("known", [{"verdict": "passed"}, {"verdict": "error"}, {"stages": (), "kernels": ()}])
def test_nothing_is_blamed_where_nothing_failed_or_nobody_asked(known: dict[str, Any]) -> None:
    assert blame_sentence(replace(by_a_pass(), **known)) == ""


def test_what_fails_by_its_shape_alone_is_no_matter_of_stages() -> None:
    missing = replace(WRONG, failed_by=("missing",))
    assert blame_sentence(replace(report(), outputs=(missing,))) == ""
    assert blame_sentence(replace(by_a_pass(), outputs=(missing,))), "but a stage that is guilty is told"


def test_a_comparison_that_did_not_ask_says_how_to_find_out() -> None:
    plain = report(kernels=(), stages=())
    told = "where they go wrong is not known: --per-kernel says which stage, node, pass or kernel"
    assert where_to_ask(plain, "--per-kernel") == told
    assert summary(plain, "--per-kernel").splitlines()[1] == told
    assert "--per-kernel" not in summary(plain)
    assert where_to_ask(replace(plain, verdict="passed"), "D") == ""


def test_the_table_stands_under_the_sentence() -> None:
    reason = "Dynamo's graph could not be traced to ATen without its decompositions: " + "a long reason " * 6
    found = replace(by_a_pass(), stages=(unjudged("dynamo", reason), *by_a_pass().stages[-3:]))
    lines = summary(found).splitlines()
    assert lines[1] == blame_sentence(found)
    table = [" ".join(line.split()) for line in lines[3:10]]
    assert table == [
        "stage to float64 to before first bad node line",
        "· dynamo - -",
        "not run: what follows from it is right",
        "✔ partitioned 1.0e-16 1.0e-16",
        "✘ post-grad 3.0e-04 3.0e-04 mul_3 plant.py:21",
        "made by post_grad_custom_post_pass (plant.py:9): without it the outputs are right",
        "what post_grad_custom_post_pass changed in the graph",
    ]


def test_why_a_stage_was_not_judged_is_told_whole() -> None:
    reason = "Dynamo's graph could not be traced to ATen without its decompositions: " + "a long reason " * 6
    told = " ".join(summary(report(unjudged("post_grad", reason), unjudged("kernels", reason))).split())
    assert told.count(f"not judged: {reason.strip()}") == 2


def test_a_pass_shows_the_table_quietly() -> None:
    found = replace(by_a_pass(), verdict="passed", outputs=())
    text = summary(replace(found, outputs=(replace(WRONG, passed=True, failed_by=()),)))
    assert "✘" not in text and "off, and not accused" in text and "· post-grad" in text
    assert GUILTY.node not in text, "what is not proven names nobody"
    assert {standing(one, found) for one in found.stages} == {"right", "harmless"}


CHANGED = replace(GUILTY, bad=False, harmless=True, changed=True, node_error=0.04)


def test_a_change_within_rounding_is_said_of_a_run_that_passed() -> None:
    passed = replace(WRONG, passed=True, failed_by=())
    found = replace(report(CHANGED), verdict="passed", outputs=(passed,))
    said = "post-grad changed the graph: 4 % in float64 at `mul_3` (plant.py:21), made by post_grad_custom_post_pass"
    assert blame_sentence(found) == f"within rounding, but {said}"
    assert found.first_wrong_stage is None and found.changed_stage is CHANGED
    below = replace(report(CHANGED, unjudged("partitioned", WHY)), verdict="passed", outputs=(passed,))
    assert blame_sentence(below) == "" and below.changed_stage is None
    text = summary(found)
    assert said in " ".join(text.split()) and "✘" not in text and "· post-grad" in text
    (diagnostic,) = diagnostics(Run(1, Program("model.py"), Target("inductor"), 0.0, diff=found))
    assert (diagnostic.kind, diagnostic.level, diagnostic.line) == ("change", "warning", 21)
    assert "change" in findings_of(["change"])


def test_a_stage_that_is_off_and_not_proven_to_change_anything_names_nobody() -> None:
    found = replace(report(replace(CHANGED, changed=False)), verdict="passed", outputs=())
    assert blame_sentence(found) == "" and found.changed_stage is None
    (row,) = (row for row in stage_cells(found) if row.standing == "harmless")
    assert (row.node, row.made_by) == ("", "")


def test_a_kernel_is_faithful_to_the_stage_whose_graph_it_computes() -> None:
    found = report(GUILTY, kernels=(FAITHFUL[0], KERNEL, UNSEEN))
    assert [faithful_to(one, found) for one in found.kernels] == [GUILTY, None, None]
    assert faithful_to(replace(FAITHFUL[0], part="backward"), found) is None, "another graph's"
    assert faithful_to(FAITHFUL[0], by_a_kernel()) is None


def test_the_json_has_the_sentence_the_stages_and_to_what_kernels_are_faithful() -> None:
    found = by_a_pass()
    told = json.loads(to_json(found))
    assert told["blame"] == blame_sentence(found)
    assert [one["stage"] for one in told["stages"]] == [one.stage for one in found.stages]
    guilty = told["stages"][5]
    assert (guilty["node"], guilty["line"], guilty["bad"], guilty["judged"]) == ("mul_3", 21, True, True)
    assert guilty["graph"] == {"frame": "0/0", "stage": "post_grad", "part": "inference"}
    assert guilty["made_by"]["diff"] == PASS.diff and told["stages"][0]["made_by"] is None
    assert [one["faithful_to"] for one in told["kernels"]] == ["post_grad"] * 3


def test_the_page_of_the_json_has_every_key_of_a_stage_and_of_what_made_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "json-schema.md").read_text(encoding="utf-8")
    (row,) = (part for part in page.split("\n\n") if part.startswith("A stage: "))
    for record in (StageError, Maker):
        assert [field.name for field in fields(record) if f"`{field.name}`" not in row] == []
    assert [name for name in (*STAGES, *get_args(MakerKind)) if f"`{name}`" not in row] == []
