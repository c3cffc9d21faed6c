"""Does the list of accelerators hold what can be chosen, so that one that was in force can come back?"""

from pathlib import Path

import pytest

from idbg_tui.choices_accelerators import choices
from idbg_tui.widgets.picker import matching

TPU = 'name = "tpu"\ndescription = "8 by 128"\n[[rules]]\nkind = "alignment"\nmultiple = 8\n'


def test_what_was_used_the_folders_files_and_the_presets_are_listed_once(tmp_path: Path) -> None:
    (tmp_path / "tpu.toml").write_text(TPU)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / "broken.toml").write_text("[[")
    used = tmp_path / "other" / "mine.toml"
    used.parent.mkdir()
    used.write_text(TPU)
    found = choices(tmp_path, [str(used), "mock", str(used)])
    assert [name for name, _ in found][:2] == [str(used), str(tmp_path / "tpu.toml")]
    assert [name for name, _ in found].count("mock") == 1
    assert dict(found)[str(tmp_path / "tpu.toml")] == "8 by 128"


def test_a_used_file_that_is_gone_says_so(tmp_path: Path) -> None:
    assert "there is no file" in dict(choices(tmp_path, [str(tmp_path / "gone.toml")]))[str(tmp_path / "gone.toml")]


def test_a_file_without_a_rule_is_no_accelerator_to_choose(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('name = "x"\n')
    assert str(tmp_path / "settings.toml") not in dict(choices(tmp_path, []))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["/a/npu.toml", "coral", "tpu", "spyre"]),
        ("tpu", ["tpu", "coral"]),
        ("npu", ["/a/npu.toml"]),
        ("STICKS", ["spyre"]),
        ("edge google", ["coral"]),
        ("spr", ["spyre"]),
        ("zz", []),
    ],
)
def test_typing_finds_the_nearest_name_then_the_words_and_then_the_letters(typed: str, found: list[str]) -> None:
    listed = [("/a/npu.toml", "mine"), ("coral", "Google Edge TPU"), ("tpu", "Google"), ("spyre", "128-byte sticks")]
    assert [name for name, _ in matching(listed, typed)] == found
