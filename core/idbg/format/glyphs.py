"""Signs for verdicts, severities and directions.

A sign always goes with a colour, so that the screen can be read without colours. The plain set is used where the
terminal's encoding or font cannot show the other (see `use`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True)
class _Signs:
    """Signs in place of those above, in their order: marks with a blank between them."""

    severities: str
    verdicts: str
    marks: str
    joints: str
    levels: str


SignSet = Literal["unicode", "console", "ascii"]
_SETS: dict[SignSet, _Signs] = {
    # what the font of Linux's own console has: the 256 characters of code page 437
    "console": _Signs("X!♦■·?", "XX!!√√~", "▼ ► → ▌ • │ ~ x ── · √ ↑ ↓ • ○ -", " │││─┘┐┤─└┌├─┴┬┼", "·░░▒▒▓▓█"),
    "ascii": _Signs("X!+#~?", "XX!!vv~", "v > -> | * | ~ x -- - v ^ v x . ~", " '.|-'.+-'.+-'.+", ".:-=+*#@"),
}
_in_use: list[SignSet] = ["unicode"]
_replaced: dict[str, str] = {}  # signs in texts
_IN_TEXT: dict[SignSet, dict[str, str]] = {
    "console": {"×": "x", "…": "~", "━": "=", "−": "-"},
    "ascii": {"µ": "u", "±": "~", "→": ">", "·": "-", "×": "x", "…": "~", "−": "-"},
}


def set_for(environ: Mapping[str, str]) -> SignSet:
    """The signs that the terminal can show: by its locale, by IDBG_ASCII, which asks for plain ones, and by TERM."""
    if environ.get("IDBG_ASCII"):
        return "ascii"
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    if locale and "utf" not in locale.lower():
        return "ascii"
    return "console" if environ.get("TERM") == "linux" else "unicode"


def use(name: SignSet) -> None:
    """Replace every sign by that of another set. Call before the first paint."""
    if (signs := _SETS.get(name)) is None:
        return
    _in_use[0] = name
    _replaced.update(zip(SEVERITY_SIGNS.values(), signs.severities, strict=True))
    _replaced.update(zip(VERDICT_SIGNS.values(), signs.verdicts, strict=True))
    _replaced.update(_IN_TEXT[name])
    SEVERITY_SIGNS.update(zip(SEVERITY_SIGNS, signs.severities, strict=True))
    VERDICT_SIGNS.update(zip(VERDICT_SIGNS, signs.verdicts, strict=True))
    MARKS.update(zip(MARKS, signs.marks.split(" "), strict=True))
    JOINTS[:], LEVELS[:] = signs.joints, signs.levels


def is_ascii() -> bool:
    """Whether every sign must be ASCII."""
    return _in_use[0] == "ascii"


def is_plain() -> bool:
    """Whether the terminal shows few signs beside ASCII."""
    return _in_use[0] != "unicode"


def plain(text: str) -> str:
    """A text of ours with the signs that the terminal can show."""
    for sign, other in _replaced.items():
        text = text.replace(sign, other)
    return text
