"""Guess the language of a compiler's text, and read the marks that it has."""

import re
from collections.abc import Callable

from idbg.analysis.stage_links import debug_info, mlir, openvino
from idbg.analysis.stage_links.marks import Marks

READERS: dict[str, Callable[[str], Marks]] = {
    "mlir": mlir.marks_of,
    "llvm": debug_info.marks_of_llvm,
    "xml": openvino.marks_of,
    "ptx": debug_info.marks_of_assembly,
    "asm": debug_info.marks_of_assembly,
}
"""Languages whose lines say where they come from."""
SUFFIXES = {
    "mlir": ".mlir",
    "llvm": ".ll",
    "xml": ".xml",
    "json": ".json",
    "ptx": ".ptx",
    "sass": ".sass",
    "asm": ".s",
    "python": ".py",
    "cpp": ".cpp",
    "triton": ".py",
    "cuda": ".cu",
}
"""Language -> what its files are called."""
_OF_NAME = {suffix: language for language, suffix in reversed(SUFFIXES.items())} | {".llir": "llvm", ".asm": "asm"}
_BEGINNING = 1 << 14  # characters that are looked at
_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("xml", re.compile(r"\s*<\?xml|\s*<net\b")),
    ("llvm", re.compile(r"(?m)^; ModuleID|^target (?:triple|datalayout)|^define .*\{$")),
    ("ptx", re.compile(r"(?m)^\.version \d|^\.target sm_")),
    ("sass", re.compile(r"(?m)^\s*/\*[0-9a-f]{4}\*/\s+\w")),
    (
        "mlir",
        re.compile(
            r'(?m)^\s*(?:builtin\.)?module\b.*\{$|^\s*"?[a-z_]+\.[a-z_.]+"?.*@|^#loc|^\s*%\w+ = "?[a-z_]+\.|\bloc\(["#]'
        ),
    ),
    ("json", re.compile(r"\s*[\[{]\s*[\"\[{\d\]}]")),
    ("asm", re.compile(r"(?m)^\s+\.(?:text|globl|section)\b")),
    ("cpp", re.compile(r"(?m)^#include\b")),
    ("python", re.compile(r"(?m)^(?:import \w|from \w+ import|def \w+\(|class \w+)")),
)


def language_of(name: str, text: str) -> str:
    """The language of a text, by the end of its name, else by how it begins; "" where neither says it."""
    suffix = name[name.rfind(".") :] if "." in name else ""
    if suffix in _OF_NAME:
        return _OF_NAME[suffix]
    beginning = text[:_BEGINNING]
    return next((language for language, sign in _SIGNS if sign.search(beginning) and _agrees(sign, beginning)), "")


def _agrees(sign: re.Pattern[str], beginning: str) -> bool:
    """Signs that begin with blanks are of the text's first line."""
    return not sign.pattern.startswith(r"\s*") or sign.match(beginning) is not None


def marks_of(text: str, language: str) -> Marks:
    """What the lines of a text say of where they come from; nothing in a language that cannot say it."""
    reader = READERS.get(language)
    return reader(text) if reader is not None else {}
