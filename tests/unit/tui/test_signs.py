"""Are plain signs used where the others cannot be shown, and is each sign another one?"""

import subprocess
import sys

import pytest

from idbg.format import glyphs


@pytest.mark.parametrize(
    ("environ", "signs"),
    [
        ({}, "unicode"),
        ({"LANG": "en_US.UTF-8"}, "unicode"),
        ({"LANG": "C.utf8"}, "unicode"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, "ascii"),
        ({"LANG": "de_DE.ISO-8859-1"}, "ascii"),
        ({"LANG": "en_US.UTF-8", "IDBG_ASCII": "1"}, "ascii"),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, "console"),
        ({"LANG": "C", "TERM": "linux"}, "ascii"),
        ({"LANG": "en_US.UTF-8", "TERM": "screen"}, "unicode"),
    ],
)
def test_the_locale_and_the_terminal_decide(environ: dict[str, str], signs: str) -> None:
    assert glyphs.set_for(environ) == signs


def test_signs_tell_severities_apart_without_colour() -> None:
    assert len(set(glyphs.SEVERITY_SIGNS.values())) == len(glyphs.SEVERITY_SIGNS)


@pytest.mark.parametrize(("signs", "encoding"), [("ascii", "ascii"), ("console", "cp437")])
def test_plain_signs_can_be_shown_and_are_still_apart(signs: str, encoding: str) -> None:
    """The font of Linux's console has the characters of code page 437, and the bullet and triangles below its 32."""
    code = (
        f"from idbg.format import glyphs; glyphs.use({signs!r}); "
        "tables = glyphs.SEVERITY_SIGNS, glyphs.VERDICT_SIGNS, glyphs.MARKS;"
        "assert len(set(glyphs.SEVERITY_SIGNS.values())) == len(glyphs.SEVERITY_SIGNS);"
        "assert len(glyphs.JOINTS) == 16 and len(glyphs.LEVELS) == 8;"
        "print(''.join([*(sign for table in tables for sign in table.values()), *glyphs.JOINTS, *glyphs.LEVELS]))"
    )
    done = subprocess.run([sys.executable, "-X", "utf8", "-c", code], capture_output=True, check=True)
    low = "►▼↑↓→•○♦·" if signs == "console" else ""
    assert done.stdout.decode().translate(dict.fromkeys(map(ord, low))).encode(encoding)
