"""One rule of a text is changed; every comment and every other line stays."""

import pytest

from idbg import accelerator, rule_edits
from idbg.errors import AcceleratorError

TEXT = """\
# top
name = "a"

[[rules]]
kind = "alignment"  # why
multiple = 8        # eight

[[rules]]
kind = "unsupported_ops"
deny = [
    # first
    "sin", "cos",
    "tan",  # last
]
"""


def test_a_key_is_set_where_it_stands() -> None:
    assert rule_edits.set_key(TEXT, 0, "multiple", 16) == TEXT.replace("8        #", "16       #")


def test_a_key_that_is_not_there_is_added_behind_the_kind() -> None:
    edited = rule_edits.set_key(TEXT, 0, "dims", "last")
    assert edited == TEXT.replace("# why\n", '# why\ndims = "last"\n')


@pytest.mark.parametrize(
    ("wanted", "old", "new"),
    [
        (["cos", "tan"], '"sin", "cos"', '"cos"'),
        (["sin", "cos"], '    "tan",  # last\n', "    # last\n"),
        (["sin", "cos", "tan", "exp", "log"], "# last\n]", '# last\n    "exp", "log",\n]'),
    ],
)
def test_items_of_a_list_come_and_go_alone(wanted: list[str], old: str, new: str) -> None:
    edited = rule_edits.set_key(TEXT, 1, "deny", wanted)
    assert accelerator.parse(edited).rules[1].deny == tuple(wanted)
    assert edited == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ('["a"]', ["a", "b"], '["a", "b"]'),
        ("[]", ["b"], '["b"]'),
        ('["a", ]', ["a", "b"], '["a", "b"]'),
        ('["a", "b"]', ["b"], '["b"]'),
        ("['a']", [], "[]"),
        ("[0, -1]", [1], "[1]"),
    ],
)
def test_lists_on_one_line(before: str, wanted: list[object], after: str) -> None:
    text = f'[[rules]]\nkind = "dtype"\nx = {before}\n'
    assert rule_edits.set_key(text, 0, "x", wanted) == text.replace(before, after)


def test_rules_on_one_line_cannot_be_edited() -> None:
    with pytest.raises(AcceleratorError, match="on one line"):
        rule_edits.set_key('rules = [{kind = "layout"}]', 0, "enabled", False)
