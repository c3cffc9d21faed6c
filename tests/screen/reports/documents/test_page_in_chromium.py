"""The page in a real browser: it is clicked and typed at, asks for nothing, and nobody's text becomes part of it."""

import gzip
from pathlib import Path

import pytest

from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, fold
from tests.harness.browser import Tab, chromium
from tests.harness.hostile import TEXT, hostile
from tests.harness.large import branching
from tests.harness.recorded import INFERENCE, log

FOUND = "#found:not([aria-busy]) .hit"  # of all that was typed


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def tab(browser):
    context = browser.new_context(viewport={"width": 1300, "height": 900}, color_scheme="light", offline=True)
    context.set_default_timeout(60_000)  # a browser on a busy machine
    yield Tab(context.new_page())
    context.close()


def test_a_node_leads_to_its_kernels_and_its_line_and_both_lead_back(tab, tmp_path) -> None:
    tab.open(fold(log("resnet")), tmp_path)
    page = tab.page
    page.select_option("#graph-pick", label="run 1: 0/0 inference (435 nodes)")
    page.locator("#tree .row", has_text="layer1").click()  # folds
    page.locator("#tree .row .name", has_text="convolution").first.click()
    assert tab.text("#facts h3") == "convolution"
    assert "resnet.py:268" in tab.text("#facts") and "x = self.conv1(x)" in tab.text("#facts")
    assert tab.count(".box.chosen") == 1 and tab.count(".line.near") >= 1

    page.locator("#facts a", has_text="extern_kernels.convolution").click()
    kernel = page.locator("details[data-find=kernel]", has_text="extern_kernels.convolution")
    assert kernel.get_attribute("open") is not None
    kernel.locator("a.all").click()
    assert tab.text("#tree-count") == "20 of 435 nodes"
    assert "convolution_1 " in tab.text("#tree") and "relu" not in tab.text("#tree")

    page.locator("#facts a", has_text="resnet.py:268").click()
    line = page.locator("tr[data-find=line]", has_text="x = self.conv1(x)")
    assert line.evaluate("row => row === document.activeElement")
    line.locator("a.all").click()
    assert "the nodes of" in tab.text("#only")
    page.locator("#only button", has_text="all nodes").click()
    assert tab.text("#tree-count") == ""
    assert tab.complaints == []


def test_a_box_of_a_drawing_opens_its_module_and_the_way_back_is_named(tab, tmp_path) -> None:
    tab.open(fold(log("resnet")), tmp_path)
    before = tab.count(".box")
    tab.page.locator(".box.module", has_text="layer1").click()
    assert tab.count(".box") != before
    tab.page.locator(".box", has_text="14 nodes").first.wait_for(state="detached")
    tab.page.locator(".box[data-item]", has_text="7 nodes").first.focus()
    tab.page.keyboard.press("Enter")
    assert tab.text("#crumbs").split() == ["whole", "graph", "layer1", "0"]
    tab.page.locator("#crumbs button", has_text="whole graph").click()
    assert tab.count(".box") == before


def test_the_keyboard_alone_finds_and_shows(tab, tmp_path) -> None:
    tab.open(fold(log("resnet")), tmp_path)
    page = tab.page
    page.keyboard.press("/")
    page.keyboard.type("convolution_7")
    page.locator(FOUND).first.wait_for()
    assert tab.text("#found .hit .kind") == "node"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert tab.text("#facts h3") == "convolution_7"
    page.keyboard.press("ArrowDown")  # in the tree, which has the focus now
    assert tab.text("#facts h3") != "convolution_7"
    for words, kind in (("environment", "section"), ("resnet.py:268", "line"), ("unsupported_ops", "violation")):
        page.keyboard.press("/")
        page.keyboard.type(words)
        page.locator(FOUND, has_text=words.title() if kind == "section" else words).first.wait_for()
        assert tab.text("#found .hit .kind") == kind
        page.keyboard.press("Escape")
        assert page.input_value("#search") == ""
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.press("n")
    page.wait_for_url("**#programs")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"


