"""The languages of other compilers are coloured, line by line, and no character is lost."""

import pytest

from idbg.format.compiler_lexers import LEXERS
from idbg.format.lexing import Lexing

MLIR = """\
#map = affine_map<(d0) -> (d0)>
module attributes {a = "text"} {
  func.func @main(%arg0: tensor<8x?xf32>) -> !hal.buffer { // why
    %0 = linalg.matmul ins(%arg0 : tensor<8x?xf32>) {x = 1.0e-3 : f32} loc("mm")
^bb0(%in: f32):
"""
SASS = """\
.text.kernel:
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA 0x40 ;
"""


def looks(text: str, language: str) -> dict[str, str]:
    lexing = Lexing(text, language)
    while lexing.advance(10**6, 1.0):
        pass
    lines = text.split("\n")
    return {lines[row][first:end]: look for row in range(len(lines)) for first, end, look in lexing.spans(row)}


def test_mlir_has_its_ops_types_names_and_comments() -> None:
    found = looks(MLIR, "mlir")
    assert found["linalg.matmul"] == found["func.func"] == "keyword"
    assert found["@main"] == found["#map"] == found["^bb0"] == "name"
    assert found['"text"'] == "string" and found["// why"] == "comment"
    assert found["!hal.buffer"] == "keyword" and any(text.startswith("1.0e-3") for text in found)


def test_sass_has_its_instructions_and_comments() -> None:
    found = looks(SASS, "sass")
    assert found["IMAD.MOV.U32"] == found["BRA"] == "keyword"
    assert found["/*0000*/"] == "comment" and found["@!P0"] == "name"


@pytest.mark.parametrize("language", ["xml", "json", "llvm", "ptx", "asm"])
def test_the_other_languages_have_colours(language: str) -> None:
    texts = {
        "xml": '<layer id="1" name="mm"/>',
        "json": '{"a": 1}',
        "llvm": "define void @f() {",
        "ptx": "add.f32 %f1, %f2; // sum",
        "asm": "main:\n  mov $1, %eax # one",
    }
    assert looks(texts[language], language)


@pytest.mark.parametrize(("language", "text"), [("mlir", MLIR), ("sass", SASS), ("mlir", '%0 = "torn\n\x00 é !!')])
def test_no_character_is_lost(language: str, text: str) -> None:
    assert "".join(value for _, _, value in LEXERS[language]().get_tokens_unprocessed(text)) == text
