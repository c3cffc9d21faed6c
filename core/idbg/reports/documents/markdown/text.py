"""Write untrusted text in Markdown, so that GitHub shows it as it is.

Everything that comes of a program is code: in it there are no links, no HTML, no references to issues, and nobody is
notified by a decorator that is named like them (`@torch`).
"""

import re

from idbg.format.plain_text import one_line, plain

_TICKS = re.compile("`+")
LONGEST_LINE = 500  # characters of a line of a block


def code(text: str, most: int = 200, *, cell: bool = False) -> str:
    """The text as code within a line, or, with `cell`, within a cell of a table; "" of none."""
    line = one_line(text, most)
    if not line:
        return ""
    ticks = "`" * (max((len(run) for run in _TICKS.findall(line)), default=0) + 1)
    space = " " if line[0] == "`" or line[-1] == "`" else ""
    written = f"{ticks}{space}{line}{space}{ticks}"
    return written.replace("|", "\\|") if cell else written


def block(text: str, language: str = "", most: int = 20_000) -> str:
    """The text as a block of code, at most so many characters of it; how many lines are left out is added."""
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in plain(text).split("\n")]
    kept: list[str] = []
    length = 0
    for line in lines:
        length += len(line) + 1
        if length > most:
            kept.append(f"… and {len(lines) - len(kept):,} more lines")
            break
        kept.append(line)
    fence = "`" * max(3, max((len(run) for line in kept for run in _TICKS.findall(line)), default=0) + 1)
    return "\n".join((f"{fence}{language}", *kept, fence))


def folded(title: str, text: str) -> str:
    """Behind a title, which is ours and no program's."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"
