"""Highlight code in the page: numbered lines with coloured keywords, strings, numbers and comments."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup, escape

from idbg.format.lexing import Lexing
from idbg.format.shown import clean

_CLASSES = {"keyword": "k", "string": "s", "number": "m", "comment": "c", "name": "n"}
_LONGEST_LINE = 2_000  # characters of a line that are shown


@lru_cache(maxsize=512)
def highlighted(text: str, language: str = "python", first: int = 1) -> Markup:
    """A block of code whose first line has the number `first`; plain where the language is not known."""
    text = clean(text.rstrip("\n"))
    read = "\n".join(line[:_LONGEST_LINE] for line in text.split("\n"))  # a long line takes a lexer minutes
    lexing = Lexing(read, language.lower().replace("c++", "cpp"))
    while lexing.advance(text.count("\n") + 1, seconds=1):
        pass
    lines = "".join(f"<i class=l>{_line(line, lexing, at)}\n</i>" for at, line in enumerate(text.split("\n")))
    start = f' data-first="{first}"' if first != 1 else ""
    return Markup(f'<pre class="code" tabindex="0"{start}><code>{lines}</code></pre>')


@dataclass(frozen=True)
class Listing:
    """A whole text of code under its title."""

    title: str
    text: str


def listings(found: Iterable[Listing], most: int = 200_000) -> tuple[list[Listing], int]:
    """Those that have room in `most` characters, in their order, and how many have none; each text once."""
    shown: dict[str, Listing] = {}
    left_out = 0
    for each in found:
        if not each.text or each.text in shown:
            continue
        if len(each.text) <= most:
            most -= len(each.text)
            shown[each.text] = each
        else:
            left_out += 1
    return list(shown.values()), left_out


def _line(line: str, lexing: Lexing, index: int) -> str:
    parts, done = [], 0
    if len(line) > _LONGEST_LINE:
        return escape(f"{line[:_LONGEST_LINE]}… ({len(line):,} characters)")
    for start, end, look in lexing.spans(index):
        parts.append(f"{escape(line[done:start])}<i class={_CLASSES[look]}>{escape(line[start:end])}</i>")
        done = end
    return "".join((*parts, escape(line[done:])))  # a sum would escape the parts again
