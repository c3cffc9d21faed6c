"""Are plain signs used where the others cannot be shown, and is each sign another one?"""

import subprocess
import sys

import pytest

from idbg.format import glyphs


@pytest.mark.parametrize(
    ("environ", "plain"),
    [
        ({}, False),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "C.utf8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "en_US.UTF-8", "IDBG_ASCII": "1"}, True),
    ],
)
def test_the_locale_decides(environ: dict[str, str], plain: bool) -> None:
    assert glyphs.wants_ascii(environ) is plain


def test_signs_tell_severities_apart_without_colour() -> None:
    assert len(set(glyphs.SEVERITY_SIGNS.values())) == len(glyphs.SEVERITY_SIGNS)


def test_plain_signs_are_ascii_and_still_apart() -> None:
    code = (
        "from idbg.format import glyphs; glyphs.use_ascii(); "
        "tables = glyphs.SEVERITY_SIGNS, glyphs.VERDICT_SIGNS, glyphs.MARKS;"
        "print(all(sign.isascii() for table in tables for sign in table.values()),"
        " len(set(glyphs.SEVERITY_SIGNS.values())) == len(glyphs.SEVERITY_SIGNS))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
