"""Are remarks on a comparison codes in the record and sentences for the reader, also those of older sessions?"""

import json
from typing import get_args, get_type_hints

import msgspec
import pytest

from idbg.reports.diff import as_json, to_json
from idbg.schema.attribution import Maker, StageError
from idbg.schema.bisection import Bisected
from idbg.schema.diff import DiffReport, FormDiff, TensorDiff
from idbg.schema.remarks import NoFloat64, Remark, RemarkKind
from idbg.views.remarks import form_sentence, no_float64, sentence, tensor_note

STRIDES = "its strides are [1, 4], in eager [4, 1]"
OLD = {
    "test": "aot",
    "reference": "eager",
    "verdict": "passed",
    "mode": "tolerance",
    "float64": "not run: eager failed",
    "outputs": [{"name": "out", "form": [{"kind": "stride", "said": STRIDES, "failed": False}], "note": STRIDES}],
    "notes": ["plain has no kernels that can be observed"],
}


@pytest.mark.parametrize("kind", get_args(RemarkKind))
def test_each_remark_is_a_sentence_with_its_names(kind: RemarkKind) -> None:
    bare, named = sentence(Remark(kind)), sentence(Remark(kind, "{my op}", "{detail}"))
    assert len(bare) > (5 if kind != "error" else -1) and "subject" not in named
    assert (bare != named) is ("{my op}" in named or "{detail}" in named)


def test_each_reason_for_no_float64_is_a_sentence() -> None:
    for why in get_args(get_type_hints(NoFloat64)["why"]):
        assert "no such" in no_float64(NoFloat64(why, "no such")) or "no such" not in no_float64(NoFloat64(why))
        assert no_float64(NoFloat64(why, "no such op", on_cpu=True)).endswith(" (it ran on the CPU)")
    assert no_float64("") == ""


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (FormDiff("stride", side="eager", reference="[4, 1]", test="[1, 4]"), STRIDES),
        (FormDiff("layout", failed=True, side="eager", reference="sparse_coo", test="strided"), "in eager sparse_coo"),
        (FormDiff("requires_grad", failed=True, side="eager"), "it requires no gradient, in eager it does"),
        (FormDiff("requires_grad", side="eager"), "it requires a gradient, in eager it does not"),
        (FormDiff("alias", failed=True, side="eager", reference="x"), "it is a copy, in eager a view of x"),
        (FormDiff("alias", failed=True, side="eager", test="x"), "it lies in the memory of x, in eager in its own"),
        (FormDiff("alias", failed=True, side="eager", reference="y", test="x"), "in eager in that of y"),
        (FormDiff("alias", side="eager", reference="out[0]"), "it is a copy, in eager it shares memory with out[0]"),
        (FormDiff("alias", side="eager", test="out[0]"), "memory with out[0], in eager with no other output"),
    ],
)
def test_the_form_of_an_output_is_a_sentence(form: FormDiff, said: str) -> None:
    assert said in form_sentence(form)
    assert tensor_note(TensorDiff(form=(form,), note="and more")) == f"{form_sentence(form)}; and more"


def test_a_session_of_today_opens_and_reads_the_same() -> None:
    old = msgspec.json.decode(json.dumps(OLD), type=DiffReport)
    strides = FormDiff("stride", side="eager", reference="[4, 1]", test="[1, 4]")
    new = msgspec.structs.replace(
        old,
        float64_missing=NoFloat64("reference", "eager"),
        outputs=(TensorDiff(name="out", form=(strides,)),),
        notes=(Remark("no kernels", "plain"),),
    )
    again = msgspec.json.decode(msgspec.json.encode(new), type=DiffReport)
    assert again == new
    shown, before = as_json(new), as_json(old)
    assert (shown["float64"], shown["notes"]) == (before["float64"], before["notes"]) == (OLD["float64"], OLD["notes"])
    for report in (old, new):
        (output,) = json.loads(to_json(report))["outputs"]
        assert output["note"] == output["form"][0]["said"] == STRIDES


@pytest.mark.parametrize(
    ("old", "new", "type_"),
    [
        (
            {"stage": "joint", "judged": False, "reason": "Inductor did not report it"},
            StageError(stage="joint", judged=False, reason=(Remark("not reported"),)),
            StageError,
        ),
        (
            {"kind": "pass", "name": "f", "proven": "the graph before it is right, and the one after it is not"},
            Maker(kind="pass", name="f", proven=Remark("right before it")),
            Maker,
        ),
        (
            {"question": "options", "note": "it fails under both alike"},
            Bisected("options", note=Remark("both fail")),
            Bisected,
        ),
    ],
)
def test_what_an_older_session_says_in_words_reads_as_the_code_of_today(
    old: dict[str, object], new: msgspec.Struct, type_: type[msgspec.Struct]
) -> None:
    before = msgspec.convert(old, type_)
    for name in ("reason", "proven", "note"):
        if name in old:
            assert sentence(getattr(before, name)) == sentence(getattr(new, name)) == old[name]
    assert msgspec.json.decode(msgspec.json.encode(new), type=type_) == new
