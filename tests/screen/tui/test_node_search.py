"""Does the filter find what a user means?"""

import pytest

from idbg_tui.panes.graph.node_search import NodeSearch
from tests.harness.recorded import chain, state_of


@pytest.fixture(scope="module")
def resnet() -> tuple[NodeSearch, list[str]]:
    graph = state_of("resnet").graph
    assert graph is not None
    return NodeSearch(graph), [node.name for node in graph.nodes]


def names(resnet: tuple[NodeSearch, list[str]], query: str) -> list[str]:
    search, all_names = resnet
    return [all_names[index] for index in search.find(query)]


@pytest.mark.parametrize(
    ("query", "count"),
    [("aten.convolution", 20), ("CONVOLUTION_1", 11), ("conv2d layer1", 4), ("f32[1,1000]", 1), ("int64", 0)],
)
def test_words_match_name_op_module_class_and_shape(
    resnet: tuple[NodeSearch, list[str]], query: str, count: int
) -> None:
    found = [name for name in names(resnet, query) if not name.startswith("arg")]
    assert len(found) == count


def test_a_users_line_finds_its_nodes(resnet: tuple[NodeSearch, list[str]]) -> None:
    assert "convolution" in names(resnet, "resnet.py:268")


def test_letters_in_order_find_a_name_when_no_text_has_them_together(resnet: tuple[NodeSearch, list[str]]) -> None:
    assert "convolution_19" in names(resnet, "cnvltn19")


def test_nothing_is_found_for_what_is_not_there(resnet: tuple[NodeSearch, list[str]]) -> None:
    assert names(resnet, "zzz") == []
    assert names(resnet, "conv zzz") == []


def test_the_index_is_built_in_slices_and_a_search_does_not_wait_for_them() -> None:
    search = NodeSearch(chain(5000))
    assert not search.prepare(0.0)
    assert search.find("relu_4999") == [4999]
    assert search.prepare(0.0)
