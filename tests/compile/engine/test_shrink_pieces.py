"""What shrinking is made of: recipes of tensors, and edits of lines."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from idbg.engine.minify.shrink.fills import WEIGHTS, Fill, Form, contiguous, recipe, resized
from idbg.engine.minify.shrink.literals import devices, droppable, numbers, replaced, without

DTYPES = (
    *(torch.float32, torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.complex64),
    *(torch.int64, torch.int8, torch.uint8, torch.bool),
)


@st.composite
def forms(draw: st.DrawFn) -> Form:
    """Tensors that are new, permuted, part of larger ones, or expanded."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=4)))
    dtype = draw(st.sampled_from(DTYPES))
    order = draw(st.permutations(range(len(shape))))
    room = [size + draw(st.integers(0, 1)) for size in shape]
    steps = contiguous([room[at] for at in order])
    strides = [steps[order.index(at)] * draw(st.sampled_from((1, 1, 1, 0))) for at in range(len(shape))]
    return Form(shape, tuple(strides), dtype)


@given(forms(), st.sampled_from([*WEIGHTS]))
def test_a_recipe_makes_the_tensor_that_it_is_for(form: Form, kind: str):
    fill = Fill(kind, bound=3, number=1, mean=0.5, values=tuple(at % 2 for at in range(form.room)))  # type: ignore[arg-type]
    made = eval(recipe(fill, form))
    assert (made.shape, made.dtype) == (form.shape, form.dtype)
    pairs = zip(form.shape, made.stride(), form.stride, strict=True)
    assert form.is_contiguous == made.is_contiguous() or 0 in form.stride
    assert form.is_contiguous or all(step == wanted for size, step, wanted in pairs if size > 1)
    if not (form.dtype.is_floating_point or form.dtype.is_complex):
        assert 0 <= made.to(torch.int64).min() <= made.to(torch.int64).max() < 3


@given(forms(), st.data())
def test_a_smaller_tensor_fits_where_the_larger_one_was(form: Form, data: st.DataObject):
    shape = tuple(data.draw(st.integers(1, size)) for size in form.shape)
    small = resized(form, shape)
    assert small.shape == shape
    assert small.room <= form.room
    assert not form.is_contiguous or small.is_contiguous


def test_a_recipe_says_dtype_and_device_where_torch_would_take_others():
    transposed = Form((2, 3), (1, 2), torch.bfloat16, "cuda:0")
    assert recipe(Fill("ones"), transposed) == 'torch.ones(3, 2, dtype=torch.bfloat16, device="cuda").t()'
    assert recipe(Fill("zeros"), Form((4,), (1,), torch.int64)) == "torch.zeros(4, dtype=torch.int64)"
    assert recipe(Fill("arange", bound=3), Form((2, 3), (3, 1), torch.int64)) == "(torch.arange(6) % 3).reshape(2, 3)"
    assert (
        recipe(Fill("scaled", number=30.0, mean=-1.0), Form((4,), (1,), torch.float32)) == "(torch.randn(4) * 30 + -1)"
    )


LINES = ("# net.py:3: y = f(x, 7)", 'y = f(x, 17, k=-0.5, mode="17")  # the node', "ü = y[0, :9].sum(dim=3)")


def test_numbers_are_found_in_code_and_not_in_comments_and_texts():
    assert [each.value for each in numbers(LINES)] == [17, 0.5, 0, 9, 3]
    assert [each.value for each in numbers(LINES) if each.is_place] == [0, 3]
    edits = [(each, "1") for each in numbers(LINES) if not each.is_place]
    assert replaced(LINES, edits) == (LINES[0], 'y = f(x, 1, k=-1, mode="17")  # the node', "ü = y[0, :1].sum(dim=3)")


@pytest.mark.parametrize(
    ("line", "dropped"),
    [
        ("y = f(x, 1, k=2)", ["y = f(x, 1)"]),
        ("y = f(k=2, j=3)", ["y = f(j=3)", "y = f(k=2)"]),
        ("y = f(k=2)", ["y = f()"]),
        ("y = f(x, [1, -1], torch.float16)", ["y = f(x, [1, -1])"]),
        ("y = f(x, z)", []),
        ("y = f(1)", []),
        ("y = f(x)(", []),
    ],
)
def test_arguments_are_dropped_with_their_comma(line: str, dropped: list[str]):
    assert [without([line], each)[0] for each in droppable([line])] == dropped


def test_an_edit_that_is_no_python_is_not_made():
    number = numbers(["y = x + 1"])[0]
    assert replaced(["y = x + 1"], [(number, "(")]) == ("y = x + 1",)


def test_devices_are_spelled_in_several_ways():
    lines = ["a = torch.zeros(3, device=device(type='cuda', index=0))", 'b = a.to("cuda:0")', "c = b.cpu()"]
    assert replaced(lines, devices(lines)) == (
        'a = torch.zeros(3, device=device("cpu"))',
        'b = a.to("cpu")',
        "c = b.cpu()",
    )
