"""A session as Markdown is short, fits a comment of GitHub's, and nothing in it is markup but what is ours."""

import dataclasses
import re
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from idbg.reports.documents import SessionData, markdown
from idbg.reports.documents.markdown.text import block, code
from idbg.schema import events
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, fold
from idbg.schema.violations import Violation
from tests.harness.hostile import LONG, TEXT, hostile
from tests.harness.recorded import RECORDINGS, log

OURS = {"<details>\n<summary>", "</details>\n"}


def rendered(history: History, name: str = "s") -> str:
    text = markdown.render(SessionData(name, history)).decode("utf-8")
    assert len(text) <= markdown.MOST
    return text


def tokens(text: str) -> Iterator[Token]:
    """As GitHub reads it: CommonMark with HTML and tables."""
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def many(count: int) -> History:
    node = NodeId(GraphId("0/0", "inference"), "relu")
    found = [
        Violation(rule=f"r{number}", severity="pad", node=node, found="f" * 900, wanted="w", fix="x" * 900, line=number)
        for number in range(count)
    ]
    return fold(
        (
            events.RunStarted(run=1, program=Program("model.py", cwd="/repo"), target=Target(rules="")),
            events.ViolationsFound(run=1, violations=tuple(found)),
            events.RunEnded(run=1, verdict="violations", seconds=1.0),
        )
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.jsonl")))
def test_every_recorded_session_begins_with_its_verdict(name: str) -> None:
    history = fold(log(name))
    text = rendered(history)
    assert re.match(r"### [✘⚠✔…] idbg: |### idbg: (nothing|only benchmarks) ran", text)
    if history.runs:
        assert "\nidbg run " in text or "\nidbg diff " in text
    if name == "wrong_pass":
        assert "mismatch `rmse`" in text
        assert "Where the numbers differ" in text


def test_a_finding_is_a_row_with_its_place_and_what_to_do() -> None:
    text = rendered(fold(log("breaking")))
    assert "| ⚠ | break `Data-dependent branching` | `Python branches on the value of a tensor` |" in text
    assert "`tests/recordings/breaking.py:11`" in text


def test_what_does_not_fit_is_counted() -> None:
    text = rendered(many(1_000))
    assert text.count("\n| ⚠ |") == markdown.MOST_FINDINGS
    assert "… and 960 findings more (960 violations): the JSON report has all." in text
    assert text.count("<details>") == text.count("</details>") == 1
    assert re.search(r"… and [\d,]+ more lines\n```", text) or len(text) < 60_000


def test_of_very_many_runs_the_details_are_left_out_and_named() -> None:
    history = many(100)
    for number in range(2, 200):
        program = dataclasses.replace(history.runs[1], number=number, program=Program(f"m{number}.py"))
        history.runs[number] = program
    text = rendered(history)
    assert "Left out, as a comment takes 65,536 characters: " in text.splitlines()[-1]
    assert "- and 189 runs more" in text


def test_a_session_without_runs_says_so() -> None:
    assert rendered(History()).startswith("### idbg: nothing ran in this session")
    benched = History(rows=fold(log("benched")).rows)
    assert rendered(benched).startswith("### idbg: benchmark: inductor with wrong numbers")


@pytest.mark.parametrize("text", [TEXT, LONG], ids=["breaking out", "long"])
def test_hostile_text_is_code_and_nothing_else(text: str) -> None:
    written = rendered(hostile(text), text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", written)
    folds = 0
    for token in tokens(written):
        assert token.type not in ("link_open", "image", "em_open", "s_open", "html_inline"), token.content
        if token.type == "html_block":
            lines = token.content.splitlines()
            assert lines[0] in ("<details>", "</details>")
            assert lines[1:] == [] or re.fullmatch(r"<summary>[\w ,<>/]+</summary>", lines[1])
            folds += 1
        if token.type == "text":
            assert "torch #1" not in token.content
            assert "script" not in token.content
    assert folds == 4  # of two
    cells = [token.type for token in tokens(written) if token.type in ("tr_open", "td_open")]
    assert cells.count("td_open") == 5 * (cells.count("tr_open") - 1)


@pytest.mark.parametrize(
    "text", ["a|b", "`", "``a``", "a\\|b", "\\", " a ", "*a*", "a`", "<b>", "&amp;", "x\\", "[a](b)", "|", "`|`"]
)
@pytest.mark.parametrize("cell", [False, True])
def test_code_says_exactly_the_text(text: str, cell: bool) -> None:
    line = code(text, cell=cell)
    source = f"| a | b |\n|---|---|\n| {line} | c |\n" if cell else line
    [inline] = [token for token in tokens(source) if token.type == "code_inline"]
    assert inline.content == text.strip()


@pytest.mark.parametrize("text", ["```\n</details>", "~~~\n````\nx", "", "a\r\nb"])
def test_a_block_ends_where_it_ends(text: str) -> None:
    [fence] = tokens(block(text, "sh"))
    assert fence.type == "fence"
    assert fence.content.rstrip("\n") == text.replace("\r\n", "\n").rstrip("\n")


def test_what_is_new_beside_another_session_is_named() -> None:
    now, before = fold(log("breaking")), fold(log("mlp_train"))
    text = markdown.render(SessionData("now", now, other=SessionData("before|`", before))).decode()
    assert "**Beside `` before|` ``**: 7 new, 2 gone" in text
    assert "- new: break `Data-dependent branching`: `Python branches on the value of a tensor`" in text
    assert "- gone: violation `layout`" in text
    assert "0 new, 0 gone" in markdown.render(SessionData("now", now, other=SessionData("now", now))).decode()


def test_beside_a_run_that_was_cancelled_a_clean_one_is_no_clean_session() -> None:
    started = events.RunStarted(run=1, program=Program("model.py"), target=Target())
    graph = events.GraphCaptured(run=1, graph=Graph(GraphId("0/0", "inference"), ()))
    history = fold((started, graph, events.RunEnded(run=1, verdict="clean", seconds=1.0)))
    assert rendered(history).startswith("### ✔")
    history.apply(events.RunStarted(run=2, program=Program("other.py"), target=Target()))
    assert rendered(history).startswith("### …")