def test_enter_opens_the_hit_that_the_arrows_chose_of_what_was_typed(tab, tmp_path) -> None:
    page = tab.open(fold(log("resnet")), tmp_path).page
    # all keys at once, as of a user who is quicker than the list
    opened = """(keys) => {
        const box = document.getElementById("search");
        box.focus();
        box.value = "convolution_1";
        box.dispatchEvent(new InputEvent("input"));
        for (const key of keys) box.dispatchEvent(new KeyboardEvent("keydown", { key }));
        return location.hash;
    }"""
    first = page.evaluate(opened, ["Enter"])
    assert first and page.evaluate(opened, ["ArrowDown", "Enter"]) != first
    assert page.evaluate(opened, ["ArrowDown", "ArrowUp", "Enter"]) == first


@pytest.mark.parametrize("name", ["breaking", "mlp_train_cuda", "benched"])
def test_the_page_asks_for_nothing_and_complains_of_nothing(tab, tmp_path, name: str) -> None:
    tab.open(fold(log(name)), tmp_path, name)
    assert tab.asked == [(tmp_path / "report.html").as_uri()]
    assert tab.complaints == []
    assert tab.page.locator("#viewer").is_visible() == bool(fold(log(name)).last.graphs)


def test_hostile_names_are_text_in_the_page(tab, tmp_path) -> None:
    tab.open(hostile(), tmp_path, TEXT)
    page = tab.page
    assert page.evaluate("document.querySelectorAll('b, img, script[src]').length") == 0
    assert page.evaluate("document.body.lastElementChild.tagName") == "SCRIPT"
    page.locator("#tree .row .name").first.click()
    assert tab.text("#facts h3").startswith("</script></details>]]><!-- --><b onmouseover='x'>")
    page.locator("#facts a[href^='#line:']").click()
    line = page.locator("tr[data-find=line]", has=page.locator("a.all"))
    assert line.evaluate("row => row === document.activeElement")
    line.locator("a.all").click()
    assert tab.text("#tree-count") == "1 of 1 nodes"
    page.fill("#search", "onmouseover")
    page.locator("#found .hit").first.wait_for()
    assert page.evaluate("document.querySelectorAll('b, img').length") == 0
    assert len(tab.asked) == 1 and tab.complaints == []


def big(nodes: int) -> History:
    start = events.RunStarted(run=1, program=Program("model.py"), target=Target())
    graph = events.GraphCaptured(run=1, graph=branching(INFERENCE, nodes))
    return fold([start, graph, events.RunEnded(run=1, verdict="clean", seconds=1.0)])


def test_ten_thousand_nodes_freeze_nothing(tab, tmp_path) -> None:
    tab.open(big(10_000), tmp_path)
    assert tab.count("#tree .row") < 100
    tab.page.fill("#filter", "add_9999")
    tab.page.locator("#tree .row .name", has_text="add_9999").click()
    assert tab.text("#facts h3") == "add_9999"
    tab.page.evaluate("document.getElementById('tree').scrollTop = 1e9")
    assert tab.count("#tree .row") < 100 and tab.count(".box") <= 50


def test_a_session_without_graphs_is_a_page_too(tab, tmp_path) -> None:
    tab.open(History(), tmp_path)
    assert "Nothing was run" in tab.text("main")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("nothing that is there")
    tab.page.locator("#found p").wait_for()
    assert tab.complaints == []


def test_the_trace_of_the_compile_is_saved_from_the_page(tab, tmp_path) -> None:
    tab.open(fold(log("breaking")), tmp_path)
    with tab.page.expect_download() as download:
        # a click may miss: sections above get their real height once they are scrolled into view
        tab.page.locator("a[download]", has_text="Chrome trace").first.press("Enter")
    assert download.value.suggested_filename == "compile-run-1.json.gz"
    assert b"dynamo" in gzip.decompress(Path(download.value.path()).read_bytes())
    assert tab.complaints == []
