"""The page is one file in which everything stays text, and that asks for nothing."""

import gzip
import re
from base64 import b64decode
from html.parser import HTMLParser

import pytest
from msgspec.json import decode, encode
from msgspec.structs import replace

from idbg.format import shown
from idbg.render.html import templating
from idbg.render.html.code import Listing, listings
from idbg.reports import chrome_trace
from idbg.reports.documents import SessionData, html, json, markdown, together
from idbg.reports.documents.html import graph_data, page
from idbg.reports.documents.html.sections import time
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure, Machine
from idbg.schema.runs import History, fold
from idbg.views import findings
from tests.harness.hostile import LONG, TEXT, hostile
from tests.harness.large import session
from tests.harness.recorded import log

HOSTILE = "</script><img src=x onerror=alert(1)>]]>\x1b[31m\udc80\u202e'\"&{{ 7*7 }}"


class Page(HTMLParser):
    """What the elements of a page are, as a parser finds them."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(content.decode())

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def rendered(events: list[SessionEvent], name: str = "resnet") -> bytes:
    return html.render(SessionData(name, fold(events), "/sessions/it"))


@pytest.mark.parametrize(
    "name", ["resnet", "breaking", "mlp_train_cuda", "switched", "benched", "minified", "wrong_pass"]
)
def test_every_recorded_session_is_told(name: str) -> None:
    text = rendered(log(name), name).decode()
    assert f"<title>{name} · idbg</title>" in text
    parsed = Page(text.encode())
    ids = [value for key, value in parsed.attributes if key == "id"]
    assert len(ids) == len(set(ids)), {each for each in ids if ids.count(each) > 1}


def test_nothing_of_the_page_is_fetched_and_no_style_or_handler_is_inline() -> None:
    parsed = Page(rendered(log("resnet")))
    assert not {"link", "iframe", "object", "embed", "base"} & {*parsed.tags}
    for name, value in parsed.attributes:
        assert name != "style" and not name.startswith("on")
        assert name not in ("src", "action", "srcset", "data") or not value
        assert name != "href" or value.startswith(("#", "https://", "data:application/gzip;"))


def test_a_session_of_which_nothing_is_known_is_said_to_be_so() -> None:
    text = html.render(SessionData("nothing", History())).decode()
    assert "Nothing was run" in text
    assert "is not known: no worker said so" in text


def test_hostile_names_are_text() -> None:
    told = []
    for event in log("wrong_pass"):
        if isinstance(event, events.RunStarted):
            event = replace(event, program=replace(event.program, path=HOSTILE, name=HOSTILE))
        if isinstance(event, events.FrameStarted):
            event = replace(event, frame=replace(event.frame, function=HOSTILE, file=HOSTILE))
        told.append(event)
    content = rendered(told, HOSTILE)
    parsed = Page(content)
    assert "img" not in parsed.tags
    text = content.decode("utf-8", "strict")
    assert "\x1b" not in text and "\u202e" not in text
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;]]&gt;␛[31m\\udc80\\u202e" in text


def test_an_island_of_data_cannot_be_left_by_what_is_in_it() -> None:
    island = str(templating.island("data", {"name": "</script><!--<script>&\u2028"}))
    body = re.fullmatch(r'<script type="application/json" id="data">(.*)</script>', island)[1]
    assert not set("<>&\u2028") & set(body)
    assert decode(body) == {"name": "</script><!--<script>&\u2028"}


@pytest.mark.parametrize("name", [*page.SCRIPTS, *page.STYLES])
def test_our_own_scripts_and_styles_end_where_their_elements_end(name: str) -> None:
    text = templating.static(name)
    assert "</" not in text and "<!--" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "") and not re.search(r"\bimport\b", text)


def test_a_name_of_any_length_is_cut_and_says_so() -> None:
    assert shown.short("x" * 1_000_000).endswith("x (1,000,000 characters)")
    assert len(shown.short("x" * 1_000_000)) < 300


def test_what_every_field_of_a_session_can_hold_ends_no_element() -> None:
    content = html.render(SessionData(TEXT, hostile(), TEXT))
    parsed = Page(content)
    assert not {"b", "img"} & {*parsed.tags} and not [name for name, _ in parsed.attributes if name.startswith("on")]
    assert parsed.tags.count("script") == 2  # ours, and the graphs' data
    text = content.decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\u2028]", text)
    assert len(html.render(SessionData(LONG, hostile(LONG)))) < 5_000_000


def test_a_session_of_2000_nodes_and_100_kernels_is_under_5_mb() -> None:
    content = rendered(session(2000, 100))
    assert 1_000_000 < len(content) < 5_000_000
    assert content.count(b'data-find="kernel"') == 100


def test_graphs_that_there_is_no_room_for_are_named(monkeypatch) -> None:
    monkeypatch.setattr(graph_data, "MOST_NODES", 700)
    text = rendered(log("resnet")).decode()
    assert "1 graph left out" in text and "run 1: 0/0 post_grad (inference) (435)" in text
    data = decode(re.search('id="graphs-data">(.*?)</script>', text)[1])
    assert [len(graph["names"]) for graph in data["graphs"]] == [173, 435]
    assert all(other in ("0", "1") for graph in data["graphs"] for other in graph["others"])


def test_of_several_runs_the_summary_tells_the_worst_first() -> None:
    told = together([SessionData("breaks", fold(log("breaking"))), SessionData("wrong", fold(log("planted")))])
    summary = html.render(told).decode().partition("What is wrong, the worst first")[2]
    assert 0 <= summary.find("mismatch ") < summary.find("break ")


def test_the_summary_says_in_a_sentence_what_was_found_out() -> None:
    text = rendered(log("planted")).decode()
    summary = text[text.index('id="summary"') : text.index('id="programs"')]
    assert "1 of 2 tensors wrong · tests/recordings/planted.py · aot" in summary
    assert "the first bad kernel is `cpp_fused__softmax__unsafe_view_add_mul_1`" in summary
    history = fold(log("breaking"))
    history.missing.append("the log ends in the middle of <an event>")
    text = html.render(SessionData("cut", history)).decode()
    assert "the log ends in the middle of &lt;an event&gt;" in text
    assert "compiling took 17.1 s; cold: Inductor generated the code of every graph; most of it: testing" in text


def test_what_nobody_looked_for_is_not_said_to_be_absent() -> None:
    (run,) = fold(log("benched")).runs.values()
    assert findings.nothing([run]) == (
        "No failure, graph break, recompile or violation is known of (the numbers were not compared)."
    )
    run.checked = False
    assert "violation" not in findings.nothing([run]) and "no rules were checked" in findings.nothing([run])


MACHINE = Machine(system="Debian 12", cpu="EPYC", processors=2, compilers={"g++": "12.2.0"}, revision="a" * 40)


def test_a_page_says_when_on_what_and_from_which_revision_it_was() -> None:
    worker = events.WorkerStarted(pid=1, torch="2.15", python="3.11", devices=("cpu",), seconds=1.0, machine=MACHINE)
    again = events.WorkerStarted(pid=1, torch="2.15", python="3.11", devices=("cpu",), seconds=1.0)
    history = fold([worker, again, *(event for event in log("resnet") if not isinstance(event, events.WorkerStarted))])
    assert history.worker is not None and history.worker.machine == MACHINE
    text = html.render(SessionData("resnet", history)).decode()
    assert all(each in text for each in ("Debian 12", "2 × EPYC", "12.2.0", "a" * 40, " UTC<"))
    assert "not committed" not in text


def test_a_page_has_what_was_printed_the_graphs_as_python_and_the_wrapper() -> None:
    history = fold([*log("resnet"), events.OutputWritten(run=1, stream="stdout", text="epoch 1\n")])
    text = html.render(SessionData("resnet", history)).decode()
    assert "what it printed to stdout, 8 characters" in text and "epoch 1" in text
    assert "0/0 inference as Python" in text and "the wrapper of 0/0 inference" in text


def test_a_traceback_is_folded_and_is_there_once() -> None:
    failure = Failure(kind="torch", message="it broke", traceback="Traceback ...\n" + "  torch frame\n" * 200)
    started = [event for event in log("breaking") if isinstance(event, events.RunStarted)]
    ended = events.RunEnded(run=started[0].run, verdict="failed", seconds=1.0, failure=failure)
    text = html.render(SessionData("s", fold([*started, ended]))).decode()
    assert text.count("  torch frame") == 200
    before = text[: text.index("  torch frame")]
    assert before.rfind("<summary>the traceback</summary>") > before.rfind("</details>")
    assert "<details><summary>the traceback" in before.replace("\n", "")


def test_code_that_has_no_room_is_counted() -> None:
    found = [Listing("a", "x" * 60), Listing("b", "x" * 60), Listing("c", "y" * 60), Listing("d", "")]
    assert listings(found, 100) == ([found[0]], 1)


def test_torch_settings_that_are_not_defaults_and_its_variables_are_in_every_report() -> None:
    machine = replace(MACHINE, environment={"TORCHINDUCTOR_FREEZING": "1"})
    worker = events.WorkerStarted(pid=1, torch="2.15", python="3.11", devices=("cpu",), seconds=1.0, machine=machine)
    read = events.SettingsRead(run=1, settings=("torch._dynamo.config.recompile_limit = 2",))
    recorded = [event for event in log("resnet") if not isinstance(event, events.WorkerStarted)]
    told = SessionData("resnet", fold([worker, *recorded, read]))
    for render in (html.render, markdown.render, json.render):
        text = re.sub("<[^>]*>", "", render(told).decode())
        assert all(each in text for each in ("recompile_limit = 2", "TORCHINDUCTOR_FREEZING")), render
    without = html.render(SessionData("resnet", fold([worker, *recorded, replace(read, settings=())]))).decode()
    assert "Every setting of torch" in without
    assert (
        "Every setting of torch" not in html.render(SessionData("resnet", fold([worker, *recorded]))).decode()
    )  # not recorded


def test_a_page_carries_the_trace_of_its_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        value
        for key, value in Page(rendered(log("breaking"))).attributes
        if key == "href" and value and "base64" in value
    ]
    packed = b64decode(found[0].removeprefix("data:application/gzip;base64,"))
    run = fold(log("breaking")).runs[1]
    assert decode(gzip.decompress(packed)) == decode(encode(chrome_trace.trace(run)))
    monkeypatch.setattr(time, "LARGEST_TRACE", len(packed) - 1)
    text = rendered(log("breaking")).decode()
    assert "base64," not in text and "idbg analyze SESSION --trace" in text
