"""Does `e` open the user's own editor at the right line?"""

from pathlib import Path

import pytest

from idbg.schema.errors import BadInput
from idbg_tui.terminal import editor


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vim", ["vim", "+12", "a.py"]),
        ("nvim -u NONE", ["nvim", "-u", "NONE", "+12", "a.py"]),
        ("nano", ["nano", "+12", "a.py"]),
        ("emacs -nw", ["emacs", "-nw", "+12", "a.py"]),
        ("/usr/bin/code", ["/usr/bin/code", "--wait", "--goto", "a.py:12"]),
        ("code --wait", ["code", "--wait", "--goto", "a.py:12"]),
        ("hx", ["hx", "a.py:12"]),
        ("my-editor", ["my-editor", "a.py"]),
    ],
)
def test_each_editor_is_given_the_line_in_its_own_form(name: str, expected: list[str]) -> None:
    assert editor.command("a.py", 12, {"EDITOR": name}) == expected


def test_visual_wins_over_editor() -> None:
    assert editor.command("a.py", 1, {"VISUAL": "hx", "EDITOR": "vim"})[0] == "hx"


def test_an_installed_editor_is_found_when_none_is_set(tmp_path: Path) -> None:
    (tmp_path / "nano").touch(mode=0o755)
    assert editor.command("a.py", 3, {"PATH": str(tmp_path)}) == ["nano", "+3", "a.py"]


def test_no_editor_at_all_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        editor.command("a.py", 3, {"PATH": str(tmp_path)})
    assert "$EDITOR" in caught.value.hint
