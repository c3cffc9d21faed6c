"""What each shipped accelerator accepts, and which of its rules rejects what: a table for each preset."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from idbg import constraints
from idbg.accelerators import registry
from idbg.accelerators.lint import warnings
from idbg.accelerators.parse import parse, unparse
from idbg.constraints.unknown import Unknown
from idbg.schema.graphs import DTYPE_OF_SHORT, Dim, Graph, GraphId, Node, Role, Stage, Sym, TensorMeta

PRESETS = sorted(path.stem for path in registry.PRESETS.glob("*.toml") if path.stem != "mock")


class Case(NamedTuple):
    """One call, on tensors as graphs print them: "i8[1, 3, 8, 8], w: i8[4, 3, 3, 3]" is an input and a weight.

    A size s0 is symbolic, with the hint 4; "f32[1, 3, 8, 8] nhwc" lies in channels_last order.
    """

    target: str
    operands: str
    result: str
    args: str = ""
    stage: Stage = "inference"

    def graph(self) -> Graph:
        inputs = [_placeholder(number, *found) for number, found in enumerate(_tensors(self.operands))]
        results = tuple(tensor for _, tensor in _tensors(self.result))
        names = tuple(node.name for node in inputs)
        call = Node(name="call", op="call_function", target=self.target, args=self.args, inputs=names, tensors=results)
        return Graph(GraphId("0/0", self.stage), (*inputs, call))


def _tensors(text: str) -> list[tuple[Role, TensorMeta]]:
    found: list[tuple[Role, TensorMeta]] = []
    for weight, dtype, sizes, order in re.findall(r"(w: )?(\w+)\[([\w, ]*)\]( nhwc)?", text):
        shape = tuple(int(size) if size.isdigit() else Sym(size, 4) for size in sizes.split(", ") if size)
        strides = _strides(shape, (1, 3, 2, 0) if order else tuple(reversed(range(len(shape)))))
        found.append(("weight" if weight else "input", TensorMeta(DTYPE_OF_SHORT[dtype], shape, strides, "cpu")))
    return found


def _strides(shape: tuple[Dim, ...], inner_first: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for place in inner_first:
        size = shape[place]
        strides[place] = step
        step *= size if isinstance(size, int) else size.hint or 1
    return tuple(strides)


def _placeholder(number: int, role: Role, tensor: TensorMeta) -> Node:
    return Node(name=f"arg{number}", op="placeholder", target=f"arg{number}", role=role, tensors=(tensor,))


def broken(preset: str, case: Case) -> set[str]:
    """ "rule: severity" of each rule that the case breaks."""
    rules = parse(registry.find(preset)[0])
    return {f"{violation.rule}: {violation.severity}" for violation in constraints.check(case.graph(), rules)}


CONV, ADDMM, MM, BMM = "aten.convolution.default", "aten.addmm.default", "aten.mm.default", "aten.bmm.default"
ADD, RELU, VIEW, CAT = "aten.add.Tensor", "aten.relu.default", "aten.view.default", "aten.cat.default"
LINEAR, SOFTMAX, EMBEDDING = "torch._C._nn.linear", "aten._softmax.default", "aten.embedding.default"
POOL = "aten.max_pool2d_with_indices.default"
INT8_CONV = Case(CONV, "i8[1, 3, 8, 8], w: i8[4, 3, 3, 3], w: i32[4]", "i8[1, 4, 8, 8]")
INT8_LINEAR = Case(ADDMM, "w: i32[4], i8[1, 8], w: i8[8, 4]", "i8[1, 4]")
FLOAT_CONV = Case(CONV, "f32[1, 3, 8, 8], w: f32[4, 3, 3, 3]", "f32[1, 4, 8, 8]")


def dilated(size: int, by: int) -> Case:
    weight = f"w: i8[4, 3, {size}, {size}]"
    args = f"x, w, None, [1, 1], [0, 0], [{by}, {by}], False, [0, 0], 1"
    return Case(CONV, f"i8[1, 3, 200, 200], {weight}", "i8[1, 4, 64, 64]", args)


ACCEPTED: dict[str, list[Case]] = {
    "coral_edgetpu": [
        INT8_CONV,
        INT8_LINEAR,
        Case("torch.softmax", "u8[1, 10]", "u8[1, 10]", stage="dynamo"),
        Case(POOL, "i8[1, 4, 8, 8]", "i8[1, 4, 4, 4], i64[1, 4, 4, 4]"),
        Case(VIEW, "i64[2, 5]", "i64[10]"),
        Case("torch.nn.functional.relu6", "i8[1, 4, 8, 8]", "i8[1, 4, 8, 8]", stage="dynamo"),
    ],
    "ethos_u55": [
        INT8_CONV,
        INT8_LINEAR,
        Case(ADD, "i32[1, 4, 8, 8], i32[1, 4, 8, 8]", "i32[1, 4, 8, 8]"),
        Case(POOL, "i8[1, 4, 8, 8]", "i8[1, 4, 4, 4], i64[1, 4, 4, 4]"),
        Case(LINEAR, "i8[7, 8], w: i8[4, 8], w: i32[4]", "i8[7, 4]", stage="dynamo"),
        Case("aten.exp.default", "i8[1, 4]", "i8[1, 4]"),
        dilated(3, 31),
    ],
    "ethos_u55_executorch": [
        INT8_CONV,
        Case(BMM, "i8[2, 4, 8], i8[2, 8, 4]", "i8[2, 4, 4]"),
        Case(VIEW, "i16[2, 8]", "i16[16]"),
        Case("aten.amax.default", "i8[2, 8]", "i8[2, 1]"),
    ],
    "qualcomm_hta": [
        Case(CONV, "u8[1, 3, 8, 8], w: u8[4, 3, 3, 3], w: i32[4]", "u8[1, 4, 8, 8]"),
        Case(RELU, "u16[1, 4, 8, 8]", "u16[1, 4, 8, 8]"),
        Case(CAT, "u8[1, 2048, 8, 8], u8[1, 2048, 8, 8]", "u8[1, 4096, 8, 8]"),
        Case("aten.argmax.default", "u8[1, 10]", "i64[1]"),
    ],
    "qualcomm_htp": [
        FLOAT_CONV,
        INT8_CONV,
        Case("aten.argmax.default", "f32[1, 10]", "i64[1]"),
        Case(VIEW, "f16[2, 50, 192]", "f16[2, 50, 3, 4, 16]"),
    ],
    "trainium2": [
        FLOAT_CONV,
        Case(MM, "bf16[128, 128], bf16[128, 512]", "bf16[128, 512]"),
        Case(ADD, "i64[1000], i64[1000]", "i64[1000]"),
        Case(MM, "f8e5m2[8, 128], w: f8e5m2[128, 16]", "bf16[8, 16]"),
    ],
    "gaudi": [
        Case(CONV, "bf16[1, 3, 8, 8] nhwc, w: bf16[4, 3, 3, 3]", "bf16[1, 4, 8, 8] nhwc"),
        Case(MM, "f32[7, 9], f32[9, 5]", "f32[7, 5]"),
        Case(EMBEDDING, "w: bf16[100, 8], i32[7]", "bf16[7, 8]"),
        Case(CONV, "f32[1, 3, 8], w: f32[4, 3, 3]", "f32[1, 4, 8]"),
        Case(VIEW, "i64[4, 4]", "i64[16]"),
    ],
    "tpu": [
        Case(MM, "bf16[8, 128], w: bf16[128, 256]", "bf16[8, 256]"),
        Case(CONV, "f32[1, 3, 8, 8], w: f32[64, 3, 3, 3]", "f32[1, 64, 8, 8]"),
        Case(ADD, "f32[7, 9], f32[7, 9]", "f32[7, 9]"),
        Case(EMBEDDING, "w: f32[100, 7], i64[3]", "f32[3, 7]"),
    ],
    "tenstorrent": [
        Case(BMM, "bf16[5, 32, 64], bf16[5, 64, 96]", "bf16[5, 32, 96]"),
        Case(SOFTMAX, "f32[3, 32, 64]", "f32[3, 32, 64]"),
        Case(RELU, "f32[1, 64, 7, 7]", "f32[1, 64, 7, 7]"),
        Case(VIEW, "i64[1, 1, 1, 1, 1, 1, 1, 7]", "i64[7]"),
    ],
    "spyre": [
        Case(MM, "f16[5, 64], w: f16[64, 128]", "f16[5, 128]"),
        Case(ADD, "f32[3, 32], f32[3, 32]", "f32[3, 32]"),
        Case(EMBEDDING, "w: f16[100, 64], i64[16]", "f16[16, 64]"),
        Case(RELU, "f16[1, 7, 7, 64]", "f16[1, 7, 7, 64]"),
    ],
    "ascend_a2": [
        Case(MM, "f16[3, 64], w: f16[64, 128]", "f16[3, 128]"),
        Case(SOFTMAX, "f32[3, 8]", "f32[3, 8]"),
        Case(RELU, "f16[1, 3, 7, 7]", "f16[1, 3, 7, 7]"),
        Case(ADD, "i64[7], i64[7]", "i64[7]"),
    ],
}

BROKEN: dict[str, list[tuple[Case, set[str]]]] = {
    "coral_edgetpu": [
        (FLOAT_CONV, {"quantized: reject"}),
        (Case(RELU, "i8[s0, 8]", "i8[s0, 8]"), {"static shapes: reject"}),
        (Case(RELU, "i8[2, 4, 8, 8]", "i8[2, 4, 8, 8]"), {"three dimensions: fallback"}),
        (Case(CONV, "i8[1, 3, 8, 8], i8[4, 3, 3, 3]", "i8[1, 4, 6, 6]"), {"constant weights: fallback",
                                                                          "three dimensions: fallback"}),
        (Case(LINEAR, "i8[1, 8], i8[4, 8]", "i8[1, 4]"), {"constant weights: fallback"}),
        (Case("torch.nn.functional.gelu", "i8[1, 8]", "i8[1, 8]", stage="dynamo"), {"ops: fallback"}),
        (Case("torch.matmul", "i8[4, 8], i8[8, 4]", "i8[4, 4]", stage="dynamo"), {"ops: fallback"}),
        (Case(ADDMM, "w: i32[4], i8[1, 4000], w: i8[4000, 4000]", "i8[1, 4000]"), {"on-chip weights: slow"}),
    ],
    "ethos_u55": [
        (FLOAT_CONV, {"quantized: fallback"}),
        (Case(RELU, "i8[s0, 8]", "i8[s0, 8]"), {"static shapes: fallback"}),
        (Case(RELU, "i32[1, 8]", "i32[1, 8]"), {"no int32: fallback"}),
        (Case(LINEAR, "i8[1, 8], w: i16[4, 8]", "i8[1, 4]", stage="dynamo"), {"8-bit weights: fallback"}),
        (Case(CONV, "i8[1, 3, 8, 8], i8[1, 3, 3, 3]", "i8[1, 1, 6, 6]"), {"constant weights: fallback"}),
        (Case(ADDMM, "w: i32[4], i8[1, 8], i8[8, 4]", "i8[1, 4]"), {"constant weights of addmm: fallback"}),
        (Case(VIEW, "i8[1, 50, 192]", "i8[1, 50, 3, 4, 16]"), {"rank: fallback"}),
        (Case("aten.sum.default", "i8[1, 50]", "i8[]"), {"rank: fallback"}),
        (Case(RELU, "i8[1, 65536]", "i8[1, 65536]"), {"sizes: fallback"}),
        (Case(RELU, "i8[2, 4, 8, 8]", "i8[2, 4, 8, 8]"), {"batch 1: fallback"}),
        (dilated(3, 32), {"convolution windows: fallback"}),
        (Case(POOL, "i8[1, 4, 300, 8]", "i8[1, 4, 1, 1], i64[1, 4, 1, 1]", "x, [300, 8]"),
         {"pool windows: fallback"}),
        (Case("torch.bmm", "i8[1, 4, 8], i8[1, 8, 4]", "i8[1, 4, 4]", stage="dynamo"), {"ops: fallback"}),
    ],
    "ethos_u55_executorch": [
        (FLOAT_CONV, {"quantized: fallback"}),
        (Case(BMM, "i16[2, 4, 8], i16[2, 8, 4]", "i16[2, 4, 4]"), {"int8 matmul: fallback"}),
        (Case(CONV, "u8[1, 3, 8, 8], w: i8[4, 3, 3, 3]", "i8[1, 4, 6, 6]"), {"convolution operands: fallback"}),
        (Case(VIEW, "i64[2, 8]", "i64[16]"), {"data movement: fallback"}),
        (Case("aten._to_copy.default", "i32[2, 8]", "i8[2, 8]"), {"casts: fallback"}),
        (Case("aten.index_select.default", "i8[2, 8], i32[2]", "i8[2, 2]"), {"ops: fallback"}),
        (Case(CONV, "i8[1, 3, 8, 8, 8], w: i8[4, 3, 3, 3, 3]", "i8[1, 4, 6, 6, 6]"), {"ops: fallback"}),
        (Case("torch.where", "b8[2, 8], i8[2, 8], i8[2, 8]", "i8[2, 8]", stage="dynamo"), {"comparisons: fallback"}),
    ],
    "qualcomm_hta": [
        (FLOAT_CONV, {"quantized: reject"}),
        (Case(RELU, "i8[1, 4, 8, 8]", "i8[1, 4, 8, 8]"), {"quantized: reject"}),
        (Case(LINEAR, "u8[1, 8], w: u16[4, 8]", "u8[1, 4]", stage="dynamo"), {"8-bit weights: reject"}),
        (Case(VIEW, "u8[1, 50, 192]", "u8[1, 50, 3, 4, 16]"), {"rank: reject"}),
        (Case(CAT, "u8[1, 2049, 8, 8], u8[1, 2048, 8, 8]", "u8[1, 4097, 8, 8]"), {"concat channels: unknown"}),
    ],
    "qualcomm_htp": [
        (Case(VIEW, "f16[2, 192]", "f16[2, 1, 3, 4, 4, 4]"), {"rank: reject"}),
        (Case("aten.argmax.default", "f32[1, 2, 3, 4, 5]", "i64[]"), {"argmax rank: reject"}),
        (Case("aten.argmin.default", "i64[1, 10]", "i64[1]"), {"argmax dtype: reject"}),
        (Case(ADD, "f64[2], f64[2]", "f64[2]"), {"dtypes: unknown"}),
        (Case(ADD, "c64[2], c64[2]", "c64[2]"), {"dtypes: unknown"}),
    ],
    "trainium2": [
        (Case(MM, "bf16[8, 129], bf16[129, 512]", "bf16[8, 512]"), {"matmul tile: tile"}),
        (Case(LINEAR, "bf16[8, 64], w: bf16[513, 64]", "bf16[8, 513]", stage="dynamo"), {"matmul tile: tile"}),
        (Case(MM, "i32[8, 8], i32[8, 8]", "i32[8, 8]"), {"matmul dtype: unknown"}),
        (Case(ADD, "c64[2], c64[2]", "c64[2]"), {"complex: reject"}),
        (Case(RELU, "f8e4m3fn[2, 8]", "f8e4m3fn[2, 8]"), {"fp8: reject"}),
        (Case(RELU, "bf16[s0, 8]", "bf16[s0, 8]"), {"static shapes: reject"}),
        (Case(RELU, "f32[8, 1000000]", "f32[8, 1000000]"), {"on-chip SRAM: tile"}),
        (Case(RELU, "i8[52000000000]", "i8[52000000000]"), {"HBM: reject", "on-chip SRAM: tile"}),
    ],
    "gaudi": [
        (FLOAT_CONV, {"NHWC convolutions: slow"}),
        (Case(ADD, "f64[2], f64[2]", "f64[2]"), {"dtypes: reject"}),
        (Case(RELU, "c64[2]", "c64[2]"), {"dtypes: reject"}),
        (Case(ADD, "i64[2], i64[2]", "i64[2]"), {"int64 computations: slow"}),
        (Case(EMBEDDING, "w: bf16[100, 8], i64[7]", "bf16[7, 8]"), {"int64 indexes: slow"}),
        (Case(RELU, "bf16[s0, 8]", "bf16[s0, 8]"), {"static shapes: slow"}),
        (Case(RELU, "i8[70000000000]", "i8[70000000000]"), {"HBM: reject"}),
    ],
    "tpu": [
        (Case(MM, "bf16[8, 128], w: bf16[128, 100]", "bf16[8, 100]"), {"128 columns: pad"}),
        (Case(MM, "bf16[8, 100], w: bf16[100, 128]", "bf16[8, 128]"), {"128 columns: pad"}),
        (Case(MM, "bf16[7, 128], w: bf16[128, 128]", "bf16[7, 128]"), {"8 rows: pad"}),
        (Case(CONV, "f32[8, 3, 8, 8], w: f32[9, 3, 3, 3]", "f32[8, 9, 8, 8]"), {"convolution channels: pad"}),
        (Case(MM, "f16[8, 128], w: f16[128, 128]", "f16[8, 128]"), {"matrix unit dtypes: unknown"}),
    ],
    "tenstorrent": [
        (Case(MM, "bf16[32, 50], w: bf16[50, 32]", "bf16[32, 32]"), {"matmul tiles: pad"}),
        (Case(MM, "bf16[31, 64], w: bf16[64, 32]", "bf16[31, 32]"), {"matmul tiles: pad"}),
        (Case(SOFTMAX, "f32[3, 32, 50]", "f32[3, 32, 50]"), {"tiles: pad"}),
        (Case(VIEW, "f32[512]", "f32[2, 2, 2, 2, 2, 2, 2, 2, 2]"), {"rank: reject"}),
        (Case(RELU, "f16[32, 32]", "f16[32, 32]"), {"floats: reject"}),
        (Case(RELU, "f32[1024, 1024]", "f32[1024, 1024]"), {"core SRAM: tile"}),
    ],
    "spyre": [
        (Case(RELU, "f16[3, 32]", "f16[3, 32]"), {"sticks: pad"}),
        (Case(RELU, "f32[3, 48]", "f32[3, 48]"), {"sticks: pad"}),
        (Case(MM, "f32[5, 64], w: f32[64, 128]", "f32[5, 128]"), {"float16: unknown"}),
        (Case(RELU, "i32[3, 32]", "i32[3, 32]"), {"int16 and int32: reject"}),
        (Case(ADD, "i64[3, 16], i64[3, 16]", "i64[3, 16]"), {"int64 arithmetic: fallback"}),
        (Case(RELU, "f16[1024, 2048]", "f16[1024, 2048]"), {"scratchpad: tile"}),
        (Case(RELU, "i8[70000000000]", "i8[70000000000]"), {"card memory: reject", "scratchpad: tile"}),
    ],
    "ascend_a2": [
        (Case(SOFTMAX, "f32[3, 50]", "f32[3, 50]"), {"32-byte rows: pad"}),
        (Case("torch.nn.functional.layer_norm", "f16[2, 50], w: f16[50], w: f16[50]", "f16[2, 50]", stage="dynamo"),
         {"32-byte rows: pad"}),
        (Case(MM, "f16[3, 50], w: f16[50, 64]", "f16[3, 64]"), {"32-byte operands: pad"}),
        (Case(MM, "f16[3, 64], w: f16[64, 32]", "f16[3, 32]"), {"128-byte moves: slow"}),
        (Case(BMM, "f16[2, 8, 64], f16[2, 64, 50]", "f16[2, 8, 50]"),
         {"128-byte moves: slow", "32-byte operands: pad"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_table_of_what_it_accepts_and_what_breaks_it(preset: str) -> None:
    assert len(ACCEPTED.get(preset, [])) >= 3 and len(BROKEN.get(preset, [])) >= 4
    rules = parse(registry.find(preset)[0]).rules
    seen = {one.rpartition(": ")[0] for _, wanted in BROKEN[preset] for one in wanted}
    assert seen == {rule.name for rule in rules if not isinstance(rule, Unknown)}, "each rule is broken by a case"


@pytest.mark.parametrize(("preset", "case"), [(name, case) for name, cases in ACCEPTED.items() for case in cases])
def test_a_preset_accepts(preset: str, case: Case) -> None:
    assert broken(preset, case) == set()


@pytest.mark.parametrize(
    ("preset", "case", "wanted"), [(name, *case) for name, cases in BROKEN.items() for case in cases]
)
def test_a_preset_names_the_rule_that_is_broken(preset: str, case: Case, wanted: set[str]) -> None:
    assert broken(preset, case) == wanted


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_a_file_that_says_where_each_rule_is_from(preset: str) -> None:
    text = registry.find(preset)[0]
    parsed = parse(text)
    assert text.startswith("# ") and "Not covered" in text
    assert parsed.name == preset and 0 < len(parsed.description) < 70
    written = [rule for rule in parsed.rules if not isinstance(rule, Unknown)]
    assert all(rule.source.startswith("https://") and rule.version and rule.enabled for rule in written)
    assert parse(unparse(parsed)) == parsed


@pytest.mark.parametrize("preset", PRESETS)
def test_nothing_in_a_preset_is_odd(preset: str) -> None:
    assert warnings(registry.find(preset)[0]) == ()


@pytest.mark.parametrize("preset", ["trainium2", "tpu", "tenstorrent", "spyre", "ascend_a2"])
def test_sizes_are_padded_or_tiled_and_reject_nothing_where_the_hardware_pads(preset: str) -> None:
    rules = parse(registry.find(preset)[0]).rules
    sized = [rule for rule in rules if rule.kind in ("alignment", "matmul_tile", "max_dim", "memory")]
    assert sized and all(rule.severity in ("pad", "tile", "slow") for rule in sized)


GUIDE = (Path(__file__).parents[3] / "docs" / "accelerators.md").read_text(encoding="utf-8")


def test_the_guide_has_an_example_of_every_kind_of_rule_and_each_is_valid() -> None:
    examples = [text for text in re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL) if "pyproject" not in text]
    kinds = {rule.kind for text in examples for rule in parse(text).rules}
    assert kinds >= set(constraints.kinds()) and not any(warnings(text) for text in examples)
    assert set(re.findall(r"^### (\w+)", GUIDE, re.MULTILINE)) == set(constraints.kinds())


def test_the_guide_lists_every_preset() -> None:
    assert sorted(re.findall(r"^\| `(\w+)` \| [A-Z]", GUIDE, re.MULTILINE)) == PRESETS
