"""The lines of other compilers' texts, linked to nodes by what the compilers write themselves."""

import pytest

from idbg.analysis.stage_links.languages import language_of, marks_of
from idbg.analysis.stage_links.marks import Mark
from idbg.analysis.stage_links.mlir import without_locations
from idbg.analysis.stage_links.resolve import Given, Handles, Linked, linked
from idbg.schema.graphs import Graph, GraphId, Node

FILE = "/home/user/net.py"
INFERENCE = GraphId("0/0", "inference")
DYNAMO = GraphId("0/0", "dynamo")


def node(name: str, line: int) -> Node:
    return Node(name=name, op="call_function", target=f"aten.{name}", file=FILE, line=line)


ATEN = Graph(INFERENCE, (node("mm", 7), node("add", 7), node("relu", 8)))
TRACED = Graph(DYNAMO, (node("hidden", 7), node("y", 8)))


def links(text: str, language: str, given: Given | None = None, handles: Handles | None = None) -> Linked:
    return linked(text, language, given or {}, (ATEN, TRACED), handles or {})


MLIR = """\
#loc1 = loc("/home/user/net.py":7:0)
module {
  func.func @main(%arg0: f32 loc("x")) -> f32 {
    %0 = linalg.matmul %arg0 loc(#loc2)
    %1 = linalg.generic {x = "loc("} {
    ^bb0(%in: f32 loc("mm")):
      linalg.yield %in : f32 loc(fused<"pattern">[#loc2, #loc3])
    } -> f32 loc("relu"("/home/user/net.py":8:4))
    %2 = arith.addf %0, %1 loc(callsite("/home/user/net.py":8:1 at "/home/user/main.py":3:2))
    %3 = arith.addf %0, %1 loc("elsewhere.py":1:1)
    return loc(unknown)
  } loc(#loc1)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("mm"(#loc1))
#loc3 = loc("add")
#loc4 = loc("itself"(#loc4))
"""


def test_mlir_is_linked_by_names_and_aliases_and_fused_and_nested_locations() -> None:
    found = links(MLIR, "mlir")
    assert found.graph == INFERENCE and not found.unknown
    by_line = dict(found.links)
    assert by_line[4] == ("mm",)  # an alias of a named location
    assert by_line[5] == by_line[8] == ("relu",)  # a region's first line has the location of its last
    assert by_line[6] == ("mm",)  # a block's argument
    assert by_line[7] == ("mm", "add")  # fused
    assert by_line[9] == ("relu",)  # the callee of a call site, by the line of the program
    assert by_line[12] == ("mm", "add")  # a line of the program has several nodes
    assert not {1, 10, 11, 13, 14, 17} & by_line.keys()


def test_mlir_reads_without_its_locations_and_keeps_its_links() -> None:
    text, marks = without_locations(MLIR)
    lines = text.split("\n")
    assert "loc(#" not in text and "#loc" not in text and 'x = "loc("' not in lines[0]
    assert lines[2] == "    %0 = linalg.matmul %arg0"
    assert marks[3] == Mark(("mm",), (((FILE, 7),),))
    assert lines[1] == "  func.func @main(%arg0: f32) -> f32 {"


def test_mlir_that_nests_without_end_or_is_torn_is_read_as_far_as_it_goes() -> None:
    deep = "%0 = x.y " + 'loc("mm"(' * 500
    assert dict(links(f'{deep}\n%1 = x.z loc("relu")', "mlir").links)[2] == ("relu",)
    assert links("%0 = a.b loc(", "mlir") == Linked()


LLVM = """\
define void @f() !dbg !4 {
  %1 = fmul float %a, %b, !dbg !7
  %2 = fadd float %1, %b, !dbg !9
  ret void
}
!1 = !DIFile(filename: "net.py", directory: "/home/user")
!4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 8)
!5 = !DILexicalBlock(scope: !4, file: !1, line: 7)
!7 = !DILocation(line: 7, column: 3, scope: !5)
!8 = !DIFile(filename: "library.h", directory: "/usr")
!9 = !DILocation(line: 99, column: 3, scope: !10, inlinedAt: !7)
!10 = distinct !DISubprogram(name: "g", scope: !8, file: !8, line: 90)
"""


def test_llvm_ir_is_linked_by_its_debug_information() -> None:
    by_line = dict(links(LLVM, "llvm").links)
    assert by_line == {1: ("relu",), 2: ("mm", "add"), 3: ("mm", "add")}  # the last was inlined from elsewhere


def test_ptx_is_linked_by_its_line_directives() -> None:
    text = '.file 1 "/home/user" "net.py"\n.loc 1 8 3\nadd.f32 %f1, %f2;\nst.global %f1;\n}\nret;\n.loc 1 0 0\nnop;'
    assert dict(links(text, "ptx").links) == dict.fromkeys((2, 3, 4), ("relu",))


XML = """\
<?xml version="1.0"?>
<net name="Model0">
  <layers>
    <layer id="0" name="x" type="Parameter" />
    <layer id="1" name="mm/aten.mm.default/MatMul" type="MatMul">
      <data execOrder="4" originalLayersNames="mm/aten.mm.default/MatMul,relu/aten.relu.default/Relu" />
    </layer>
    <layer id="2" name="Constant_1" type="Const">
    </layer>
  </layers>
</net>
"""


def test_openvino_is_linked_by_its_layers_names_also_of_a_fused_layer() -> None:
    assert dict(links(XML, "xml").links) == dict.fromkeys((5, 6, 7), ("mm", "relu"))


def test_the_authors_own_links_are_by_line_or_handle_and_name_nodes_or_debug_handles() -> None:
    given: Given = {1: "mm", "op#2": ["relu", "add"], 3: "kernel:5"}
    found = links("a op#1\nb op#2\nc\nd op#2", "", given, {"kernel:5": ("relu",)})
    assert found.links == ((1, ("mm",)), (2, ("relu", "add")), (3, ("relu",)), (4, ("relu", "add")))
    assert not found.unknown


def test_names_that_no_graph_has_are_named_and_the_rest_is_linked() -> None:
    found = links("a\nb", "", {1: ["mm", "nobody"], 2: "nothing"})
    assert found.links == ((1, ("mm",)),) and found.unknown == ("nobody", "nothing")


def test_the_graph_is_the_one_that_most_lines_name() -> None:
    assert links("a\nb", "", {1: "hidden", 2: "y"}).graph == DYNAMO


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("flow", "module attributes {a = 1} {\n}", "mlir"),
        ("x.ll", "anything", "llvm"),
        ("final", "; ModuleID = 'a'\ndefine void @f() {\n", "llvm"),
        ("model", '<?xml version="1.0"?>', "xml"),
        ("config", '{"a": 1}', "json"),
        ("kernel", "//\n.version 8.4\n.target sm_90", "ptx"),
        ("kernel", "        /*0000*/                   MOV R1, c[0x0][0x28] ;", "sass"),
        ("code", "import torch\n", "python"),
        ("notes", "nothing in particular", ""),
    ],
)
def test_the_language_is_guessed_from_the_name_or_the_text(name: str, text: str, language: str) -> None:
    assert language_of(name, text) == language


def test_a_language_without_locations_has_no_marks() -> None:
    assert marks_of("a\nb", "json") == {}
