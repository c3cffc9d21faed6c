"""Read the locations of MLIR: `loc("file":line:col)`, named, fused and call-site ones, and their aliases `#loc12`."""

import re
from collections.abc import Callable, Iterable, Iterator

from idbg.analysis.stage_links.marks import NOWHERE, Mark, Marks, joined

_ALIAS = re.compile(r"^(#loc\w*)\s*=\s*loc\(")
_TOKEN = re.compile(
    r'"(?P<text>(?:[^"\\]|\\.)*)"(?::(?P<line>\d+):\d+(?:\s+to\s+(?:\d+)?:\d+)*)?'
    r"|(?P<alias>#loc\w*)|(?P<word>callsite|fused|unknown|at)\b|(?P<mark>[()\[\],<>])"
)
_PARENTHESIS = re.compile(r'[()]|"(?:[^"\\]|\\.)*"')
_LOCATION = re.compile(r"\s+loc\(")
_DEPTH = 64  # of locations in locations; deeper ones are taken for unknown
_LINE_LIMIT = 1 << 16  # characters: longer lines hold constants or attributes


_Line = tuple[str, Mark, bool]
"""A line without its locations, what they mark, and whether it defines an alias of one."""


def marks_of(text: str) -> Marks:
    """The marks of the lines of an MLIR text."""
    return _marks(_Reader(text).lines()) if "loc(" in text else {}


def without_locations(text: str) -> tuple[str, Marks]:
    """The text as it reads without its locations, and the marks of the lines that are left."""
    texts: list[str] = []

    def left() -> Iterator[_Line]:
        for line in _Reader(text).lines():
            if not line[2]:
                texts.append(line[0])
                yield line

    marks = _marks(left())  # one line after the other: tens of thousands of tuples at once make Python look for garbage
    return "\n".join(texts), marks


def _marks(lines: Iterable[_Line]) -> Marks:
    """A region's first line has its marks on the last: `} loc(#loc3)`, at the same indentation."""
    marks: Marks = {}
    opened: dict[int, int] = {}  # indentation -> the line that opened a region there
    for number, (text, mark, _) in enumerate(lines, 1):
        if mark.names or mark.places:
            marks[number] = mark
            indent = len(text) - len(text.lstrip(" "))
            if text.startswith("}", indent) and (head := opened.get(indent)) is not None:
                marks[head] = joined([mark, *filter(None, [marks.get(head)])])
        if text.endswith(("{", "{ ")):
            opened[len(text) - len(text.lstrip(" "))] = number
    return marks


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        definitions = (_ALIAS.match(line) for line in self._lines if line.startswith("#loc"))
        self._definitions = {found[1]: found.string[found.end() :] for found in definitions if found is not None}
        self._known: dict[str, Mark] = {}
        self._aliases: dict[str, Mark] = {}

    def lines(self) -> Iterator[_Line]:
        for line in self._lines:
            first = line.find("loc(")
            if first < 0:
                yield line, NOWHERE, False
            elif line.startswith("#loc"):
                yield line, NOWHERE, _ALIAS.match(line) is not None
            elif line.startswith(" loc(#loc", first - 1) and (alias := line[first + 4 : -1]) in self._definitions:
                yield line[: first - 1], self._alias(alias), False  # almost every line
            else:
                yield _stripped(line), self._mark(line), False

    def _mark(self, line: str) -> Mark:
        if len(line) > _LINE_LIMIT:
            return NOWHERE
        found = [self._location(line, end) for end in _ends(line)]
        return joined([mark for mark in found if mark]) if any(found) else NOWHERE

    def _location(self, line: str, start: int) -> Mark:
        """The location whose text begins there, after its opening parenthesis."""
        known = self._known
        end = _closing(line, start)
        key = line[start:end]
        if key not in known:
            known[key] = NOWHERE  # one that refers to itself ends here
            known[key] = _Parser(key, self._alias).whole()
        return known[key]

    def _alias(self, name: str) -> Mark:
        mark = self._aliases.get(name)
        if mark is None:
            definition = self._definitions.get(name)
            mark = self._location(definition, 0) if definition is not None else NOWHERE
            self._aliases[name] = mark
        return mark


def _ends(line: str) -> list[int]:
    """Where the text of each outermost location of the line begins."""
    ends: list[int] = []
    at = 0
    while (found := _LOCATION.search(line, at)) is not None:
        ends.append(found.end())
        at = _closing(line, found.end())
    return ends


def _closing(line: str, start: int) -> int:
    """The place of the parenthesis that closes the one before `start`."""
    depth = 1
    for found in _PARENTHESIS.finditer(line, start):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if not depth:
            return found.start()
    return len(line)


def _stripped(line: str) -> str:
    """The line without its locations."""
    kept, at = "", 0
    for found in _LOCATION.finditer(line):
        if found.start() >= at:
            kept += line[at : found.start()]
            at = _closing(line, found.end()) + 1
    return (kept + line[at:]) if at else line


class _Parser:
    """One location. Of a call site the callee counts first: a caller's line is that of a module's call."""

    def __init__(self, text: str, alias: Callable[[str], Mark]) -> None:
        self._tokens = list(_TOKEN.finditer(text))
        self._at = 0
        self._alias = alias
        self._depth = 0

    def whole(self) -> Mark:
        return joined([mark for mark in self._several(")") if mark] or [NOWHERE])

    def _next(self) -> "re.Match[str] | None":
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _several(self, closing: str) -> list[Mark]:
        """The locations up to this bracket, which is taken in."""
        marks = []
        self._depth += 1
        while (token := self._next()) is not None:
            self._at += 1
            if token["mark"] == closing:
                break
            if self._depth < _DEPTH:
                marks.append(self._one(token))
        self._depth -= 1
        return marks

    def _one(self, token: "re.Match[str]") -> Mark:
        if token["line"]:
            return Mark((), (((token["text"], int(token["line"])),),))
        if token["alias"]:
            return self._alias(token["alias"])
        if token["text"] is not None:
            return self._named(token["text"])
        if token["word"] == "callsite":
            return self._call_site()
        if token["word"] == "fused":
            return self._fused()
        return NOWHERE

    def _named(self, name: str) -> Mark:
        below = self._bracket("(", ")")
        return joined([Mark((name,)), *(mark for mark in below if mark)])

    def _call_site(self) -> Mark:
        marks = [mark for mark in self._bracket("(", ")") if mark]
        names = tuple(dict.fromkeys(name for mark in marks for name in mark.names))
        places = tuple(place for mark in marks for group in mark.places for place in group)
        return Mark(names, (places,) if places else ())

    def _fused(self) -> Mark:
        self._bracket("<", ">")
        return joined([mark for mark in self._bracket("[", "]") if mark] or [NOWHERE])

    def _bracket(self, opening: str, closing: str) -> list[Mark]:
        token = self._next()
        if token is None or token["mark"] != opening:
            return []
        self._at += 1
        return self._several(closing)
