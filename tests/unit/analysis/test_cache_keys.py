"""Two keys' differences are said in words; what is near is of the same place or the same code; all of it is bounded."""

from idbg.analysis.decisions.caches import MOST_DIFFERS, Key, differences, nearest, parts_of, ways_out, words
from idbg.schema.decisions.inductor import CacheAnswer

TENSOR = (
    "TensorMetadata(dtype=torch.{dtype}, shape=torch.Size({shape}), stride={stride}, device=device(type='cpu'),"
    " layout=torch.strided, memory_format=torch.contiguous_format, storage_offset=0, storage_bytes=None,"
    " requires_grad=False, is_quantized=False)"
)


def key(name: str = "k", place: str = "m.py:f:inference", **lines: str) -> Key:
    """A key of these parts; of each the text is its hash too."""
    told = [f"[{abs(hash(value)):x}] {part.replace('__', '[')}{']' if '__' in part else ''}: {value}"
            for part, value in lines.items()]  # fmt: skip
    return Key(name, place, name, {part.name: part for part in parts_of(told)})


def tensor(shape: str = "[4, 8]", stride: str = "(8, 1)", dtype: str = "float32") -> str:
    return TENSOR.format(shape=shape, stride=stride, dtype=dtype)


CODE = "GraphModule()\n\n\n\ndef forward(self, arg0_1, arg1_1):\n    return (arg0_1,)"


def said(one: Key, other: Key) -> list[tuple[str, str, str]]:
    return [(differs.part, differs.now, differs.before) for differs in differences(one, other)]


def test_a_shape_is_said_alone_and_a_stride_where_only_it_differs():
    was = key(gm=CODE, example_inputs__0=tensor())
    assert said(key(gm=CODE, example_inputs__0=tensor("[5, 9]", "(9, 1)")), was) == [
        ("the shape of argument 1 (arg0_1)", "[5, 9]", "[4, 8]")
    ]
    assert said(key(gm=CODE, example_inputs__0=tensor(stride="(1, 4)")), was) == [
        ("the stride of argument 1 (arg0_1)", "(1, 4)", "(8, 1)")
    ]
    assert said(key(gm=CODE, example_inputs__0=tensor(dtype="float16")), was) == [
        ("the dtype of argument 1 (arg0_1)", "float16", "float32")
    ]


def test_what_came_and_went_and_what_is_no_tensor():
    one, two = key(gm=CODE, example_inputs__0=tensor()), key(gm=CODE, example_inputs__0=tensor(), example_inputs__1="x")
    assert said(two, one) == [("argument 2 (arg1_1), a dynamic size, came", "", "")]
    assert said(one, two) == [("an argument went: x", "", "")]
    other = key(gm=CODE, example_inputs__0=tensor(), example_inputs__1=tensor("[2]", "(1,)", "int64"))
    assert said(one, other) == [("an argument went: int64[2]", "", "")]


def test_a_size_that_became_dynamic_is_one_more_argument_and_not_a_shift_of_all():
    was = key(
        gm=CODE, example_inputs__0=tensor("[9]", "(1,)"), example_inputs__1=tensor(), example_inputs__2=tensor("[1]")
    )
    now = key(
        gm=CODE + "#",
        example_inputs__0=tensor("[9]", "(1,)"),
        example_inputs__1="('s0',)",
        example_inputs__2=tensor("[s0, 8]"),
        example_inputs__3=tensor("[1]"),
        fx_kwargs__static_input_idxs="[3]",
    )
    assert said(now, was) == [
        ("argument 2 (arg1_1), a dynamic size, came", "", ""),
        ("the shape of argument 3", "[s0, 8]", "[4, 8]"),
        ("the graph's code", "", ""),
    ]


def test_the_graphs_code_is_said_last_and_never_shown():
    one = key(gm=CODE, inductor_config__max_autotune="True")
    other = key(gm=CODE + "#", inductor_config__max_autotune="False")
    assert said(one, other) == [
        ("inductor config: max_autotune", "True", "False"),
        ("the graph's code", "", ""),
    ]


def test_near_is_the_same_place_or_the_same_code_and_of_equals_the_last():
    here = key("new", gm=CODE, inductor_config__a="1")
    other_place = key("other", place="n.py:g:inference", gm="another", inductor_config__a="1")
    assert nearest(here, [other_place]) is None
    same_code = key("code", place="n.py:g:inference", gm=CODE, inductor_config__a="2")
    first, last = (key(name, gm=CODE + "#", inductor_config__a="1") for name in ("first", "last"))
    assert nearest(here, [same_code, first, last, other_place]) is last
    assert nearest(here, []) is None
    own = key("own", gm=CODE + "#", inductor_config__a="2")  # of this program, though another's differs less
    assert nearest(here, [own, key("code", place="n.py:g:inference", gm=CODE, inductor_config__a="1")]) is own


def test_a_line_of_a_library_is_the_place_of_no_program():
    here, other = key("new", place="", gm=CODE), key("other", place="", gm="another")
    assert nearest(here, [other]) is None


def test_a_flood_is_bounded():
    many = {f"inductor_config__o{number}": "1" for number in range(500)}
    found = said(key(gm=CODE, **many), key(gm=CODE))
    assert len(found) == MOST_DIFFERS and found[-1][0] == "481 other parts"
    arguments = {f"example_inputs__{number}": tensor() for number in range(10_000)}
    assert len(key(gm=CODE, **arguments).parts) == 501


def test_every_name_reads_as_words():
    assert words("inductor_config[cpp.simdlen]") == "inductor config: cpp.simdlen"
    assert words("fx_kwargs[cudagraphs]") == "whether CUDA graphs are requested"
    assert words("fx_kwargs[layout_opt]") == "how it is compiled: layout_opt"
    assert words("post_grad_custom_pre_pass") == "inductor config: post_grad_custom_pre_pass, by its uuid()"
    assert words("system_info[device]") == "the machine: its device"
    assert words("something_new") == "something new"


def test_a_way_out_is_said_where_there_is_one():
    bypass = CacheAnswer(cache="fx_graph", outcome="bypass", reason="Unsupported post grad custom pass")
    assert "uuid()" in ways_out(bypass)
    assert ways_out(CacheAnswer(cache="fx_graph", outcome="bypass", reason="of a kind nobody knows")) == ""
    assert ways_out(CacheAnswer(cache="fx_graph", outcome="hit")) == ""
