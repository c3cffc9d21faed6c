"""How whose an error is reads, and which launch a name means."""

import json
from typing import get_args

import pytest
from msgspec.structs import replace

from idbg.format.attributions import sentence
from idbg.reports.diff import summary, to_json
from idbg.schema.attribution import AttributionFinding, AttributionFindingKind, AttributionKind, KernelAttribution
from idbg.schema.diff import DiffReport, KernelError
from idbg.schema.errors import BadInput
from idbg.views.attribution import launch_named, script_sentence


def launch(name: str, handle: str = "", *, bad: bool = False) -> KernelError:
    return KernelError(frame="0/0", part="inference", name=name, handle=handle, observed=True, error=0.1, bad=bad)


KERNELS = (
    launch("extern_kernels.mm", "extern_kernels.mm:1"),
    launch("cpp_fused_add_0"),
    launch("extern_kernels.mm", "extern_kernels.mm:3", bad=True),
)
REPORT = DiffReport(
    test="inductor", reference="eager", verdict="failed", mode="float64", kernels=KERNELS, first_bad_kernel=2
)
OWNER = KernelAttribution(
    launch=2, name="extern_kernels.mm", kind="compiler", sentence="the compiler's: it is wrong", error=0.1, cause=None
)


def test_a_name_or_a_handle_means_a_launch_and_nothing_the_first_bad_one():
    assert [launch_named(REPORT, name) for name in ("", "extern_kernels.mm", "extern_kernels.mm:1")] == [2, 2, 0]
    assert launch_named(REPORT, "cpp_fused_add_0") == 1


@pytest.mark.parametrize(
    ("name", "hint"), [("cpp_fused_ad_0", "did you mean cpp_fused_add_0"), ("zzz", "there are: extern_kernels.mm, cpp")]
)
def test_a_name_that_is_not_there_gets_a_suggestion(name: str, hint: str):
    with pytest.raises(BadInput, match="no kernel of the comparison") as raised:
        launch_named(REPORT, name)
    assert hint in raised.value.hint


def test_where_no_kernel_is_accused_one_must_be_named():
    with pytest.raises(BadInput, match="no kernel is accused"):
        launch_named(DiffReport(test="a", reference="b", verdict="passed", mode="float64", kernels=KERNELS[:2]), "")


def test_the_verdict_is_in_the_text_and_in_the_json_and_an_older_one_of_the_launch_is_replaced():
    report = REPORT.with_owner(OWNER).with_owner(OWNER)
    assert report.owners == (OWNER,) and report.owner_of(2) == OWNER and report.owner_of(0) is None
    assert "✘ the compiler's: it is wrong" in summary(report).splitlines()
    told = json.loads(to_json(report))["owners"]
    assert [(one["launch"], one["kind"], one["error"], one["cause"]) for one in told] == [(2, "compiler", 0.1, None)]


@pytest.mark.parametrize(
    ("kind", "status", "printed", "said"),
    [
        ("compiler", 1, "WRONG: buf0", "finds it wrong (exit 1)"),
        ("compiler", 0, "right: buf0", "does NOT find it wrong"),
        ("before", 0, "right: buf0", "finds it right alone (exit 0)"),
        ("before", 1, "WRONG: buf0", "finds it WRONG alone"),
        ("compiler", 1, "Traceback: ImportError", "failed by itself in a fresh process (exit 1)"),
        ("compiler", None, "", "not tried to its end"),
    ],
)
def test_what_the_script_did_in_a_fresh_process_is_said(
    kind: AttributionKind, status: int | None, printed: str, said: str
):
    owner = KernelAttribution(
        launch=0,
        name="k",
        kind=kind,
        sentence="",
        script="/r/repro.py",
        status=status,
        printed=printed,
    )
    assert said in script_sentence(owner) and script_sentence(owner).endswith("/r/repro.py")


def test_why_there_is_no_script_is_said():
    assert script_sentence(OWNER) == ""
    owner = KernelAttribution(launch=0, name="k", kind="nobody", sentence="", no_script="it calls my::op")
    assert script_sentence(owner) == "no script: it calls my::op"


def test_the_sentence_is_made_of_the_findings_and_one_of_an_older_session_stays():
    wrong = AttributionFinding("wrong alone", buffer="buf0", node="mm", error=0.5, eager_error=1e-7)
    owner = KernelAttribution(
        launch=0, name="k", kind="compiler", label="k (line 3)", findings=(wrong, AttributionFinding("race"))
    )
    figures = "its relative error against float64 is 0.5, eager's 1e-07"
    assert sentence(owner) == (
        f"the compiler's: called alone on its own inputs k (line 3) is wrong: {figures}, in buf0 (mm)"
        "; the same call gives something else each time, as a race does"
    )
    step = AttributionFinding("step of a node", launch="k2", node="softmax")
    assert sentence(replace(owner, findings=(step, wrong))).startswith(
        "it computes a step of softmax, judged with k2: the compiler's: called alone"
    )
    assert sentence(OWNER) == "the compiler's: it is wrong"
    every = {
        kind: sentence(replace(owner, findings=(AttributionFinding(kind, detail="d"),)))
        for kind in get_args(AttributionFindingKind)
    }
    assert not any("{" in text for text in every.values())
