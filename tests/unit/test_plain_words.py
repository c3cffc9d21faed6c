"""docs/glossary.md is the list of words: what it replaces is in no page, no help and no message."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page != GLOSSARY),
]
SOURCES = [*sorted((ROOT / "core" / "idbg").rglob("*.py")), *sorted((ROOT / "idbg_tui").rglob("*.py"))]


def replaced() -> list[str]:
    """The first cells of the glossary's second table, word by word."""
    _, _, table = GLOSSARY.read_text(encoding="utf-8").partition("| not | but |")
    return [word for line in table.splitlines() for word in re.findall(r"`([^`]+)`", line.partition(" | ")[0])]


REPLACED = re.compile(rf"\b({'|'.join(map(re.escape, replaced()))})\b", re.IGNORECASE)


def words_of(page: Path) -> list[str]:
    """The first cells of the glossary's first table."""
    table, _, _ = page.read_text(encoding="utf-8").partition("## Words that are not used")
    return re.findall(r"^\| ([a-z][a-z, ]*) \|", table, re.MULTILINE)[1:]


def messages(source: Path) -> Iterator[tuple[int, str]]:
    """The texts of more than one word that a module holds, without its docstrings: its messages, with their lines."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def test_the_glossary_is_in_the_order_of_the_alphabet_with_a_sentence_each() -> None:
    words = words_of(GLOSSARY)
    assert words == sorted(words) and len(words) == len(set(words)) > 25
    assert len(replaced()) >= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_a_word_that_the_glossary_replaces(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [(number, line) for number, line in enumerate(lines, 1) if REPLACED.search(line)] == []


def test_no_message_has_a_word_that_the_glossary_replaces() -> None:
    found = [
        f"{source.relative_to(ROOT)}:{line}: {text}"
        for source in SOURCES
        for line, text in messages(source)
        if REPLACED.search(text)
    ]
    assert found == []
