"""Find the keywords, strings, numbers, comments and names of a text.

Pygments reads a text from its start, so that strings and comments over many lines come out right. It is read for as
many lines as are needed, in slices of a few milliseconds: 20,000 lines take it 0.8 s.
"""

import time
from collections.abc import Iterator
from typing import Literal

TokenLook = Literal["keyword", "string", "number", "comment", "name"]
Span = tuple[int, int, TokenLook]
"""First column, column after the last, and how it looks; what no span covers is plain."""

# Language, as kernels and files name it -> the alias of its pygments lexer
_ALIASES = {
    "python": "python",
    "triton": "python",
    "cpp": "cpp",
    "cuda": "cuda",
    "toml": "toml",
    "ptx": "ptx",
    "asm": "gas",
    "llvm": "llvm",
    "xml": "xml",
    "json": "json",
}
_OWN = ("mlir", "sass")  # pygments has no lexers of them
# Token type, as pygments prints it -> its look. The longest prefix decides.
_LOOKS: dict[str, TokenLook] = {
    "Token.Keyword": "keyword",
    "Token.Keyword.Constant": "number",
    "Token.Operator.Word": "keyword",
    "Token.Literal.String": "string",
    "Token.Literal.Number": "number",
    "Token.Comment": "comment",
    "Token.Comment.Preproc": "name",
    "Token.Comment.PreprocFile": "string",
    "Token.Name.Decorator": "name",
    "Token.Name.Function": "name",
    "Token.Name.Class": "name",
    "Token.Name.Builtin": "name",
    "Token.Name.Tag": "keyword",
    "Token.Name.Attribute": "name",
}


class Lexing:
    """The looks of one text, known from its first line down to `done` (exclusive, 0-based)."""

    def __init__(self, text: str, language: str) -> None:
        self._lines = text.split("\n")
        self._spans: list[tuple[Span, ...]] = []
        self._row: list[Span] = []
        self._looks: dict[object, TokenLook | None] = {}
        self._offset = 0  # where in the text the current row begins
        self._tokens = self._start(text, language)

    @property
    def done(self) -> int:
        """How many lines, from the first, have their looks."""
        return len(self._lines) if self._tokens is None else len(self._spans)

    def spans(self, index: int) -> tuple[Span, ...]:
        """The looks of one line (0-based); empty where it has not been read yet."""
        return self._spans[index] if index < len(self._spans) else ()

    def advance(self, until: int, seconds: float) -> bool:
        """Read on until line `until` (0-based) is known, or for `seconds`; True if there is more to do."""
        deadline = time.perf_counter() + seconds
        until = min(until + 1, len(self._lines))
        while self._tokens is not None and len(self._spans) < until:
            # the clock is read once in 64 tokens: a token takes a few microseconds
            for _ in range(64):
                if not self._take():
                    self._tokens = None
                    return False
            if time.perf_counter() > deadline:
                break
        return self.done < until

    def _start(self, text: str, language: str) -> Iterator[tuple[int, object, str]] | None:
        if language in _OWN:
            from idbg.format import compiler_lexers

            own: Iterator[tuple[int, object, str]] = compiler_lexers.LEXERS[language]().get_tokens_unprocessed(
                text + "\n"
            )
            return own
        if (alias := _ALIASES.get(language)) is None:
            return None
        from pygments.lexers import get_lexer_by_name  # 20 ms: not before there is something to read

        # comments to the end of the line match up to their newline: the last line needs one
        tokens: Iterator[tuple[int, object, str]] = get_lexer_by_name(alias).get_tokens_unprocessed(text + "\n")
        return tokens

    def _take(self) -> bool:
        """Take in one token; False after the last."""
        token = next(self._tokens, None) if self._tokens is not None else None
        if token is None:
            return False
        start, kind, value = token
        look = self._looks[kind] if kind in self._looks else self._looks.setdefault(kind, _look(str(kind)))
        if "\n" not in value:
            if look:
                self._add(start - self._offset, start - self._offset + len(value), look)
            return True
        first, *others = value.split("\n")
        column = start - self._offset
        if look and first:
            self._add(column, column + len(first), look)
        for part in others:
            self._end_row(start + len(first) + 1)
            start, first = start + len(first) + 1, part
            if look and part:
                self._add(0, len(part), look)
        return True

    def _end_row(self, offset: int) -> None:
        self._spans.append(tuple(self._row))
        self._row.clear()
        self._offset = offset

    def _add(self, start: int, end: int, look: TokenLook) -> None:
        """Add a span to the current row, joined to the last one where only blanks lie between: fewer bytes to draw."""
        if self._row:
            before, stop, last = self._row[-1]
            if last == look and self._lines[len(self._spans)][stop:start].strip() == "":
                self._row[-1] = (before, end, look)
                return
        self._row.append((start, end, look))


def _look(kind: str) -> TokenLook | None:
    while kind:
        if kind in _LOOKS:
            return _LOOKS[kind]
        kind = kind.rpartition(".")[0]
    return None
