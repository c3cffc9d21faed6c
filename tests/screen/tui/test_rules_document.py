"""Is the text of the rules what was edited, saved, taken from others or refused, with no widget?"""

from pathlib import Path

import pytest

from idbg.schema.errors import AcceleratorError, BadInput
from idbg.schema.programs import Target
from idbg_tui.panes.rules.document import RulesDocument
from idbg_tui.state.state import Rules
from tests.harness.pane_host import RULES

TARGET = Target(accelerator="small")
FOUR = RULES.replace("= 1 ", "= 4 ")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.toml"
    path.write_text(RULES)
    return path


def opened(origin: str) -> RulesDocument:
    document = RulesDocument()
    assert document.take(Rules(RULES, origin), TARGET, fresh=True) == ""
    return document


def edit(document: RulesDocument, text: str) -> None:
    document.text = text
    document.changed()


# in force, refused


def test_an_edit_is_sent_once_and_known_when_it_comes_back() -> None:
    document = opened("small")
    assert document.unsent() is None, "what was opened is in force"
    edit(document, FOUR)
    assert document.unsent() == FOUR and document.unsent() is None
    edit(document, "# more\n" + FOUR)
    assert document.take(Rules(FOUR, "editor"), TARGET) == ""
    assert document.text == "# more\n" + FOUR, "what was typed meanwhile stays"
    assert (document.in_force, document.edited) == (FOUR, True)


def test_a_refused_text_says_why_and_which_line_until_it_is_mended() -> None:
    document = opened("small")
    wrong = RULES.replace("multiple = 1 ", "multiple = x ")
    edit(document, wrong)
    assert document.unsent() == wrong
    document.take(Rules(wrong, "editor", "not valid TOML; line 5: multiple = x", 5), TARGET)
    assert document.problems() == ["line 5: not valid TOML; multiple = x (the last good rules stay in force)"]
    edit(document, RULES)
    assert document.unsent() == RULES
    document.take(Rules(RULES, "editor"), TARGET)
    assert document.refused is None and document.problems() == []


def test_what_is_odd_in_valid_rules_is_said_with_its_line() -> None:
    document = opened("small")
    edit(document, RULES + '\n[[rules]]\nkind = "unsupported_ops"\ndeny = ["relo"]\n')
    document.unsent()
    document.take(Rules(document.text, "editor"), TARGET)
    assert [warning.line for warning in document.warnings] == [document.text.count("\n")]
    assert "relo" in document.problems()[0]


# the file


def test_a_file_that_changed_on_disk_is_taken_where_nothing_is_lost(mine: Path) -> None:
    document = opened(str(mine))
    document.take(Rules(FOUR, str(mine)), TARGET)
    assert (document.text, document.edited, document.theirs) == (FOUR, False, None)


def test_a_file_that_changed_on_disk_waits_while_it_has_edits_here(mine: Path) -> None:
    document = opened(str(mine))
    edit(document, "# mine\n" + RULES)
    assert document.unsent() == document.text
    document.take(Rules(document.text, "editor"), TARGET)
    theirs = Rules(FOUR, str(mine))
    assert document.take(theirs, TARGET) == "" and document.theirs is theirs
    assert document.text == "# mine\n" + RULES and "L loads the file's text" in document.problems()[0]
    assert document.unsent() == document.text, "the edits are put in force again"
    assert document.take_theirs() and not document.take_theirs()
    assert (document.text, document.edited, document.problems()) == (FOUR, False, [])


def test_undo_goes_home_to_the_accelerator_that_a_pick_left(mine: Path) -> None:
    document = opened("small")
    edit(document, FOUR)
    other = RULES.replace("small", "mine")
    assert document.take(Rules(other, str(mine)), TARGET) == "edits of small are one Z away"
    assert (document.home.name, document.edited) == ("mine.toml", False)
    edit(document, FOUR)
    assert (document.home.label, document.text, document.edited) == ("small", FOUR, True)


def test_a_file_that_is_gone_is_noticed_once_and_written_again(mine: Path) -> None:
    document = opened(str(mine))
    assert not document.look()
    mine.unlink()
    assert document.look() and not document.look()
    assert "was deleted on disk" in document.problems()[0]
    assert document.save() == mine and mine.read_text() == RULES
    assert not document.gone


def test_a_preset_is_saved_into_a_new_file_and_compared_with_the_preset_still(mine: Path) -> None:
    document = opened("mock")
    edit(document, FOUR)
    assert document.save_path == Path("mock-edited.toml") and not document.would_replace()
    document.save()
    assert Path("mock-edited.toml").read_text() == FOUR and not document.edited
    assert document.base.label == "mock" and "multiple = 1" in document.base_text()


def test_rules_without_text_empty_a_file_only_when_that_was_said(mine: Path) -> None:
    document = opened(str(mine))
    edit(document, "")
    assert document.would_empty() and not document.would_empty()
    edit(document, RULES)
    edit(document, "")
    assert document.would_empty(), "it was another edit that was told of"


@pytest.mark.parametrize("typed", ["", " ", ".", "folder/"])
def test_a_new_accelerator_needs_the_path_of_a_file(mine: Path, typed: str) -> None:
    with pytest.raises(BadInput):
        opened("small").save_as(typed)


def test_a_new_accelerator_is_named_for_its_file_and_replaces_another_only_when_asked_twice(mine: Path) -> None:
    document = opened("small")
    with pytest.raises(BadInput, match="is there already"):
        document.save_as("mine")
    document.confirmed = None
    with pytest.raises(BadInput, match="is there already"):
        document.save_as("mine")
    assert document.save_as("mine") == Path("mine.toml")
    assert mine.read_text() == document.text == RULES.replace("small", "mine")
    edit(document, "[[rules]]\nkind = 1\n")
    with pytest.raises(AcceleratorError, match="kind must be a string"):
        document.save_as("new")
    assert not Path("new.toml").exists()


def test_a_base_that_cannot_be_read_is_refused(mine: Path) -> None:
    document = opened(str(mine))
    mine.unlink()
    with pytest.raises(AcceleratorError, match="there is no file"):
        document.base_text()


def test_no_textual_is_imported_for_it() -> None:
    import subprocess
    import sys

    code = "import sys, idbg_tui.panes.rules.document; print([name for name in sys.modules if 'textual' in name])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"
