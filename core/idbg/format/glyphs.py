"""Signs for verdicts, severities and directions.

A sign always goes with a colour, so that the screen can be read without colours. The plain set is used where the
terminal's encoding cannot show the other (see `use_ascii`).
"""

from collections.abc import Mapping

from idbg.schema.programs import Verdict
from idbg.schema.violations import Severity

SEVERITY_SIGNS: dict[Severity, str] = {
    "reject": "✘",
    "fallback": "⚠",
    "pad": "◇",
    "tile": "▫",
    "slow": "·",
    "unknown": "?",
}
VERDICT_SIGNS: dict[Verdict, str] = {
    "failed": "✘",
    "wrong": "✘",
    "empty": "⚠",
    "violations": "⚠",
    "compiled": "✔",
    "clean": "✔",
    "waiting": "…",
}
MARKS: dict[str, str] = {
    "open": "▾",
    "closed": "▸",
    "arrow": "→",
    "bar": "▌",
    "dot": "●",
    "guide": "│",
    "ellipsis": "…",
    "times": "×",
    "rule": "──",
    "separator": "·",
    "gone": "✔",
    "up": "↑",
    "down": "↓",
    "on": "●",
    "off": "○",
    "far": "┄",
}
JOINTS: list[str] = list(" ╵╷│╴╯╮┤╶╰╭├─┴┬┼")
"""A cell of lines, by the sides to which they lead: up 1, down 2, left 4, right 8."""
LEVELS: list[str] = list("▁▂▃▄▅▆▇█")
"""From least to most, in one cell."""

_ASCII_SEVERITIES: dict[Severity, str] = {
    "reject": "X",
    "fallback": "!",
    "pad": "+",
    "tile": "#",
    "slow": "~",
    "unknown": "?",
}
_ASCII_VERDICTS: dict[Verdict, str] = {
    "clean": "v",
    "compiled": "v",
    "violations": "!",
    "empty": "!",
    "wrong": "X",
    "failed": "X",
    "waiting": "~",
}
_ASCII_MARKS = {
    "open": "v",
    "closed": ">",
    "arrow": "->",
    "bar": "|",
    "dot": "*",
    "guide": "|",
    "ellipsis": "~",
    "times": "x",
    "rule": "--",
    "separator": "-",
    "gone": "v",
    "up": "^",
    "down": "v",
    "on": "x",
    "off": ".",
    "far": "~",
}
_ASCII_TEXT = str.maketrans({"µ": "u", "±": "~", "→": ">", "·": "-"})


def wants_ascii(environ: Mapping[str, str]) -> bool:
    """Whether the locale says that the terminal shows no UTF-8, or IDBG_ASCII asks for plain signs."""
    if environ.get("IDBG_ASCII"):
        return True
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    return bool(locale) and "utf" not in locale.lower()


def use_ascii() -> None:
    """Replace every sign by an ASCII one, for a terminal that cannot show the others. Call before the first paint."""
    SEVERITY_SIGNS.update(_ASCII_SEVERITIES)
    VERDICT_SIGNS.update(_ASCII_VERDICTS)
    MARKS.update(_ASCII_MARKS)
    LEVELS[:] = ".:-=+*#@"
    JOINTS[:] = " '.|-'.+-'.+-'.+"


def is_ascii() -> bool:
    """Whether `use_ascii` was called."""
    return MARKS["guide"] == "|"


def plain(text: str) -> str:
    """A text of ours with the signs that the terminal can show: of "µ", "±" and arrows too."""
    return text.translate(_ASCII_TEXT) if is_ascii() else text
